package mcptest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func banner([]string) (*server, error) {
	fmt.Fprintln(os.Stderr, "[info] warming up")
	fmt.Println("*** Example MCP Server v1.2.3 ***")
	fmt.Println()
	fmt.Println(`{"level":"info","msg":"JSON, but no JSON-RPC"}`)
	fmt.Println("[1, 2")
	s := newServer(kit()...)
	s.frame = func(frame []byte) []byte {
		fmt.Fprintln(os.Stderr, "[debug] about to answer")
		return append([]byte("debug: about to answer\n"), frame...)
	}
	return s, nil
}

func exitAtOnce(args []string) error {
	status, words := 3, "no licence found"
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil {
			return fmt.Errorf("%q is no status", args[0])
		}
		status = n
	}
	if len(args) > 1 {
		words = args[1]
	}
	fmt.Fprintln(os.Stderr, words)
	os.Exit(status)
	return nil
}

func neverAnswerInitialize([]string) error {
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

func stubborn([]string) (*server, error) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGPIPE)
	s := newServer(kit()...)
	s.stay = true
	return s, nil
}

func stopsReading([]string) (*server, error) {
	s := newServer(kit()...)
	s.first = func(w *wire, m *message) bool {
		if m.Method == "tools/list" {
			w.answer(m.ID, w.s.listTools())
			forever() // this is the one reader
		}
		return false
	}
	return s, nil
}

func pauses([]string) (*server, error) {
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGUSR1)
	s := newServer(append(kit(), fixed("pause", "Answers, and reads no more until SIGUSR1 comes.", text("pausing"), ``))...)
	s.first = func(w *wire, m *message) bool {
		if m.Method != "tools/call" || !strings.Contains(string(m.Params), `"pause"`) {
			return false
		}
		w.answer(m.ID, text("pausing"))
		<-goOn // this is the one reader
		return true
	}
	return s, nil
}

func neverAnswerCall([]string) (*server, error) {
	s := newServer(kit()...)
	s.first = func(_ *wire, m *message) bool { return m.Method == "tools/call" }
	return s, nil
}

func noPing([]string) (*server, error) {
	s := newServer(kit()...)
	s.first = func(w *wire, m *message) bool {
		if m.Method == "ping" {
			w.refuse(m.ID, -32601, "method not found")
			return true
		}
		return false
	}
	return s, nil
}

// forever never returns. A channel would not do: the runtime ends a process of which all goroutines wait for nothing.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

// dieInCall counts its calls in a file, since the process that made one is gone.
func dieInCall(args []string) (*server, error) {
	file := ""
	if len(args) > 0 {
		file = args[0]
	}
	die := func(half string) func(context.Context, *call) (string, error) {
		return func(_ context.Context, c *call) (string, error) {
			if file != "" {
				ran, err := runs(file, c.Name)
				if err != nil {
					return "", err
				}
				if ran > 1 {
					return text(fmt.Sprintf("ran %d times", ran)), nil
				}
			}
			c.mu.Lock() // held to the end: nobody writes behind it
			_, _ = io.WriteString(c.w, half)
			fmt.Fprintln(os.Stderr, "fatal: the tool took the server down")
			os.Exit(7)
			return "", nil
		}
	}
	tools := append(kit(),
		&tool{"die", def("die", "Dies.", ``, ``), die("")},
		&tool{"die_idempotent", def("die_idempotent", "Dies, but may be called again.", ``, idempotent), die("")},
		&tool{"die_read_only", def("die_read_only", "Dies, but changes nothing.", ``, readOnly), die("")},
		&tool{"die_half", def("die_half", "Dies in the middle of its answer.", ``, ``), die(`{"jsonrpc":"2.0","result":{"content":[{"type":"te`)},
	)
	return newServer(tools...), nil
}

// runs appends a line to the file and returns how many it holds then.
func runs(file, line string) (int, error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if _, err := fmt.Fprintln(f, line); err != nil {
		return 0, err
	}
	b, err := os.ReadFile(file)
	return strings.Count(string(b), "\n"), err
}
