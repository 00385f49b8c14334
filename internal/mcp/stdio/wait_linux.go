package stdio

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// pipeBytes is the size of the pipe that a server's answers come through.
const pipeBytes = 256 << 10

// awaitExit blocks until our child has exited, and leaves it to be waited for.
func awaitExit(pid int) {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// widen makes a pipe larger, so that big answers need fewer turns. Where the
// system's limit does not allow it, the pipe stays as it is.
func widen(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) })
	}
}
