package stdio

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A fakeServer is an MCP server by hand, good and bad. It runs in a process of its own.
type fakeServer struct {
	in *bufio.Reader

	mu    sync.Mutex
	lines []string // frames read, without the handshake

	asked   chan json.RawMessage     // answers to what it asked the client
	cancels map[string]chan struct{} // :: id -> closed when it is cancelled
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		RequestID json.RawMessage `json:"requestId"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

var say sync.Mutex

// sayf writes one line to standard output.
func sayf(format string, args ...any) {
	say.Lock()
	defer say.Unlock()
	fmt.Fprintf(os.Stdout, format+"\n", args...)
}

// fake is the main of the servers. Each mode is a way to be wrong from the start;
// "plain" and its like have tools for what can go wrong later.
func fake(mode string) {
	s := &fakeServer{in: bufio.NewReaderSize(os.Stdin, 1<<20), asked: make(chan json.RawMessage, 1), cancels: map[string]chan struct{}{}}
	switch mode {
	case "mirror":
		n, _ := strconv.Atoi(os.Getenv("SIZE"))
		if n == 0 {
			mirror(nil)
		} else {
			mirror(mirrorText(n))
		}
		return
	case "parent":
		parent()
	case "exits":
		fmt.Fprintln(os.Stderr, "cannot open the \x1b[31mdatabase\x1b[0m\x07")
		exit(3)
	case "silent":
		fmt.Fprintln(os.Stderr, "still compiling")
		sleep()
	case "banner":
		fmt.Println("Welcome to the server!")
		fmt.Println(`{"level":"info","msg":"ready"}`)
		fmt.Println(`[1,2,3]`)
		fmt.Println()
		fmt.Println(strings.Repeat("=", 100_000))
	case "deaf": // to every wish that it ends; its child too
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		cmd := exec.Command(os.Args[1], "-c", "trap '' TERM; sleep "+os.Args[2]+" & wait")
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		defer sleep()
	}
	s.serve(mode)
}

func (s *fakeServer) serve(mode string) {
	for {
		line, err := s.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if err := json.Unmarshal(line, &m); err != nil {
			fmt.Fprintf(os.Stderr, "the server got a bad frame: %.100q\n", line)
			exit(9)
		}
		switch m.Method {
		case "initialize":
			s.initialize(mode, &m)
			continue
		case "server/discover":
			if mode != "stateless" {
				sayf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, m.ID)
				continue
			}
			sayf(`{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},`+
				`"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fake","version":"2"}}}}`, m.ID)
			continue
		case "subscriptions/listen", "notifications/initialized":
			continue
		}
		s.mu.Lock()
		s.lines = append(s.lines, strings.TrimSpace(string(line)))
		switch m.Method {
		case "":
			s.asked <- line
		case "tools/call":
			s.cancels[string(m.ID)] = make(chan struct{})
			if m.Params.Name == "closeinput" {
				_ = os.Stdin.Close()
				sayf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				sleep()
			}
			if m.Params.Name == "deafen" {
				sayf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID)
				sleep() // holding the lock; nothing is read any more
			}
			go s.tool(&m)
		case "notifications/cancelled":
			if c := s.cancels[string(m.Params.RequestID)]; c != nil {
				close(c)
			}
		default:
			sayf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method","data":{"method":%q}}}`, m.ID, m.Method)
		}
		s.mu.Unlock()
	}
}

func (s *fakeServer) initialize(mode string, m *message) {
	version := "2025-11-25"
	switch mode {
	case "tellsall": // to whoever cannot do anything about it
		sayf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":%q}}`, m.ID, "no entry with "+os.Getenv("TOKEN"))
		return
	case "refuses", "stateless":
		sayf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"not\nlike this"}}`, m.ID)
		return
	case "ancient":
		version = "1999-12-31" + os.Getenv("TOKEN")
	case "breaks":
		fmt.Print(`{"jsonrpc":"2.0","id":1,"result":{"protocol`)
		exit(0)
	}
	sayf(`{"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true},"logging":{}},`+
		`"serverInfo":{"name":"fake","title":"A fake","version":"1"},"instructions":"be careful"},"id":%s,"jsonrpc":"2.0"}`, version, m.ID)
}

