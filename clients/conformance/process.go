package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A process is a server that was started here.
type process struct {
	url  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// stop ends the process and waits for that.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended already
	select {
	case <-p.done:
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// writeConfig writes the configuration of a bridge with these servers on a free port.
func writeConfig(dir string, servers map[string]any) (path string, err error) {
	path = filepath.Join(dir, "bridge.json")
	b, err := json.MarshalIndent(map[string]any{"mcpServers": servers, "bridge": map[string]any{"listen": "127.0.0.1:0"}}, "", "  ")
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, b, 0o600)
}

// startBridge runs the program with a configuration, and waits until it listens. The log is closed when it ends.
func startBridge(ctx context.Context, program, config string, log io.WriteCloser) (*process, error) {
	cmd := exec.CommandContext(ctx, program, "serve", "--config", config)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	listening := make(chan string, 1)
	go func() { // ends with the process
		defer close(p.done)
		defer log.Close()
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(log, lines.Text())
			var line struct{ Msg, Addr string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
				listening <- line.Addr
			}
		}
		_ = cmd.Wait() // how it ended its log says
	}()
	select {
	case addr := <-listening:
		p.url = "http://" + addr
		return p, nil
	case <-p.done:
		return nil, errors.New("the bridge ended; see its log")
	case <-time.After(time.Minute):
		p.stop()
		return nil, errors.New("the bridge does not listen")
	}
}

// startFixture runs the SDK's own server for this suite on the address, and waits until it
// answers. Without sessions it speaks the latest version of the protocol, else the ones before.
func startFixture(ctx context.Context, program, addr string, sessions bool) (*process, error) {
	cmd := exec.CommandContext(ctx, program, "-http="+addr, fmt.Sprintf("-stateless=%v", !sessions))
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{url: "http://" + addr, cmd: cmd, done: make(chan struct{})}
	go func() { // ends with the process
		_ = cmd.Wait()
		close(p.done)
	}()
	for range 600 {
		if res, err := http.Get(p.url); err == nil {
			_ = res.Body.Close()
			return p, nil
		}
		select {
		case <-p.done:
			return nil, errors.New("the fixture ended")
		case <-time.After(50 * time.Millisecond):
		}
	}
	p.stop()
	return nil, errors.New("the fixture does not listen")
}
