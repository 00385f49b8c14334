package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// killWait bounds the wait for a killed process, which only a hanging kernel
// call (a dead network file system, say) can hold up.
const killWait = 5 * time.Second

// drainWait is how long the pipes of a process that has exited are read.
const drainWait = time.Second

// A process is a server's command, leading a process group of its own.
type process struct {
	cmd *exec.Cmd
	sup *Supervisor

	// Our ends of its standard streams. They are pollable: deadlines work on
	// them, and closing one wakes who reads or writes.
	stdin, stdout, stderr *os.File

	exited chan struct{} // closed when the leader has exited and was waited for

	mu     sync.Mutex
	reaped bool // the group's number may belong to somebody else from here on
}

// start starts the command of o. Its errors are a [*rpc.Failure] or ctx's own.
func start(ctx context.Context, o *Options) (*process, error) {
	failed := func(err error) error {
		// The command and the directory are named, which may be secret themselves.
		return &rpc.Failure{Reason: rpc.Start, Msg: redactor(o.Redact).Text(err.Error())}
	}
	path, err := locate(o.Command, o.Dir, o.Env)
	if err != nil {
		return nil, failed(err)
	}
	p := &process{sup: o.Supervisor, exited: make(chan struct{})}
	p.cmd = exec.Command(path)
	p.cmd.Args = append([]string{o.Command}, o.Args...)
	p.cmd.Dir = o.Dir
	// nil would mean our own environment.
	p.cmd.Env = append([]string{}, o.Env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	var theirs []io.Closer
	closeAll := func(files []io.Closer) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	// The standard library's pipes would be closed by Wait, while there is still something to be read.
	var ours []io.Closer
	pipe := func(mine **os.File, out bool) *os.File {
		if err != nil {
			return nil
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return nil
		}
		if !out {
			r, w = w, r
		}
		*mine = r
		ours, theirs = append(ours, r), append(theirs, w)
		return w
	}
	stdin, stdout, stderr := pipe(&p.stdin, false), pipe(&p.stdout, true), pipe(&p.stderr, true)
	if err != nil {
		closeAll(ours)
		closeAll(theirs)
		return nil, failed(err)
	}
	widen(p.stdout)
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr

	err = p.launch(ctx, o, path)
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, failed(err)
	}
	return p, nil
}

// launch starts the command, by way of the exec mode when there is a supervisor,
// and returns when it runs or has failed to.
func (p *process) launch(ctx context.Context, o *Options, path string) error {
	if p.sup == nil {
		if err := p.cmd.Start(); err != nil {
			return execError(o, err)
		}
		go p.watch()
		return nil
	}
	exe, err := self()
	if err != nil {
		return fmt.Errorf("finding this program's file: %w", err)
	}
	report, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer report.Close()
	p.cmd.Path, p.cmd.Args = exe, append([]string{execMode, path}, p.cmd.Args...)
	p.cmd.ExtraFiles = []*os.File{theirs}
	err = p.sup.start(p.cmd)
	_ = theirs.Close()
	if err != nil {
		return execError(o, err)
	}
	go p.watch()

	// End-of-file without a word: the exec has closed the other end.
	stop := context.AfterFunc(ctx, func() { _ = report.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = report.SetReadDeadline(time.Now().Add(o.Start))
	if ctx.Err() != nil {
		_ = report.SetReadDeadline(time.Unix(1, 0))
	}
	word, err := io.ReadAll(io.LimitReader(report, 1024))
	switch {
	case err != nil:
		p.stop(0, 0)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("command %q was not started within %s", o.Command, rpc.Duration(o.Start))
	case len(word) > 0:
		p.stop(0, 0)
		return execError(o, errors.New(strings.TrimSpace(string(word))))
	}
	return nil
}

// execError explains a failed start of a file that was found and may be executed.
func execError(o *Options, err error) error {
	msg := reason(err).Error()
	hint := ""
	switch {
	case msg == syscall.ENOENT.Error():
		hint = " (the interpreter in its first line is missing)"
	case msg == syscall.ENOEXEC.Error():
		hint = " (it is not a program for this machine, nor a script with an interpreter in its first line)"
	}
	return fmt.Errorf("command %q could not be started: %s%s", o.Command, msg, hint)
}

// watch ends the group with its leader, and waits for the leader. It ends with the process.
func (p *process) watch() {
	pid := p.cmd.Process.Pid
	// While the leader is not waited for, its number, and so its group's, cannot
	// be given to another.
	awaitExit(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	if p.sup != nil {
		p.sup.forget(pid)
	}
	p.mu.Lock()
	p.reaped = true
	_ = p.cmd.Wait() // the state says it all
	p.mu.Unlock()
	close(p.exited)
	// A grandchild that left the group may hold the pipes for ever. What the server
	// itself said is in them by now.
	end := time.Now().Add(drainWait)
	_ = p.stdout.SetReadDeadline(end)
	_ = p.stderr.SetReadDeadline(end)
}

// signal sends sig to the whole group.
func (p *process) signal(sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.cmd.Process.Pid, sig)
	}
}

// stop closes the input of the process, then ends its group: SIGTERM after
// closeWait, SIGKILL after termWait more. It reports whether the process is gone.
func (p *process) stop(closeWait, termWait time.Duration) bool {
	_ = p.stdin.Close()
	if p.wait(closeWait) {
		return true
	}
	if termWait > 0 {
		p.signal(syscall.SIGTERM)
		if p.wait(termWait) {
			return true
		}
	}
	p.signal(syscall.SIGKILL)
	return p.wait(killWait)
}

// wait waits up to d for the process to be gone, and reports whether it is.
func (p *process) wait(d time.Duration) bool {
	select {
	case <-p.exited:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}

// fate says how the process ended, or that it did not.
func (p *process) fate() string {
	select {
	case <-p.exited:
	default:
		return "the process still runs"
	}
	state := p.cmd.ProcessState
	if state == nil {
		return "the process is gone"
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return fmt.Sprintf("the process was ended by a signal (%v)", ws.Signal())
	}
	return fmt.Sprintf("the process exited with status %d", state.ExitCode())
}