// tool runs one of the tools.
func (s *fakeServer) tool(m *message) {
	var a struct {
		N     int
		Text  string
		Every time.Duration
		Path  string
	}
	_ = json.Unmarshal(m.Params.Arguments, &a)
	s.mu.Lock()
	cancelled := s.cancels[string(m.ID)]
	s.mu.Unlock()
	answer := func(format string, args ...any) {
		sayf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, fmt.Sprintf(format, args...))
	}
	progress := func(i int) {
		sayf(`{"jsonrpc":"2.0","method":"notifications\/progress","params":{"progressToken":%s,"progress":%d}}`, m.Params.Meta.Token, i)
	}
	switch m.Params.Name {
	case "echo":
		if m.Params.Arguments == nil {
			m.Params.Arguments = []byte("{}")
		}
		answer("%s", m.Params.Arguments)
	case "received":
		s.mu.Lock()
		b, _ := json.Marshal(s.lines)
		s.mu.Unlock()
		answer("%s", b)
	case "text": // the result is the text, whatever it is
		answer("%s", a.Text)
	case "frame": // the whole frame is the text, with @ for the id
		sayf("%s", strings.ReplaceAll(a.Text, "@", string(m.ID)))
	case "big": // a string of n bytes, the id behind it
		sayf(`{"jsonrpc":"2.0","result":{"id":7,"s":"%s"},"id":%s}`, strings.Repeat("\\\"x}", a.N/4), m.ID)
	case "flood": // n bytes without a line feed
		say.Lock()
		defer say.Unlock()
		chunk := strings.Repeat(a.Text, 1<<20/len(a.Text))
		for sent := 0; sent < a.N; sent += len(chunk) {
			fmt.Print(chunk)
		}
		fmt.Println()
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
	case "progress": // n times
		for i := range a.N {
			progress(i + 1)
			time.Sleep(a.Every)
		}
		answer(`{"n":%d}`, a.N)
	case "forever": // progress, whatever it is told
		for i := 0; ; i++ {
			progress(i)
			time.Sleep(a.Every)
		}
	case "late": // answers when it is cancelled
		<-cancelled
		answer(`{"late":true}`)
	case "never":
	case "die":
		fmt.Fprintln(os.Stderr, a.Text)
		exit(a.N)
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "closeoutput":
		_ = os.Stdout.Close()
	case "half":
		say.Lock()
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"a":`, m.ID)
		exit(0)
	case "answerandexit":
		answer(`{"last":%q}`, strings.Repeat("x", a.N))
		exit(0)
	case "stderr":
		for i := range a.N {
			fmt.Fprintf(os.Stderr, "%s %d\n", a.Text, i)
		}
		answer(`{}`)
	case "changed":
		sayf(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		sayf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`)
		answer(`{}`)
	case "ask":
		sayf(`{"jsonrpc":"2.0","id":"q","method":%q,"params":{}}`, a.Text)
		line := <-s.asked
		answer("%s", strings.TrimSpace(string(line)))
	case "env":
		b, _ := json.Marshal(map[string]any{"env": os.Environ(), "args": os.Args, "fds": openFDs()})
		answer("%s", b)
	case "escape": // a child in a session of its own, which keeps our output open
		cmd := exec.Command(a.Path, "-c", "sleep "+a.Text)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		answer(`{"pid":%d}`, cmd.Process.Pid)
	}
}

// openFDs counts the descriptors that a process inherited beyond the standard three.
func openFDs() int {
	n := 0
	for fd := 3; fd < 64; fd++ {
		if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasPrefix(link, "pipe:") {
			n++
		}
	}
	return n
}

// exit ends a fake at once; os.Exit sleeps for a second under the race detector.
func exit(code int) { syscall.Exit(code) }

// sleep never returns, and is no deadlock.
func sleep() {
	for {
		time.Sleep(time.Hour)
	}
}
