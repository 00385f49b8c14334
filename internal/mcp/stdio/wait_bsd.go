//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package stdio

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit blocks until our child has exited, and leaves it to be waited for.
func awaitExit(pid int) {
	for !noteExit(pid) {
		time.Sleep(100 * time.Millisecond) // out of descriptors or memory, for now
	}
}

// noteExit does it, and reports whether it could.
func noteExit(pid int) bool {
	kq, err := unix.Kqueue()
	if err != nil {
		return false
	}
	defer unix.Close(kq)
	var ev unix.Kevent_t
	unix.SetKevent(&ev, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	ev.Fflags = unix.NOTE_EXIT
	changes, events := []unix.Kevent_t{ev}, make([]unix.Kevent_t, 1)
	for {
		switch _, err := unix.Kevent(kq, changes, events, nil); err {
		case unix.EINTR:
		case nil, unix.ESRCH: // it has exited now, or before
			return true
		default:
			return false
		}
	}
}

// widen does nothing: pipes grow by themselves here.
func widen(*os.File) {}
