package config

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// settle is how long files must stay the same before they count as written: one
	// that is seen half-written must not be taken for the whole.
	settle = 150 * time.Millisecond
	// lookAgain is how often files are read though nothing was heard of them: network
	// file systems and directories that come and go tell nobody.
	lookAgain = 10 * time.Second
	// maxLinks bounds a chain of symbolic links.
	maxLinks = 40
)

// A loaded is which files a source was last read from, and what they held.
type loaded struct {
	mu    sync.Mutex
	paths []string          // guarded by mu
	sum   [sha256.Size]byte // guarded by mu
}

// reading notes what the files hold, before they are read: what changes meanwhile is
// then read twice rather than never.
func (l *loaded) reading() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum = contents(l.paths)
}

// read notes which files were read.
func (l *loaded) read(paths []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(paths, l.paths) {
		l.paths, l.sum = paths, contents(paths)
	}
}

func (l *loaded) files() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.paths)
}

// differs reports whether a digest of the files is not that of what was read.
func (l *loaded) differs(sum [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return sum != l.sum
}

// watch calls changed after the files have come to hold something else than was
// read, until ctx ends; changed reads them. Files that are replaced, reached through
// symbolic links that are swapped, or gone for a while are files like others.
func (l *loaded) watch(ctx context.Context, changed func()) {
	w := newFileWatch()
	defer w.close()
	l.watchBy(ctx, w, changed)
}

// watchBy is watch with a watcher of the caller's.
func (l *loaded) watchBy(ctx context.Context, w *fileWatch, changed func()) {
	w.follow(l.files())
	var candidate [sha256.Size]byte // what the files held a moment ago, if unsettled
	unsettled := false

	look := time.NewTicker(lookAgain)
	defer look.Stop()
	pause := time.NewTimer(settle) // something may have happened before the watch began
	defer pause.Stop()
	pausing := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.heard:
		case <-look.C:
		case <-pause.C:
			pausing = false
			w.follow(l.files())
			now := contents(l.files())
			switch {
			case !l.differs(now):
				unsettled = false
				continue
			case !unsettled || now != candidate:
				candidate, unsettled = now, true
			default:
				unsettled = false
				changed()
			}
		}
		if !pausing {
			pausing = true
			pause.Reset(settle)
			w.follow(nil) // a log that grows beside the files would wake this for each of its lines
		}
	}
}

// contents is a digest of what the files hold, or that they cannot be read.
func contents(paths []string) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, path := range paths {
		f := sha256.New()
		if err := copyFile(f, path); err != nil {
			f.Reset()
			_, _ = io.WriteString(f, "unreadable")
		}
		h.Write(f.Sum(nil))
	}
	h.Sum(sum[:0])
	return sum
}

func copyFile(w io.Writer, path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, errors.ErrUnsupported) // opening a pipe could wait for ever
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, io.LimitReader(f, maxStateBytes))
	return err
}

// A fileWatch watches the directories that decide what some paths lead to.
type fileWatch struct {
	watcher *fsnotify.Watcher // nil if the system gives none: the ticker has to do
	heard   chan struct{}     // something happened, or events were lost
	wg      sync.WaitGroup
}

func newFileWatch() *fileWatch {
	w := &fileWatch{heard: make(chan struct{}, 1)}
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return w
	}
	w.watcher = watcher
	w.wg.Go(w.listen)
	return w
}

// listen takes whatever the watcher says, at once: it says some of it with its lock held, which follow needs.
func (w *fileWatch) listen() {
	for open := true; open; {
		select {
		case _, open = <-w.watcher.Events:
		case _, open = <-w.watcher.Errors:
		}
		select {
		case w.heard <- struct{}{}:
		default:
		}
	}
}

func (w *fileWatch) close() {
	if w.watcher != nil {
		_ = w.watcher.Close()
	}
	w.wg.Wait()
}

// follow watches the directories there are now, and no others.
func (w *fileWatch) follow(paths []string) {
	if w.watcher == nil {
		return
	}
	var want []string
	for _, path := range paths {
		want = append(want, directories(path)...)
	}
	have := w.watcher.WatchList()
	for _, dir := range have {
		if !slices.Contains(want, dir) {
			_ = w.watcher.Remove(dir) // it may be gone by itself
		}
	}
	for _, dir := range want {
		if !slices.Contains(have, dir) { // also one that was removed and is here again
			_ = w.watcher.Add(dir) // else the ticker has to do
		}
	}
}

// directories returns the directories in which a name of the path, or a name of a
// symbolic link on it, can be replaced: those of the links, and that of the file itself. Of
// a path that ends in the air it is the last directory that exists.
func directories(path string) []string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	var dirs []string
	at := "/"
	rest := strings.Split(strings.Trim(abs, "/"), "/")
	for links := 0; len(rest) > 0; {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		info, err := os.Lstat(next)
		switch {
		case err != nil, len(rest) == 0 && info.Mode()&os.ModeSymlink == 0:
			return append(dirs, at)
		case info.Mode()&os.ModeSymlink == 0:
			at = next
			continue
		}
		dirs = append(dirs, at)
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return dirs
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(target, "/"), "/"), rest...)
	}
	return dirs
}
