package main

import (
	"bytes"
	"encoding/csv"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"mcpbridge/internal/redistest"
)

// A composeFile is what tests read of docker-compose.yml.
type composeFile struct {
	Services map[string]struct {
		Build           struct{ Context, Target string }
		Image           string
		Command, Ports  []string
		Configs         []struct{ Source, Target string }
		ReadOnly        bool          `yaml:"read_only"`
		CapDrop         []string      `yaml:"cap_drop"`
		StopGracePeriod time.Duration `yaml:"stop_grace_period"`
	}
	Configs map[string]struct{ File, Content string }
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	b, err := os.ReadFile("../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c composeFile
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A composed is what docker-compose.yml starts, as processes: its commands and its
// files, with only the names of the containers' world changed.
type composed struct {
	t        *testing.T
	balancer string // the address of the balancer
	stats    string // its socket
	commands []args // of the bridges
	bridges  []*process
}

type args []string

// startComposed starts Redis, the bridges and the balancer; changes are pairs of
// texts in the bridges' configuration and what the test has in their place.
func startComposed(t *testing.T, changes ...string) *composed {
	t.Helper()
	file := readCompose(t)
	redis := redistest.Start(t, file.Services["redis"].Command[1:]...)

	c := &composed{t: t, balancer: "127.0.0.1:" + freePort(t), stats: filepath.Join(t.TempDir(), "stats")}
	text, err := os.ReadFile(filepath.Join("../..", file.Configs["balancer"].File))
	if err != nil {
		t.Fatal(err)
	}
	balancer := replaced(t, string(text), "bind :8080", "bind "+c.balancer,
		"inter 1s fastinter 250ms downinter 500ms", "inter 300ms fastinter 100ms downinter 200ms", // a test need not last as long
		"\ndefaults\n", "    stats socket "+c.stats+"\n\ndefaults\n")
	for _, name := range []string{"bridge-1", "bridge-2"} {
		service := file.Services[name]
		at := "127.0.0.1:" + freePort(t)
		balancer = replaced(t, balancer, name+":8080", at)
		path := filepath.Join(t.TempDir(), "bridge.yaml")
		changes := append([]string{"command: /bridge", "command: bridge", "redis://redis:6379", redis.URL()}, changes...)
		write(t, path, replaced(t, file.Configs[service.Configs[0].Source].Content, changes...))
		command := slices.Clone(service.Command)
		command[slices.Index(command, service.Configs[0].Target)] = path
		command[slices.Index(command, "0.0.0.0:8080")] = at
		c.commands = append(c.commands, command)
		c.bridges = append(c.bridges, startArgs(t, command...))
	}
	t.Cleanup(c.interrupt)
	path := filepath.Join(t.TempDir(), "haproxy.cfg")
	write(t, path, balancer)
	for _, p := range c.bridges { // else the balancer would count that as a failure
		p.ready()
	}
	startHAProxy(t, path)
	for i := range c.bridges {
		c.up(i)
	}
	return c
}

// replaced returns text with each of the pairs, which must be there, replaced.
func replaced(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for pair := range slices.Chunk(pairs, 2) {
		if !strings.Contains(text, pair[0]) {
			t.Fatalf("there is no %q in:\n%s", pair[0], text)
		}
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

func startHAProxy(t *testing.T, config string) {
	t.Helper()
	path := haproxy(t)
	if out, err := exec.CommandContext(t.Context(), path, "-c", "-f", config).CombinedOutput(); err != nil || bytes.Contains(out, []byte("[WARNING]")) {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	cmd := exec.Command(path, "-db", "-f", config)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the balancer said:\n%s", &out)
		}
	})
}

// haproxy returns the path of the program, which Debian has where only root looks.
func haproxy(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	path, err := exec.LookPath("/usr/sbin/haproxy")
	if err != nil {
		t.Fatal("there is no haproxy; make deps installs it")
	}
	return path
}

// interrupt stops the bridges, without waiting for the balancer.
func (c *composed) interrupt() {
	c.t.Helper()
	for _, p := range c.bridges {
		p.stop(syscall.SIGINT)
	}
}

// up waits until the balancer sends calls to this bridge.
func (c *composed) up(i int) {
	c.t.Helper()
	until(c.t, "the balancer finds the bridge", func() bool { return c.server(i)["status"] == "UP" && c.server(i)["check_status"] == "L7OK" })
}

// server returns what the balancer counts of a bridge.
func (c *composed) server(i int) map[string]string {
	c.t.Helper()
	all := c.show()
	return all["bridges/"+[]string{"bridge-1", "bridge-2"}[i]]
}

// show returns the balancer's counters by proxy and server; nil while it starts.
func (c *composed) show() map[string]map[string]string {
	c.t.Helper()
	conn, err := net.Dial("unix", c.stats)
	if err != nil {
		return nil
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "show stat\n"); err != nil {
		c.t.Fatal(err)
	}
	rows, err := csv.NewReader(conn).ReadAll()
	if err != nil || len(rows) < 2 {
		c.t.Fatalf("the balancer's counters: %v, %d rows", err, len(rows))
	}
	all := map[string]map[string]string{}
	for _, row := range rows[1:] {
		values := map[string]string{}
		for i, name := range rows[0] {
			values[name] = row[i]
		}
		all[row[0]+"/"+row[1]] = values
	}
	return all
}

// What docker-compose.yml starts works: whichever bridge the balancer chooses answers for the other, too.
func TestCompose(t *testing.T) {
	file := readCompose(t)
	if len(file.Services) != 4 || len(file.Services["redis"].Ports) != 0 {
		t.Errorf("compose = %+v", file)
	}
	for name, s := range file.Services {
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("%s: the port %s is open to others, who need no credential", name, port)
			}
		}
		if strings.HasPrefix(name, "bridge-") && (s.Build.Context != "." || s.Build.Target != "bridge" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.Ports) != 0) {
			t.Errorf("%s = %+v", name, s)
		}
	}
	c := startComposed(t)
	p := &process{t: t, base: "http://" + c.balancer}
	ref := p.call("demo", "add", `{"a":40,"b":2}`, 200).Header.Get("Artifact-Ref")
	for range 4 {
		if got := p.get("/artifacts/" + ref + "/sum"); string(got.body) != "42" {
			t.Errorf("the artifact = %d %s", got.StatusCode, got.body)
		}
	}
	for i := range c.bridges {
		if n := c.server(i)["stot"]; n == "0" {
			t.Errorf("the balancer sent bridge %d nothing", i+1)
		}
	}
	wantProblem(t, p.do("GET", "/tools", "", "Host", "evil.example"), 403, "forbidden", "")

	// The sessions of MCP clients stay where they began.
	for range 2 {
		const accept = "application/json, text/event-stream"
		begun := p.do("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, "Accept", accept)
		session := begun.Header.Get("Mcp-Session-Id")
		if begun.StatusCode != 200 || session == "" {
			t.Fatalf("no session: %d %s", begun.StatusCode, begun.body)
		}
		for range 5 {
			res := p.do("POST", "/mcp", `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`, "Accept", accept, "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-06-18")
			if res.StatusCode != 200 || !bytes.Contains(res.body, []byte("demo__add")) {
				t.Errorf("in a session: %d %.200s", res.StatusCode, res.body)
			}
		}
	}
}
