package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mcpbridge/internal/config"
	"mcpbridge/internal/redistest"
)

// toEnd is how long the processes of servers have to end after shutdownGrace.
const toEnd = 10 * time.Second

// A manifest is what tests read of an object of Kubernetes; deploy/kubernetes/check reads all of it.
type manifest struct {
	Kind       string
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
	Spec       struct {
		Template struct {
			Spec struct {
				Grace      int `yaml:"terminationGracePeriodSeconds"`
				Containers []struct {
					Image          string
					Args           []string
					StartupProbe   probe `yaml:"startupProbe"`
					ReadinessProbe probe `yaml:"readinessProbe"`
					LivenessProbe  probe `yaml:"livenessProbe"`
				}
			}
		}
	}
}

type probe struct {
	HTTPGet struct{ Path string } `yaml:"httpGet"`
}

// manifests returns the objects of a file by their kinds.
func manifests(t *testing.T, path string) map[string]manifest {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all := map[string]manifest{}
	for docs := yaml.NewDecoder(f); ; {
		var m manifest
		err := docs.Decode(&m)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[m.Kind] = m
	}
}

// The command and the configuration of the manifests work, with their secrets in
// files, and the probes ask for paths that answer.
func TestKubernetes(t *testing.T) {
	redis := redistest.Start(t)
	all := manifests(t, "../../deploy/kubernetes/bridge.yaml")
	secret := manifests(t, "../../deploy/kubernetes/secret.yaml")["Secret"]
	app, appEntry := newKey(t, "app", nil)
	scraper, scraperEntry := newKey(t, "prometheus", nil)
	dir := t.TempDir()
	for name, value := range secret.StringData {
		switch name {
		case "app-hash":
			value = appEntry["hash"].(string)
		case "prometheus-hash":
			value = scraperEntry["hash"].(string)
		case "redis-url":
			value = replaced(t, value, "redis://mcp-bridge-redis:6379", redis.URL())
		}
		write(t, filepath.Join(dir, name), value)
	}
	pod := all["Deployment"].Spec.Template.Spec
	container := pod.Containers[0]
	if container.Image != "mcp-bridge:"+version {
		t.Errorf("the image is %s, this is version %s", container.Image, version)
	}
	for name, text := range all["ConfigMap"].Data {
		text = replaced(t, text, "/etc/mcp-bridge/secrets", dir, "command: /bridge", "command: bridge", "0.0.0.0:8080", "0.0.0.0:0")
		write(t, filepath.Join(dir, name), text)
		wantTime(t, "terminationGracePeriodSeconds", time.Duration(pod.Grace)*time.Second, text)
	}
	args := slices.Clone(container.Args)
	for i := range args {
		args[i] = strings.Replace(args[i], "/etc/mcp-bridge/config", dir, 1)
	}
	p := startArgs(t, args...)
	defer p.stop(syscall.SIGINT) // which does not wait for a balancer
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	p.base = "http://127.0.0.1:" + port
	for _, probe := range []probe{container.StartupProbe, container.ReadinessProbe, container.LivenessProbe} {
		until(t, "the probe "+probe.HTTPGet.Path, func() bool { return p.get(probe.HTTPGet.Path).StatusCode == http.StatusOK })
	}
	if res := p.call("demo", "add", `{"a":40,"b":2}`, 200, "X-API-Key", app); res.Header.Get("Artifact-Ref") == "" {
		t.Error("the result was not kept")
	}
	p.call("demo", "add", `{}`, 401)
	if got := p.do("GET", "/metrics", "", "X-API-Key", scraper).StatusCode; got != http.StatusOK {
		t.Errorf("/metrics for Prometheus: %d", got)
	}
	if got := p.do("GET", "/metrics", "", "X-API-Key", app).StatusCode; got != http.StatusForbidden {
		t.Errorf("/metrics for callers: %d", got)
	}
}

// wantTime demands that whoever kills a bridge in the end gives it the time that its configuration wants.
func wantTime(t *testing.T, name string, have time.Duration, text string) {
	t.Helper()
	cfg, warnings, err := config.Read(strings.NewReader(text), "bridge.yaml", os.Getenv)
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%v %v", err, warnings)
	}
	if cfg.Bridge.DrainDelay == 0 {
		t.Error("no balancer would see the bridge stop: drainDelay is 0")
	}
	if want := cfg.Bridge.DrainDelay + cfg.Bridge.ShutdownGrace + toEnd; have < want {
		t.Errorf("%s is %v, but to stop may take %v", name, have, want)
	}
}

