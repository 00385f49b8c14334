package config

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Whatever happens beside the files is heard once, and then not until they have been looked at.
func TestWatchRests(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "bridge.yaml")
	if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := &loaded{}
	l.read([]string{path})
	w := newFileWatch()
	defer w.close()
	if w.watcher == nil {
		t.Fatal("the system gives no watcher; its bound is fs.inotify.max_user_instances")
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { l.watchBy(ctx, w, func() { t.Error("the file has not changed") }) })
	rests := func(want bool) {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); (len(w.watcher.WatchList()) == 0) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("it rests: %v, for 20 s", !want)
			}
			if want {
				if err := os.WriteFile(filepath.Join(dir, "bridge.log"), []byte("a line"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for range 3 {
		rests(false)
		rests(true)
	}
}

// The watcher tells of a failure with its lock held; whoever changes what is watched must not wait for that lock meanwhile.
func TestWatchOfWhatGoesAway(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "etc")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1500 {
			w := newFileWatch()
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Error(err)
			}
			path := filepath.Join(dir, "bridge.yaml")
			w.follow([]string{path})
			_ = os.WriteFile(path, []byte("a"), 0o600)
			_ = os.Rename(dir, dir+"~")
			_ = os.RemoveAll(dir + "~")
			<-w.heard
			w.follow(nil)
			w.follow([]string{path})
			w.close()
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the watch hangs")
	}
}
