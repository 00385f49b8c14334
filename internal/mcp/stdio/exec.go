package stdio

import (
	"fmt"
	"os"
	"syscall"
)

// The hidden modes of this program, told by its argv[0]: the environment belongs
// to the command that is to run, and so do all arguments.
const (
	execMode       = "mcpbridge-exec"
	supervisorMode = "mcpbridge-supervisor"
)

// The descriptors that a process in exec mode inherits.
const (
	registerFD = 3 // the supervisor's pipe
	reportFD   = 4 // where a failure is told; its end without a word is success
)

// Main runs the hidden modes in which this package starts the program itself
// again, and returns at once otherwise. It must be called first thing in main, and in
// every TestMain whose tests start servers with a [Supervisor].
func Main() {
	switch os.Args[0] {
	case supervisorMode:
		supervise(os.Stdin)
		os.Exit(0)
	case execMode:
		// Nothing left to clean up, and nobody to tell but through the pipe.
		fmt.Fprintln(os.NewFile(reportFD, "report"), become(os.Args[1:]))
		os.Exit(127)
	}
}

// become registers this process with the supervisor and turns it into the command: a
// path, and the argument vector. It returns only if that fails.
//
// The supervisor kills all groups that it knows when it reads end-of-file, which it cannot
// before the last copy of the pipe's write end is gone. Ours goes with the exec, behind
// the registration, so that no moment is left in which we are unknown.
func become(args []string) error {
	syscall.CloseOnExec(registerFD)
	syscall.CloseOnExec(reportFD)
	// Short enough to be written in one piece, whoever else writes (PIPE_BUF).
	if _, err := syscall.Write(registerFD, fmt.Appendf(nil, "+%d\n", os.Getpid())); err != nil {
		return fmt.Errorf("registering with the supervisor: %w", err)
	}
	return syscall.Exec(args[0], args[1:], os.Environ())
}

// self is the path of this very program, also when its file was replaced meanwhile.
func self() (string, error) {
	const proc = "/proc/self/exe"
	if _, err := os.Readlink(proc); err == nil {
		return proc, nil
	}
	return os.Executable()
}
