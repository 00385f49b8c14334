package stdio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// A call under way learns how the server ended, and later ones that they were
// not sent.
func TestServerDies(t *testing.T) {
	tests := []struct {
		tool string
		args map[string]any
		msg  string
	}{
		{"die", map[string]any{"n": 7, "text": "out of\x1b[1m luck\x1b[0m"}, "the process exited with status 7; its last words: out of luck"},
		{"die", map[string]any{"n": 0}, "the process exited with status 0"},
		{"die", map[string]any{"n": 1, "text": strings.Repeat("long ", 2000)}, "the process exited with status 1; its last words: long long"},
		{"kill", nil, "the process was ended by a signal (killed)"},
		{"half", nil, "the process exited with status 0"},
		{"closeoutput", nil, "it closed its output, but the process still runs"},
	}
	for _, tt := range tests {
		t.Run(tt.tool, func(t *testing.T) {
			c := dialFake(t, fakeOptions(t, "plain"))
			other := background(t, t.Context(), c, request("never", nil))
			waitFrames(t, c, 1)
			_, err := c.Do(t.Context(), request(tt.tool, tt.args))
			if f := failure(t, err); f.Reason != rpc.Lost || !strings.HasPrefix(f.Msg, tt.msg) || len(f.Msg) > 3000 {
				t.Errorf("Do = %s: %.200q, want %s: %q", f.Reason, f.Msg, rpc.Lost, tt.msg)
			}
			if f := failure(t, (<-other).err); f.Reason != rpc.Lost {
				t.Errorf("the other call = %v", f)
			}
			<-c.Done()
			if f := failure(t, c.Err()); !strings.HasPrefix(f.Msg, tt.msg) {
				t.Errorf("Err = %v", f)
			}
			_, err = c.Do(t.Context(), request("echo", nil))
			if f := failure(t, err); f.Reason != rpc.NotSent || !strings.HasPrefix(f.Msg, tt.msg) {
				t.Errorf("a later call = %s: %q", f.Reason, f.Msg)
			}
			// It ends by itself, also when nobody closes it.
			<-c.gone
			if err := syscall.Kill(-c.Pid(), 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the group is still there: %v", err)
			}
		})
	}
}

// The last answer counts, though the server is gone when it is read.
func TestLastAnswer(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	const n = 400_000 // more than the pipe holds
	if got := do(t, c, request("answerandexit", map[string]any{"n": n})); len(got) != n+len(`{"last":""}`) {
		t.Errorf("%d bytes came", len(got))
	}
	<-c.Done()
}

// A server that closes its input is noticed with the next call, which was not sent.
func TestClosedInput(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	do(t, c, request("closeinput", nil))
	_, err := c.Do(t.Context(), request("echo", nil))
	if f := failure(t, err); f.Reason != rpc.NotSent || f.Msg != "it closed its input (broken pipe), but the process still runs" {
		t.Errorf("Do = %s: %q", f.Reason, f.Msg)
	}
}

