package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/config"
)

// A watchedFile is a File that is loaded whenever it has changed.
type watchedFile struct {
	t     *testing.T
	news  <-chan struct{}
	loads atomic.Int32
	now   atomic.Value // what the last load said: the servers' handles, or "error"
}

func watchFile(t *testing.T, path string) *watchedFile {
	t.Helper()
	f := config.NewFile(path, noEnv)
	w := &watchedFile{t: t}
	read := func() {
		w.loads.Add(1)
		cfg, _, err := f.Load()
		if err != nil {
			w.now.Store("error")
			return
		}
		var names []string
		for _, s := range cfg.Servers {
			names = append(names, s.Handle+s.Headers["X"].Text())
		}
		w.now.Store(strings.Join(names, " "))
	}
	read()
	w.news = watching(t, f.Watch, read)
	return w
}

// want waits until the file was loaded and said this.
func (w *watchedFile) want(what string) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	for w.now.Load() != what {
		select {
		case <-w.news:
		case <-deadline:
			w.t.Fatalf("loaded %q, want %q", w.now.Load(), what)
		}
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func servers(names ...string) string {
	var b strings.Builder
	b.WriteString("mcpServers:\n")
	for _, n := range names {
		fmt.Fprintf(&b, "  %s: {url: http://x}\n", n)
	}
	return b.String()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Each way in which editors and programs write a file is seen.
func TestWatchFile(t *testing.T) {
	t.Run("in place, replaced, gone and back", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "bridge.yaml")
		put(t, path, servers("a"))
		w := watchFile(t, path)
		w.want("a")
		put(t, path, servers("a", "b"))
		w.want("a b")
		// As vim and others do: the old one aside, a new one, the old one away.
		must(t, os.Rename(path, path+"~"))
		put(t, path, servers("c"))
		must(t, os.Remove(path+"~"))
		w.want("c")
		// As sed -i and others do.
		put(t, filepath.Join(dir, "sedXYZ"), servers("d"))
		must(t, os.Rename(filepath.Join(dir, "sedXYZ"), path))
		w.want("d")
		must(t, os.Remove(path))
		w.want("error")
		put(t, path, servers("d"))
		w.want("d")
		put(t, path, "")
		w.want("error")
		put(t, path, servers("e"))
		w.want("e")
	})
	t.Run("beside a file that grows", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "bridge.yaml")
		put(t, path, servers("a"))
		w := watchFile(t, path)
		stop := make(chan struct{})
		var wg sync.WaitGroup
		defer wg.Wait()
		defer close(stop)
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Millisecond):
					_ = os.WriteFile(filepath.Join(dir, "bridge.log"), []byte("a line"), 0o600)
				}
			}
		})
		for _, name := range []string{"b", "c"} {
			put(t, path, servers(name))
			w.want(name)
		}
		if n := w.loads.Load(); n != 3 {
			t.Errorf("the file was loaded %d times, want 3", n)
		}
	})
	t.Run("the directory goes and comes back", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "etc")
		path := filepath.Join(dir, "bridge.yaml")
		must(t, os.Mkdir(dir, 0o700))
		put(t, path, servers("a"))
		w := watchFile(t, path)
		must(t, os.RemoveAll(dir))
		w.want("error")
		must(t, os.Mkdir(dir, 0o700))
		put(t, path, servers("b"))
		w.want("b")
	})
	t.Run("as a ConfigMap", func(t *testing.T) {
		dir := t.TempDir()
		version := func(n, text string) {
			must(t, os.Mkdir(filepath.Join(dir, n), 0o700))
			put(t, filepath.Join(dir, n, "bridge.yaml"), text)
			must(t, os.Symlink(n, filepath.Join(dir, "..data_tmp")), os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}
		version("..1", servers("a"))
		path := filepath.Join(dir, "bridge.yaml")
		must(t, os.Symlink("..data/bridge.yaml", path))
		w := watchFile(t, path)
		w.want("a")
		for i, name := range []string{"b", "c", "d"} {
			version(fmt.Sprintf("..%d", i+2), servers(name))
			must(t, os.RemoveAll(filepath.Join(dir, fmt.Sprintf("..%d", i+1))))
			w.want(name)
		}
	})
	t.Run("through links that change", func(t *testing.T) {
		dir := t.TempDir()
		for _, n := range []string{"one", "two"} {
			must(t, os.Mkdir(filepath.Join(dir, n), 0o700))
			put(t, filepath.Join(dir, n, "real.yaml"), servers(n))
		}
		link := func(target, name string) {
			must(t, os.Symlink(target, filepath.Join(dir, "tmp")), os.Rename(filepath.Join(dir, "tmp"), filepath.Join(dir, name)))
		}
		link(filepath.Join(dir, "one"), "current")
		link("current/../current/real.yaml", "bridge.yaml")
		w := watchFile(t, filepath.Join(dir, "bridge.yaml"))
		w.want("one")
		link("two", "current")
		w.want("two")
		put(t, filepath.Join(dir, "two", "real.yaml"), servers("three"))
		w.want("three")
		link("bridge.yaml", "current") // a circle
		w.want("error")
		link("one", "current")
		w.want("one")
	})
	t.Run("a secret's file", func(t *testing.T) {
		dir := t.TempDir()
		secret := filepath.Join(dir, "secrets", "key")
		must(t, os.Mkdir(filepath.Dir(secret), 0o700))
		put(t, secret, "1\n")
		path := filepath.Join(dir, "bridge.yaml")
		put(t, path, "mcpServers:\n  a: {url: http://x, headers: {X: '${file:secrets/key}'}}\n")
		w := watchFile(t, path)
		w.want("a1")
		put(t, secret, "2\n")
		w.want("a2")
		must(t, os.Remove(secret))
		w.want("error")
		put(t, secret, "3\n")
		w.want("a3")
		put(t, path, "mcpServers:\n  a: {url: http://x, headers: {X: '${file:other}'}}\n")
		w.want("error")
		put(t, filepath.Join(dir, "other"), "4")
		w.want("a4")
	})
	t.Run("a state file", func(t *testing.T) {
		s := config.OpenStateFile(filepath.Join(t.TempDir(), "state.json"))
		load(t, s)
		news := watching(t, s.Watch, func() { _, _ = s.Load(t.Context()) })
		other := config.OpenStateFile(s.Path())
		if _, _, err := other.Write(t.Context(), config.EntryKey{Handle: "a"}, []byte(`{"url":"http://x"}`), config.Condition{}); err != nil {
			t.Fatal(err)
		}
		wait(t, "another's write", news)
	})
}

// A file that is being written is not taken before it stays the same, and others
// beside it that change all the time do not matter.
func TestWatchSettles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bridge.yaml")
	put(t, path, servers("a"))
	w := watchFile(t, path)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	must(t, err)
	var names []string
	for i := range 40 { // for about a second, a piece now and then
		name := fmt.Sprintf("s%d", i)
		names = append(names, name)
		text := servers(name)
		if i > 0 {
			text = strings.TrimPrefix(text, "mcpServers:\n")
		}
		_, err := f.WriteString(text)
		must(t, err)
		put(t, filepath.Join(dir, "noise"), name)
		time.Sleep(25 * time.Millisecond)
	}
	must(t, f.Close())
	w.want(strings.Join(names, " "))
	// On a machine that is busy, a piece may come late enough to be taken for the last.
	if n := w.loads.Load(); n > 20 {
		t.Errorf("a file of 40 pieces was loaded %d times", n)
	}
}
