// Package check holds the manifests against the types of Kubernetes.
package check

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// kinds are the kinds that the manifests may use.
var kinds = map[string]func() meta.Object{
	"v1/ConfigMap":                       func() meta.Object { return new(core.ConfigMap) },
	"v1/Secret":                          func() meta.Object { return new(core.Secret) },
	"v1/Service":                         func() meta.Object { return new(core.Service) },
	"apps/v1/Deployment":                 func() meta.Object { return new(apps.Deployment) },
	"policy/v1/PodDisruptionBudget":      func() meta.Object { return new(policy.PodDisruptionBudget) },
	"networking.k8s.io/v1/NetworkPolicy": func() meta.Object { return new(networking.NetworkPolicy) },
}

// decode reads one object, of which no field may be unknown or there twice.
func decode(doc []byte) (meta.Object, error) {
	var t meta.TypeMeta
	if err := strict.Unmarshal(doc, &t); err != nil {
		return nil, err
	}
	blank, ok := kinds[t.APIVersion+"/"+t.Kind]
	if !ok {
		return nil, fmt.Errorf("unknown kind %s/%s", t.APIVersion, t.Kind)
	}
	object := blank()
	return object, strict.UnmarshalStrict(doc, object)
}

func manifests(t *testing.T) (all []meta.Object) {
	t.Helper()
	files, err := filepath.Glob("../*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no manifests: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(b)))
		for {
			doc, err := docs.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			object, err := decode(doc)
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, doc)
			}
			all = append(all, object)
		}
	}
	return all
}

// of returns those of one kind.
func of[T meta.Object](all []meta.Object) (found []T) {
	for _, o := range all {
		if o, ok := o.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// What refers to something by its name or labels finds it.
func TestReferences(t *testing.T) {
	all := manifests(t)
	deployments := of[*apps.Deployment](all)
	if len(deployments) != 2 {
		t.Fatalf("%d deployments", len(deployments))
	}
	selected := func(selector map[string]string) *core.PodTemplateSpec {
		for _, d := range deployments {
			if labels.SelectorFromSet(selector).Matches(labels.Set(d.Spec.Template.Labels)) {
				return &d.Spec.Template
			}
		}
		t.Errorf("%v selects nothing", selector)
		return new(core.PodTemplateSpec)
	}
	exists := map[string]bool{}
	for _, o := range of[*core.ConfigMap](all) {
		exists["config "+o.Name] = true
	}
	for _, o := range of[*core.Secret](all) {
		exists["secret "+o.Name] = true
	}
	for _, d := range deployments {
		if !labels.SelectorFromSet(d.Spec.Selector.MatchLabels).Matches(labels.Set(d.Spec.Template.Labels)) {
			t.Errorf("%s does not select its own pods", d.Name)
		}
		volumes := map[string]bool{}
		for _, v := range d.Spec.Template.Spec.Volumes {
			volumes[v.Name] = true
			if v.ConfigMap != nil && !exists["config "+v.ConfigMap.Name] || v.Secret != nil && !exists["secret "+v.Secret.SecretName] {
				t.Errorf("%s: the volume %s refers to nothing", d.Name, v.Name)
			}
		}
		for _, c := range d.Spec.Template.Spec.Containers {
			for _, m := range c.VolumeMounts {
				if !volumes[m.Name] {
					t.Errorf("%s mounts %s, which is not there", d.Name, m.Name)
				}
			}
			for _, probe := range []*core.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
				switch {
				case probe == nil:
				case probe.HTTPGet != nil:
					wantPort(t, c, probe.HTTPGet.Port)
				case probe.TCPSocket != nil:
					wantPort(t, c, probe.TCPSocket.Port)
				}
			}
		}
	}
	for _, s := range of[*core.Service](all) {
		for _, p := range s.Spec.Ports {
			wantPort(t, selected(s.Spec.Selector).Spec.Containers[0], p.TargetPort)
		}
	}
	for _, b := range of[*policy.PodDisruptionBudget](all) {
		selected(b.Spec.Selector.MatchLabels)
		if b.Spec.MinAvailable.IntValue() >= int(*deployments[0].Spec.Replicas) {
			t.Errorf("%s lets no pod go", b.Name)
		}
	}
	for _, n := range of[*networking.NetworkPolicy](all) {
		pod := selected(n.Spec.PodSelector.MatchLabels)
		for _, in := range n.Spec.Ingress {
			selected(in.From[0].PodSelector.MatchLabels)
			wantPort(t, pod.Spec.Containers[0], *in.Ports[0].Port)
		}
	}
}

func wantPort(t *testing.T, c core.Container, port intstr.IntOrString) {
	t.Helper()
	for _, p := range c.Ports {
		if p.Name == port.StrVal && port.StrVal != "" {
			return
		}
	}
	t.Errorf("%s has no port called %s", c.Name, port.String())
}

// No pod may do more than it has to: what the restricted standard for pods asks, and a root that cannot be written.
func TestPodsAreRestricted(t *testing.T) {
	for _, d := range of[*apps.Deployment](manifests(t)) {
		spec := d.Spec.Template.Spec
		pod := spec.SecurityContext
		if pod == nil || pod.RunAsNonRoot == nil || !*pod.RunAsNonRoot || pod.RunAsUser == nil || *pod.RunAsUser == 0 ||
			pod.SeccompProfile == nil || pod.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context %+v", d.Name, pod)
		}
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken || spec.HostNetwork || spec.HostPID {
			t.Errorf("%s gets a token of the cluster, or the node's network or processes", d.Name)
		}
		for _, c := range spec.Containers {
			s := c.SecurityContext
			if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
				s.Capabilities == nil || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" || len(s.Capabilities.Add) != 0 {
				t.Errorf("%s: security context %+v", c.Name, s)
			}
			if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() {
				t.Errorf("%s: resources %+v", c.Name, c.Resources)
			}
		}
	}
}

// The check finds what it is there for.
func TestDecodeIsStrict(t *testing.T) {
	for doc, want := range map[string]string{
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 2}":         `unknown field "replica"`,
		"apiVersion: v1\nkind: Service\nspec: {selector: {a: b}}\nspec: {}": `already set`,
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: two}":      `cannot unmarshal string`,
		"apiVersion: apps/v1beta1\nkind: Deployment":                        "unknown kind",
		"{": "yaml",
	} {
		if _, err := decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", doc, err, want)
		}
	}
}