// A server that stops reading is killed, not waited for; meanwhile callers can leave.
func TestStopsReading(t *testing.T) {
	o := fakeOptions(t, "plain")
	o.WriteTimeout = time.Second + 1
	o.CancelGrace = time.Hour
	c := dialFake(t, o)
	do(t, c, request("deafen", nil))

	pad := strings.Repeat("x", 100_000)
	var calls []<-chan answer
	for range 5 {
		calls = append(calls, background(t, t.Context(), c, request("echo", pad)))
	}
	// The pipe is full now, or will be.
	eventually(t, "the writer waits", func() bool {
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return c.w.busy && len(c.w.queue) == 4
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	r := request("echo", nil)
	let := false
	r.LetGo = func() { let = true }
	if _, err := c.Do(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do = %v", err)
	}
	if !let {
		t.Error("a call that was never sent was not let go at once")
	}
	reasons := map[rpc.Reason]int{}
	for _, ch := range calls {
		f := failure(t, (<-ch).err)
		reasons[f.Reason]++
		if want := "the server did not read its input for 1s and was killed"; f.Msg != want {
			t.Errorf("Msg = %q, want %q", f.Msg, want)
		}
	}
	if reasons[rpc.Lost] != 1 || reasons[rpc.NotSent] != 4 {
		t.Errorf("reasons = %v, want one lost and four not sent", reasons)
	}
}

// A server that ignores every wish, and its child, end in bounded time.
func TestCloseDeaf(t *testing.T) {
	for _, sup := range []*Supervisor{supervisor(), nil} {
		o := fakeOptions(t, "deaf")
		o.Supervisor = sup
		o.CloseWait, o.TermWait = 200*time.Millisecond, 300*time.Millisecond
		tag := tag()
		o.Args = []string{sh(t), tag}
		c := dialFake(t, o)
		eventually(t, "server, shell and sleep run", func() bool { return len(tagged(t, tag)) == 3 })
		call := background(t, t.Context(), c, request("never", nil))
		waitFrames(t, c, 1)
		start := time.Now()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { _ = c.Close() })
		}
		if f := failure(t, (<-call).err); f.Reason != rpc.Lost || f.Msg != "the connection was closed" {
			t.Errorf("Do = %v", f)
		}
		if d := time.Since(start); d > 400*time.Millisecond {
			t.Errorf("the call under way learned it after %v", d)
		}
		wg.Wait()
		if d := time.Since(start); d < 500*time.Millisecond || d > 3*time.Second {
			t.Errorf("Close took %v", d)
		}
		eventually(t, "all are gone", func() bool { return len(tagged(t, tag)) == 0 })
	}
}

// A shell that starts the server and waits for it takes it along.
func TestCloseShell(t *testing.T) {
	o := fakeOptions(t, "plain")
	tag := tag()
	o.Args = []string{"-c", `sleep ` + tag + ` & exec 3<&0; "$0" <&3 & wait`, o.Command}
	o.Command = sh(t)
	c := dialFake(t, o)
	do(t, c, request("echo", nil))
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all are gone", func() bool { return len(tagged(t, tag)) == 0 })
	if n := ownChildren(); len(n) > 0 {
		t.Errorf("processes left: %v", n)
	}
}

// When the leader exits, its group goes too.
func TestLeaderExits(t *testing.T) {
	tag := tag()
	o := fakeOptions(t, "plain")
	o.Command, o.Args = sh(t), []string{"-c", "sleep " + tag + " & echo moving on >&2; exit 4"}
	_, err := Dial(t.Context(), o)
	if f := failure(t, err); f.Msg != "the server ended during the handshake: the process exited with status 4; its last words: moving on" {
		t.Errorf("Dial = %v", f)
	}
	eventually(t, "all are gone", func() bool { return len(tagged(t, tag)) == 0 })
}

