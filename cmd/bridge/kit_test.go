package main

import (
	"net"
	"os"
	"testing"
	"time"

	"mcpbridge/internal/mcptest"
)

const (
	exactNumbers   = mcptest.ExactNumbers
	exactBlocks    = mcptest.ExactBlocks
	exactSurrogate = mcptest.ExactSurrogate
	pngData        = mcptest.PNG
)

// mode returns the entry of a misbehaving server.
func mode(t *testing.T, name string, args ...string) server {
	t.Helper()
	line := mcptest.CommandLine(t, name, args...)
	return server{"command": line[0], "args": line[1:]}
}

// with returns s with one more key.
func with(s server, key string, value any) server {
	s[key] = value
	return s
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// freePort returns a port on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, err := net.SplitHostPort(ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func waitForPort(t *testing.T, port string) {
	t.Helper()
	for range 300 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("nobody listens on port %s", port)
}
