package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// superviseGrace is what groups get between SIGTERM and SIGKILL after our death.
const superviseGrace = time.Second

// A Supervisor is a small process beside this one that kills the process groups
// of all servers when this one is killed, which a parent-death signal would do for
// their leaders only. One serves the whole program. It is started with the
// first server; should it die, the next server starts it anew.
type Supervisor struct {
	log *slog.Logger

	mu     sync.Mutex
	closed bool
	pipe   *os.File         // its standard input; nil before the first start
	dead   chan struct{}    // closed when it has exited
	live   map[int]struct{} // :: leaders of the groups alive
	pid    int              // its number
}

// NewSupervisor returns a supervisor that is not started yet. A nil log discards.
func NewSupervisor(log *slog.Logger) *Supervisor {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Supervisor{log: log, live: map[int]struct{}{}}
}

var errSupervisorClosed = errors.New("the supervisor of processes is closed")

// start starts cmd, which is in exec mode and will register itself, with the
// supervisor's pipe as its first extra file.
func (s *Supervisor) start(cmd *exec.Cmd) error {
	// The lock is held over the fork, so that the pipe is not replaced meanwhile;
	// forks exclude each other in any case.
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ensureLocked(); err != nil {
		return err
	}
	cmd.ExtraFiles = slices.Insert(cmd.ExtraFiles, 0, s.pipe)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.live[cmd.Process.Pid] = struct{}{}
	return nil
}

// forget is called when the group is killed and its leader not yet waited for:
// until then no other group can have its number.
func (s *Supervisor) forget(pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, pid)
	if s.pipe != nil {
		// If this fails, the supervisor is dead and knows nothing anyway.
		_, _ = fmt.Fprintf(s.pipe, "-%d\n", pid)
	}
}

func (s *Supervisor) ensureLocked() error {
	if s.closed {
		return errSupervisorClosed
	}
	if s.pipe != nil {
		select {
		case <-s.dead:
			s.log.Warn("the supervisor of processes died and is started anew")
			_ = s.pipe.Close()
			s.pipe = nil
		default:
			return nil
		}
	}
	exe, err := self()
	if err != nil {
		return fmt.Errorf("finding this program's file: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{supervisorMode}
	cmd.Env = []string{} // it needs none of our secrets
	cmd.Dir = "/"
	cmd.Stdin = r
	// Not to be hit by what a terminal sends to our group or session.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = r.Close()
	if err != nil {
		_ = w.Close()
		return fmt.Errorf("starting the supervisor of processes: %w", err)
	}
	dead := make(chan struct{})
	go func() { // ends with the process, which ends with its pipe
		_ = cmd.Wait()
		close(dead)
	}()
	s.pipe, s.dead, s.pid = w, dead, cmd.Process.Pid
	for _, pid := range slices.Sorted(maps.Keys(s.live)) {
		if _, err := fmt.Fprintf(w, "+%d\n", pid); err != nil {
			return fmt.Errorf("registering with the supervisor: %w", err)
		}
	}
	return nil
}

// Close ends the supervisor, which kills what is left alive, and waits for it.
func (s *Supervisor) Close() error {
	s.mu.Lock()
	s.closed = true
	pipe, dead, pid := s.pipe, s.dead, s.pid
	s.pipe = nil
	s.mu.Unlock()
	if pipe == nil {
		return nil
	}
	err := pipe.Close()
	select {
	case <-dead:
	case <-time.After(superviseGrace + 2*time.Second):
		// It was not waited for, so the number is its own.
		_ = syscall.Kill(pid, syscall.SIGKILL)
		<-dead
	}
	return err
}

// supervise is the other side: it keeps the list that the pipe brings, and at
// its end kills all groups on it.
func supervise(in io.Reader) {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	live := map[int]struct{}{}
	for sc := bufio.NewScanner(in); sc.Scan(); {
		line := sc.Text()
		if len(line) < 2 {
			continue
		}
		// A group number below 2 would address everybody.
		pid, err := strconv.Atoi(line[1:])
		if err != nil || pid < 2 {
			continue
		}
		switch line[0] {
		case '+':
			live[pid] = struct{}{}
		case '-':
			delete(live, pid)
		}
	}
	for pid := range live {
		_ = syscall.Kill(-pid, syscall.SIGTERM)
	}
	for end := time.Now().Add(superviseGrace); len(live) > 0 && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for pid := range live {
			if syscall.Kill(-pid, 0) == syscall.ESRCH {
				delete(live, pid)
			}
		}
	}
	for pid := range live {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
}
