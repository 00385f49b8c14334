package mcptest

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// envMark is what NoLeaks finds processes by that are nobody's children any more.
const envMark = "MCPTEST_MARK"

// settle is how long a goroutine or process may take to end.
var settle = 10 * time.Second

// NoLeaks checks, when the test and all its cleanups that were registered later
// are over, that every goroutine and every process that was started since is
// gone: children and their children, zombies, and those that lost their parent
// but still have the environment they inherited. It waits up to 10 s for them to
// end, then fails the test and kills the processes.
//
// A goroutine whose stack, or a process whose command line, contains one of the
// ignored strings is left alone. Call NoLeaks first in a test. It panics in a parallel test,
// where the neighbours' goroutines come and go.
func NoLeaks(t testing.TB, ignore ...string) {
	t.Helper()
	t.Setenv(envMark, fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano()))
	mark := envMark + "=" + os.Getenv(envMark)
	goroutinesBefore, processesBefore := goroutines(), processes(mark)
	t.Cleanup(func() {
		var gs map[int]string
		var ps map[int]process
		deadline := time.Now().Add(settle)
		// Ends of goroutines and processes bring no event that could be waited for.
		for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
			http.DefaultClient.CloseIdleConnections()
			gs, ps = goroutines(), processes(mark)
			for id, stack := range gs {
				if _, old := goroutinesBefore[id]; old || ignored(stack, ignore) {
					delete(gs, id)
				}
			}
			for pid, p := range ps {
				if old, ok := processesBefore[pid]; ok && old.started == p.started || ignored(p.command, ignore) {
					delete(ps, pid)
				}
			}
			if len(gs)+len(ps) == 0 {
				return
			}
			if time.Now().After(deadline) {
				break
			}
			time.Sleep(pause)
		}
		for _, stack := range gs {
			t.Errorf("a goroutine is left:\n%s", stack)
		}
		for pid, p := range ps {
			t.Errorf("a process is left: %d (state %s, parent %d): %s", pid, p.state, p.parent, p.command)
			if p.state != "Z" {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by now
			}
		}
	})
}

func ignored(s string, ignore []string) bool {
	return slices.ContainsFunc(ignore, func(i string) bool { return strings.Contains(s, i) })
}

// standing are goroutines that the standard library starts when first needed, and keeps.
var standing = []string{"os/signal.signal_recv", "os/signal.loop", "testing.(*T).Run", "testing.(*M).startAlarm"}

// goroutines returns the stacks of all goroutines but this one and the standing ones.
func goroutines() map[int]string { // :: id -> stack
	buf := make([]byte, 1<<20)
	n := runtime.Stack(buf, true)
	for n == len(buf) {
		buf = make([]byte, 2*len(buf))
		n = runtime.Stack(buf, true)
	}
	gs := map[int]string{}
	stacks := strings.Split(string(buf[:n]), "\n\n")
	for _, stack := range stacks[1:] { // the first is the caller's
		var id int
		if _, err := fmt.Sscanf(stack, "goroutine %d ", &id); err != nil {
			continue
		}
		if !ignored(stack, standing) {
			gs[id] = stack
		}
	}
	return gs
}

type process struct {
	parent  int
	state   string // as proc(5) has it: R, S, D, Z, …
	started string // tells a process from a later one with its pid
	command string
}

// processes returns the descendants of this process, and whoever has the mark in its environment.
func processes(mark string) map[int]process { // :: pid -> process
	all := map[int]process{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			if p, ok := readProcess(dir); ok {
				all[pid] = p
			}
		}
	}
	self := os.Getpid()
	found := map[int]process{}
	for pid, p := range all {
		if pid == self {
			continue
		}
		if descends(all, pid, self) {
			found[pid] = p
			continue
		}
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return string(kv) == mark }) {
			found[pid] = p
		}
	}
	return found
}

func descends(all map[int]process, pid, ancestor int) bool {
	for range len(all) { // pids that are reused while we read could make a loop
		p, ok := all[pid]
		if !ok {
			return false
		}
		if p.parent == ancestor {
			return true
		}
		pid = p.parent
	}
	return false
}

// readProcess reads /proc/<pid>. A process that ends meanwhile is no process.
func readProcess(dir string) (process, bool) {
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return process{}, false
	}
	// The name in parentheses may hold anything, so the fields count from the last parenthesis.
	i := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(fields) < 20 {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return process{}, false
	}
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p := process{parent: parent, state: fields[0], started: fields[19], command: strings.TrimSpace(string(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))}
	if p.command == "" {
		p.command = string(stat[:i+1])
	}
	return p, true
}
