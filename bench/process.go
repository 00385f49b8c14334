package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A process is one of the programs that are measured.
type process struct {
	cmd  *exec.Cmd
	addr string // where it listens
	log  string // the file with what it says
	done chan struct{}
}

// start starts a program that is to listen at addr. What it says goes to a file in dir.
func start(dir, name, addr, program string, args ...string) (*process, error) {
	file := filepath.Join(dir, strconv.FormatInt(time.Now().UnixNano(), 36)+"-"+strings.Map(fileChar, name)+".log")
	log, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()    // the program has its own handle
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // ended by stop
	cmd.Stdout, cmd.Stderr = log, log
	// An interrupt at the terminal is for this program, which then ends the others.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, addr: addr, log: file, done: make(chan struct{})}
	go func() { // ended by stop
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func fileChar(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// stop ends the program and waits for its end.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(10 * time.Second):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-p.done
	}
}

// forgetLog empties the log, so that a long run does not fill the disk.
func (p *process) forgetLog() { _ = os.Truncate(p.log, 0) }

// listening waits until the program takes connections.
func (p *process) listening(ctx context.Context) error {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", p.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.done:
			said, _ := os.ReadFile(p.log)
			return fmt.Errorf("%s ended: %s", p.cmd.Path, bytes.TrimSpace(said))
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen: %w", p.cmd.Path, errors.Join(err, ctx.Err()))
		case <-time.After(time.Millisecond):
		}
	}
}

// freeAddr returns a loopback address that nobody listens at, with a port below those that
// systems give to the thousands of connections of the load.
func freeAddr() (string, error) {
	var err error
	for range 100 {
		var ln net.Listener
		if ln, err = new(net.ListenConfig).Listen(context.Background(), "tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.N(12000))); err == nil {
			return ln.Addr().String(), ln.Close()
		}
	}
	return "", err
}

// ---- what /proc says; where there is none, everything is 0

// tick is the unit of times in /proc/PID/stat: Linux has 100 a second on all its platforms that Go knows.
const tick = 10 * time.Millisecond

// cpu returns the time that a process has run so far, without its children.
func cpu(pid int) time.Duration {
	f := statFields(pid)
	if f == nil {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * tick
}

// statFields returns the fields of /proc/PID/stat behind the program's name, which may hold spaces.
func statFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	i := bytes.LastIndexByte(b, ')')
	if err != nil || i < 0 {
		return nil
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 13 {
		return nil
	}
	return f
}

// descendants returns the processes below pid.
func descendants(pid int) []int {
	children := map[int][]int{}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		child, _ := strconv.Atoi(filepath.Base(dir))
		if f := statFields(child); f != nil {
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], child)
		}
	}
	var out []int
	for queue := children[pid]; len(queue) > 0; queue = queue[1:] {
		out = append(out, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return out
}

// memory returns a line of /proc/PID/status, VmRSS or VmHWM, in bytes.
func memory(pid int, line string) int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for l := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(l, line+":"); ok {
			kib, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// forgetPeak makes VmHWM begin anew.
func forgetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0o600)
}
