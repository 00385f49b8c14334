// Command conformance runs the official conformance suite against the bridge, in both roles:
//
//	conformance [-update] [-v]  runs all of it, and compares with docs/conformance.md
//	conformance client URL      is the command that the suite runs to test the bridge as a client
//
// Start with [serverRuns], which sets up what is tested.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx := context.Background()
	var err error
	if len(os.Args) == 3 && os.Args[1] == "client" {
		err = client(ctx, os.Args[2])
	} else {
		err = runAll(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// versions are those of the protocol that the suite knows, and what stands between the suite
// and a server of them: the SDK's fixture speaks either those with sessions or the one without.
var versions = []struct {
	name     string
	sessions bool
}{{"2025-03-26", true}, {"2025-06-18", true}, {"2025-11-25", true}, {"2026-07-28", false}, {extension, false}}

func runAll(ctx context.Context) error {
	update := flag.Bool("update", false, "write the table in docs/conformance.md")
	dir := flag.String("dir", "clients/conformance", "the folder of this program")
	flag.Parse()
	here, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	out := filepath.Join(here, "out")
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	bridge, err := build(ctx, here, out, "bridge", "mcpbridge/cmd/bridge")
	if err != nil {
		return err
	}
	fixture, err := build(ctx, here, out, "fixture", "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	if err != nil {
		return err
	}
	s, err := newSuite(here, out, envBridge+"="+bridge, envTurns+"="+out, "HOME="+out) // where the inspector keeps things
	if err != nil {
		return err
	}
	all, err := s.list(ctx)
	if err != nil {
		return err
	}
	results := map[run]result{}
	began := time.Now()
	if err := serverRuns(ctx, s, bridge, fixture, results); err != nil {
		return err
	}
	if err := clientRuns(ctx, s, all, results); err != nil {
		return err
	}
	// The suite has no way to run the extensions alone.
	maps.DeleteFunc(results, func(r run, _ result) bool { return r.version == extension && !slices.Contains(all, r) })
	if err := judge(all, results); err != nil {
		return err
	}
	passes := len(all)
	for _, r := range all {
		if exceptionFor(r) >= 0 {
			passes--
		}
	}
	fmt.Printf("conformance: %d runs in %v: %d pass, %d do not apply\n", len(all), time.Since(began).Round(time.Second), passes, len(all)-passes)
	return checkPage(filepath.Join(here, "../../docs/conformance.md"), table(all), *update)
}

// build compiles a program of this module, or of one that it uses. CONFORMANCE_BRIDGE is a bridge that is there already.
func build(ctx context.Context, dir, out, name, pkg string) (string, error) {
	if path := os.Getenv(envBridge); name == "bridge" && path != "" {
		return path, nil
	}
	path := filepath.Join(out, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, b)
	}
	return path, nil
}

// A stack is what the suite's server scenarios are run against: the proxy that gives the suite
// the names that it asks for, the bridge, and the SDK's own server for the suite behind it.
type stack struct {
	fixture, bridge *process
	proxy           *httptest.Server
}

func newStack(ctx context.Context, dir, bridge, fixture string, sessions bool) (_ *stack, err error) {
	k := &stack{}
	defer func() {
		if err != nil {
			k.stop()
		}
	}()
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	if k.fixture, err = startFixture(ctx, fixture, addr, sessions); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	config, err := writeConfig(dir, map[string]any{handle: map[string]any{"url": k.fixture.url, "elicitation": true}})
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, "bridge.log"))
	if err != nil {
		return nil, err
	}
	if k.bridge, err = startBridge(ctx, bridge, config, log); err != nil {
		return nil, err
	}
	u, err := url.Parse(k.bridge.url)
	if err != nil {
		return nil, err
	}
	k.proxy = httptest.NewServer(newProxy(u))
	return k, nil
}

func (k *stack) stop() {
	if k.proxy != nil {
		k.proxy.CloseClientConnections()
		k.proxy.Close()
	}
	for _, p := range []*process{k.bridge, k.fixture} {
		if p != nil {
			p.stop()
		}
	}
}

// url is what the suite is given. It is by name, since that is what the suite's check of Host is about.
func (k *stack) url() string {
	return strings.Replace(k.proxy.URL, "127.0.0.1", "localhost", 1) + "/mcp"
}

// freeAddr returns an address that nobody listens on.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// serverRuns runs all scenarios against /mcp, each version on a stack of its own: the fixture changes as it is used.
func serverRuns(ctx context.Context, s *suite, bridge, fixture string, results map[run]result) error {
	for _, v := range versions {
		k, err := newStack(ctx, filepath.Join(s.out, "stack-"+v.name), bridge, fixture, v.sessions)
		if err != nil {
			return err
		}
		err = s.try(ctx, results, asServer, v.name, "--url", k.url())
		if err == nil && v.name == extension {
			err = inspect(ctx, s, k.bridge.url+"/mcp")
		}
		k.stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// clientRuns runs all scenarios against the bridge as a client: this program, which the suite runs for each, starts one.
func clientRuns(ctx context.Context, s *suite, all []run, results map[run]result) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, v := range versions {
		if err := s.try(ctx, results, asClient, v.name, "--command", self+" client"); err != nil {
			return err
		}
	}
	for _, r := range all { // some extensions are in none of its collections
		if _, ok := results[r]; r.role == asClient && r.version == extension && !ok {
			if err := s.try(ctx, results, asClient, extension, "--command", self+" client", "--scenario", r.scenario); err != nil {
				return err
			}
		}
	}
	return nil
}