func TestTimesToStop(t *testing.T) {
	file := readCompose(t)
	for name, s := range file.Services {
		if strings.HasPrefix(name, "bridge-") {
			wantTime(t, name+": stop_grace_period", s.StopGracePeriod, file.Configs[s.Configs[0].Source].Content)
		}
	}
	unit, err := os.ReadFile("../../deploy/systemd/mcp-bridge.service")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^TimeoutStopSec=(\d+)$`).FindSubmatch(unit)
	if found == nil {
		t.Fatal("the unit has no TimeoutStopSec")
	}
	seconds, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	wantTime(t, "TimeoutStopSec", time.Duration(seconds)*time.Second, "mcpServers: {}\nbridge: {drainDelay: 5s}")
}

// systemd finds nothing to say about the unit, and little that it could still be kept from.
func TestSystemdUnit(t *testing.T) {
	b, err := os.ReadFile("../../deploy/systemd/mcp-bridge.service")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mcp-bridge.service")
	write(t, path, replaced(t, string(b), "ExecStart=/usr/local/bin/bridge ", "ExecStart="+self(t)+" ")) // a program that exists
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--threshold=25", path).CombinedOutput() // 2.5 of 10
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// promtool runs Prometheus' own checker in deploy/prometheus.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "promtool", args...)
	cmd.Dir = "../../deploy/prometheus"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestPrometheus(t *testing.T) {
	promtool(t, "check", "config", "--syntax-only", "prometheus.yml") // the file of the key is not there
	promtool(t, "check", "rules", "alerts.yml")
	promtool(t, "test", "rules", "alerts_test.yml")
	tested, err := os.ReadFile("../../deploy/prometheus/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range alertRules(t) {
		if !strings.Contains(string(tested), "alertname: "+r.Alert+"\n") {
			t.Errorf("no test has %s fire", r.Alert)
		}
	}
}

type alertRule struct{ Alert, Expr string }

func alertRules(t *testing.T) (rules []alertRule) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alertRule } }
	if err := yaml.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		rules = append(rules, g.Rules...)
	}
	if len(rules) == 0 {
		t.Fatal("no rules")
	}
	return rules
}

// A dashboard is what tests read of Grafana's.
type dashboard struct {
	Panels []struct {
		ID      int
		Title   string
		Type    string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	b, err := os.ReadFile("../../deploy/grafana/mcp-bridge.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// The dashboard's panels have their own places and numbers, and ask what Prometheus understands.
func TestDashboard(t *testing.T) {
	ids, places := map[int]bool{}, map[[2]int]string{}
	var rules bytes.Buffer
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has the number %d", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := places[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q, or outside", p.Title, other)
				}
				places[[2]int{x, y}] = p.Title
			}
		}
		if (p.Type == "row") != (len(p.Targets) == 0) {
			t.Errorf("%s is a %s with %d questions", p.Title, p.Type, len(p.Targets))
		}
		for i, target := range p.Targets {
			expr, err := json.Marshal(strings.NewReplacer("$__rate_interval", "1m", "$job", "mcp-bridge", "$instance", ".*").Replace(target.Expr))
			if err != nil {
				t.Fatal(err)
			}
			rules.WriteString("      - {record: 'panel_" + strconv.Itoa(p.ID) + "_" + strconv.Itoa(i) + "', expr: " + string(expr) + "}\n")
		}
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	write(t, path, rules.String())
	promtool(t, "check", "rules", path)
}

var (
	metricNames  = regexp.MustCompile(`\b(?:mcp_bridge|process|go)_[a-z_]+\b`)
	labelMatches = regexp.MustCompile(`(\w+)(=~?|!=)"([^"$]*)"`)
	labelGroups  = regexp.MustCompile(`\b(?:by|without) \(([^)]*)\)`)
)

// Every metric, label and value that the alerts and the dashboard ask for is one that a bridge has.
func TestMetricsThatAreAskedFor(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, nil)
	p.ready()
	p.call("ok", "echo", `{"message":"x"}`, 200)
	var text string
	until(t, "the call is counted", func() bool {
		text = string(p.get("/metrics").body)
		return strings.Contains(text, `mcp_bridge_calls_total{code="",server="ok"} 1`)
	})
	var all []string
	for _, r := range alertRules(t) {
		all = append(all, r.Expr)
	}
	for _, panel := range readDashboard(t).Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	ofPrometheus := []string{"job", "instance", "le"}
	for _, expr := range all {
		for _, name := range metricNames.FindAllString(expr, -1) {
			if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
				t.Errorf("there is no metric %s: %s", name, expr)
			}
		}
		var labels []string
		for _, m := range labelMatches.FindAllStringSubmatch(expr, -1) {
			labels = append(labels, m[1])
			for value := range strings.SplitSeq(m[3], "|") {
				switch {
				case value == "" || slices.Contains(ofPrometheus, m[1]):
				case m[1] == "code": // appears with the first such problem
					if p.get("/problems/"+value).StatusCode != http.StatusOK {
						t.Errorf("there is no problem %s: %s", value, expr)
					}
				case !strings.Contains(text, m[1]+`="`+value+`"`):
					t.Errorf("there is no %s=%q: %s", m[1], value, expr)
				}
			}
		}
		for _, m := range labelGroups.FindAllStringSubmatch(expr, -1) {
			labels = append(labels, strings.Split(m[1], ", ")...)
		}
		for _, label := range labels {
			if !slices.Contains(ofPrometheus, label) && !strings.Contains(text, label+`="`) {
				t.Errorf("there is no label %s: %s", label, expr)
			}
		}
	}
}

// For every alert there is what to do about it.
func TestAlertsAreExplained(t *testing.T) {
	text, err := os.ReadFile("../../deploy/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range alertRules(t) {
		if !bytes.Contains(text, []byte("| `"+rule.Alert+"` |")) {
			t.Errorf("it does not say what to do about %s", rule.Alert)
		}
	}
}