// A grandchild that left the group and holds our pipes is out of reach, but holds up nothing.
func TestCloseEscaped(t *testing.T) {
	c := dialFake(t, fakeOptions(t, "plain"))
	tag := tag()
	do(t, c, request("escape", map[string]any{"path": sh(t), "text": tag}))
	t.Cleanup(func() {
		for _, pid := range tagged(t, tag) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	_, err := c.Do(t.Context(), request("die", map[string]any{"n": 5, "text": "bye"}))
	if f := failure(t, err); f.Reason != rpc.Lost || !strings.HasPrefix(f.Msg, "the process exited with status 5; its last words: bye") {
		t.Errorf("Do = %v", f)
	}
	start := time.Now()
	_ = c.Close()
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("Close took %v", d)
	}
	if len(tagged(t, tag)) == 0 {
		t.Error("the escaped process is not there: the test shows nothing")
	}
}

func TestCloseDuringCalls(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 5 {
		c := dialFake(t, fakeOptions(t, "plain"))
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for range 8 {
			wg.Go(func() {
				for {
					_, err := c.Do(t.Context(), request("echo", nil))
					if err == nil {
						continue
					}
					if f := failure(t, err); f.Reason != rpc.Lost && f.Reason != rpc.NotSent {
						t.Errorf("Do = %v", err)
					}
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		_ = c.Close()
		close(stop)
		wg.Wait()
	}
	eventually(t, "no more goroutines than before", func() bool { return runtime.NumGoroutine() <= before })
}

// Whatever moment this program is killed at, no server survives it.
func TestParentKilled(t *testing.T) {
	exe := mustExecutable(t)
	for round := range 20 {
		t.Run(itoa(round), func(t *testing.T) {
			t.Parallel()
			killParent(t, exe, round)
		})
	}
}

// killParent starts a process that starts servers, and kills it at a time of the round's own.
func killParent(t *testing.T, exe string, round int) {
	t.Helper()
	tag := tag()
	cmd := exec.Command(exe, sh(t), tag)
	cmd.Env = []string{"STDIO_FAKE=parent", "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A line for each server it has started. Every other round does not wait for the first.
	if round%2 == 0 {
		for range 1 + round%5 {
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	time.Sleep(time.Duration(round*3) * time.Millisecond)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	eventually(t, "all are gone", func() bool { return len(tagged(t, tag)) == 0 })
}

// parent starts servers until it is killed.
func parent() {
	sup := NewSupervisor(nil)
	for {
		o := Options{Command: os.Args[1], Args: []string{"-c", "trap '' TERM; sleep " + os.Args[2] + " & wait"}, Supervisor: sup}
		o.Env = []string{"PATH=" + os.Getenv("PATH")}
		o = o.withDefaults()
		if _, err := start(context.Background(), &o); err != nil {
			fmt.Fprintln(os.Stderr, err)
			exit(1)
		}
		fmt.Println()
	}
}

// The supervisor is started anew if it dies, and then knows the servers alive.
func TestSupervisorDies(t *testing.T) {
	sup := NewSupervisor(nil)
	start := func() (*Conn, string) {
		tag := tag()
		o := fakeOptions(t, "deaf")
		o.Supervisor = sup
		o.CloseWait, o.TermWait = time.Millisecond, time.Millisecond
		o.Args = []string{sh(t), tag}
		c := dialFake(t, o)
		eventually(t, "it runs", func() bool { return len(tagged(t, tag)) == 3 })
		return c, tag
	}
	_, first := start()
	sup.mu.Lock()
	pid, dead := sup.pid, sup.dead
	sup.mu.Unlock()
	// What a terminal sends does not end it.
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		_ = syscall.Kill(pid, sig)
	}
	closed, second := start()
	sup.mu.Lock()
	if sup.pid != pid {
		t.Error("the supervisor was ended by a signal that it should ignore")
	}
	sup.mu.Unlock()

	_ = syscall.Kill(pid, syscall.SIGKILL)
	<-dead
	_ = closed.Close() // tells a dead supervisor
	eventually(t, "the closed one is gone", func() bool { return len(tagged(t, second)) == 0 })
	_, third := start()
	if n := len(tagged(t, first)); n != 3 {
		t.Errorf("%d processes of the first server, want 3", n)
	}
	if err := sup.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "all are gone", func() bool { return len(tagged(t, first))+len(tagged(t, third)) == 0 })

	o := fakeOptions(t, "plain")
	o.Supervisor = sup
	_, err := Dial(t.Context(), o)
	if f := failure(t, err); f.Reason != rpc.Start || !strings.Contains(f.Msg, "supervisor of processes is closed") {
		t.Errorf("Dial with a closed supervisor = %v", f)
	}
	if err := sup.Close(); err != nil {
		t.Error(err)
	}
}

func TestSuperviseBadLines(*testing.T) {
	// A list that means nobody, or everybody, kills nobody: this process among them.
	supervise(strings.NewReader("+1\n+0\n+-1\n\n+\n+x\n*5\nfoo\n+4194999\n-4194999\n"))
}
