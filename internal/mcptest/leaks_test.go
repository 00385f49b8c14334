package mcptest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A judged test collects what NoLeaks says of it.
type judged struct {
	testing.TB
	cleanups []func()
	errors   []string
}

func (j *judged) Helper()                   {}
func (j *judged) Cleanup(f func())          { j.cleanups = append(j.cleanups, f) }
func (j *judged) Errorf(f string, a ...any) { j.errors = append(j.errors, fmt.Sprintf(f, a...)) }

// leaksOf returns what NoLeaks says of a test.
func leaksOf(t *testing.T, test func(), ignore ...string) []string {
	t.Helper()
	before := settle
	settle = 300 * time.Millisecond
	defer func() { settle = before }()
	j := &judged{TB: t}
	NoLeaks(j, ignore...)
	test()
	for _, f := range j.cleanups {
		f()
	}
	return j.errors
}

// waits is a goroutine's function, to be found in its stack.
func waits(c chan struct{}) { <-c }

func TestNoLeaksOfGoroutines(t *testing.T) {
	c := make(chan struct{})
	defer close(c)
	if got := leaksOf(t, func() { go waits(c) }); len(got) != 1 || !strings.Contains(got[0], "mcptest.waits") {
		t.Errorf("a goroutine that waits: %q, want it named", got)
	}
	if got := leaksOf(t, func() { go waits(c) }, "mcptest.waits"); len(got) != 0 {
		t.Errorf("a goroutine to ignore: %q, want nothing", got)
	}
	if got := leaksOf(t, func() {}); len(got) != 0 {
		t.Errorf("a goroutine from before: %q, want nothing", got)
	}
	if got := leaksOf(t, func() { go time.Sleep(50 * time.Millisecond) }); len(got) != 0 {
		t.Errorf("a goroutine that ends soon: %q, want nothing", got)
	}
}

func TestNoLeaksOfChildren(t *testing.T) {
	var cmd *exec.Cmd
	got := leaksOf(t, func() {
		cmd = exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	})
	if len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("%d (state S", cmd.Process.Pid)) || !strings.Contains(got[0], "sleep 3600") {
		t.Errorf("a child: %q, want it named", got)
	}
	_ = cmd.Wait()
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signal() != syscall.SIGKILL {
		t.Errorf("the child ended with %v, want to be killed", cmd.ProcessState)
	}
	got = leaksOf(t, func() {
		cmd = exec.Command("sleep", "3600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}, "sleep 3600")
	if len(got) != 0 {
		t.Errorf("a child to ignore: %q, want nothing", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func TestNoLeaksOfZombies(t *testing.T) {
	var cmd *exec.Cmd
	got := leaksOf(t, func() {
		cmd = exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	})
	if len(got) != 1 || !strings.Contains(got[0], "state Z") {
		t.Errorf("a child that nobody waited for: %q, want a zombie", got)
	}
	_ = cmd.Wait()
}

func TestNoLeaksOfOrphans(t *testing.T) {
	// The shell is gone when it is looked for, and with it the way from this process to its child.
	got := leaksOf(t, func() {
		if err := exec.Command("sh", "-c", "setsid sleep 3601 >/dev/null 2>&1 &").Run(); err != nil {
			t.Fatal(err)
		}
	})
	if len(got) != 1 || !strings.Contains(got[0], "sleep 3601") {
		t.Errorf("an orphan: %q, want it named", got)
	}
}

func TestNoLeaksRefusesParallelTests(t *testing.T) {
	t.Run("parallel", func(t *testing.T) {
		t.Parallel()
		defer func() {
			if recover() == nil {
				t.Error("NoLeaks took a parallel test")
			}
		}()
		NoLeaks(t)
	})
}

func TestReadProcess(t *testing.T) {
	p, ok := readProcess(fmt.Sprintf("/proc/%d", os.Getpid()))
	if !ok || p.parent != os.Getppid() || p.state != "R" && p.state != "S" || !strings.Contains(p.command, "-test.") {
		t.Errorf("this process reads as %+v (%v)", p, ok)
	}
	if p, ok := readProcess(t.TempDir()); ok {
		t.Errorf("no process reads as %+v", p)
	}
	loop := map[int]process{2: {parent: 3}, 3: {parent: 2}}
	if descends(loop, 2, 1) || descends(loop, 4, 1) {
		t.Error("a loop of parents descends from a process outside it")
	}
}
