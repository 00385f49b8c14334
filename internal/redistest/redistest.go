// Package redistest runs real servers of Redis for tests: processes on ports of loopback
// that were free, which keep nothing on a disk.
package redistest

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A Server is a redis-server. It ends with the process that started it, whatever becomes of that.
type Server struct {
	port int
	dir  string
	args []string // all but the port

	cmd  *exec.Cmd // nil: it does not run
	hold io.Closer // what keeps the server alive
	out  *bytes.Buffer
}

// Start starts a server with these arguments besides its own, and stops it when the test ends.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	s := New(t, args...)
	t.Cleanup(s.Stop)
	return s
}

// New is [Start] for a server that several tests share: whoever has it stops it.
func New(t testing.TB, args ...string) *Server {
	t.Helper()
	return begin(t, append([]string{"--save", "", "--appendonly", "no"}, args...))
}

// StartSentinel starts a sentinel with the configuration in a file of its own.
func StartSentinel(t testing.TB, file string) *Server {
	t.Helper()
	s := begin(t, []string{file, "--sentinel"})
	t.Cleanup(s.Stop)
	return s
}

func begin(t testing.TB, args []string) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis-test-") //nolint:usetesting // a shared server outlives the test that starts it
	if err != nil {
		t.Fatal(err)
	}
	var said string
	for range 10 { // another process may take the port first
		s := &Server{port: FreePort(t), dir: dir, args: args}
		if s.start(t) {
			return s
		}
		said = s.out.String()
	}
	os.RemoveAll(dir)
	t.Fatalf("redis-server did not start ten times over: %s", said)
	return nil
}

// Addr returns host and port.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Port returns the port that it listens at.
func (s *Server) Port() int { return s.port }

// Output returns what it has logged, for a test that fails.
func (s *Server) Output() string { return s.out.String() }

// URL returns the URL of its first database.
func (s *Server) URL() string { return "redis://" + s.Addr() + "/0" }

// Kill ends the server as a crash would.
func (s *Server) Kill() {
	if s.cmd != nil {
		_ = s.hold.Close()
		_ = s.cmd.Wait() // which says that it was killed
		s.cmd = nil
	}
}

// Restart starts a killed server again where it was. It knows nothing any more.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	if !s.start(t) {
		t.Fatalf("redis-server does not start again: %s", s.out)
	}
}

// Stop ends the server, and removes what it wrote.
func (s *Server) Stop() {
	s.Kill()
	os.RemoveAll(s.dir)
}

// start starts the server on its port, and reports whether it answers there.
func (s *Server) start(t testing.TB) bool {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Fatal("there is no redis-server; make deps installs it")
	}
	// The shell's input ends with this process, also if that panics: no server is left behind.
	const script = `"$@" </dev/null & read -r _; kill -9 $!; wait`
	args := append([]string{"-c", script, "sh", path}, s.args...)
	args = append(args, "--port", fmt.Sprint(s.port), "--bind", "127.0.0.1", "--dir", s.dir)
	s.out = new(bytes.Buffer)
	s.cmd = exec.Command("sh", args...)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if s.hold, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if waitFor(5*time.Second, s.answers) {
		return true
	}
	s.Kill()
	return false
}

func (s *Server) answers() bool { return s.says("PING") != "" }

// says sends a command of plain words, and returns the beginning of what comes back.
// A server that asks for a password, or is still loading, answers too.
func (s *Server) says(command string) string {
	c, err := net.DialTimeout("tcp", s.Addr(), time.Second)
	if err != nil {
		return ""
	}
	defer c.Close()
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return ""
	}
	if _, err := io.WriteString(c, command+"\r\n"); err != nil {
		return ""
	}
	b := make([]byte, 4096)
	n, _ := c.Read(b)
	return string(b[:n])
}

// NewCluster starts a cluster of three. Whoever has the servers stops them.
func NewCluster(t testing.TB) []*Server {
	t.Helper()
	const nodes, slots = 3, 16384
	servers := make([]*Server, nodes)
	for i := range servers {
		servers[i] = New(t, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf")
	}
	for i, s := range servers {
		for _, command := range []string{
			fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/nodes, (i+1)*slots/nodes-1),
			fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d", servers[0].port),
		} {
			if said := s.says(command); !strings.HasPrefix(said, "+OK") {
				t.Fatalf("%s: %q", command, said)
			}
		}
	}
	for _, s := range servers {
		if !waitFor(20*time.Second, func() bool {
			info := s.says("CLUSTER INFO")
			return strings.Contains(info, "cluster_state:ok") && strings.Contains(info, "cluster_known_nodes:3")
		}) {
			t.Fatalf("the cluster did not come up: %s", s.says("CLUSTER INFO"))
		}
	}
	return servers
}

// ClusterURL returns the URL of a cluster.
func ClusterURL(servers []*Server) string {
	var addrs []string
	for _, s := range servers[1:] {
		addrs = append(addrs, "addr="+s.Addr())
	}
	return "redis://" + servers[0].Addr() + "?" + strings.Join(addrs, "&")
}

// FreePort returns a port that is free, and so is the one that a cluster would use for its bus.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if port+10000 > 65535 {
			continue
		}
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port+10000)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("there is no free port")
	return 0
}

func waitFor(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if f() {
			return true
		}
	}
	return false
}
