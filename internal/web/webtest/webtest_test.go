package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A test that is cut short must not leave a browser behind.
func TestNodeCancelled(t *testing.T) {
	reached := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(reached)
		<-r.Context().Done() // the page never comes
	}))
	defer srv.Close()
	ask, err := json.Marshal(map[string]string{"url": srv.URL, "chromium": chromium(t)})
	if err != nil {
		t.Fatal(err)
	}
	// Children inherit the environment, which is how to find them.
	mark := fmt.Sprintf("WEBTEST_MARK=%d-%d", os.Getpid(), time.Now().UnixNano())
	t.Setenv("WEBTEST_MARK", mark[len("WEBTEST_MARK="):])

	ctx, cancel := context.WithCancel(t.Context())
	go func() { // ends with the request, or with the test
		select {
		case <-reached:
			if n := len(marked(t, mark)); n < 2 {
				t.Errorf("%d processes have the mark while the page loads, want node and the browser", n)
			}
		case <-t.Context().Done():
		}
		cancel()
	}()
	if _, err := node(ctx, filepath.Join(root(t), "testdata", "npm", "browser", "swagger.mjs"), ask); err == nil {
		t.Fatal("a cancelled script succeeded")
	}
	deadline := time.Now().Add(10 * time.Second)
	for left := marked(t, mark); len(left) > 0; left = marked(t, mark) {
		if time.Now().After(deadline) {
			t.Fatalf("still running: %q", left)
		}
		time.Sleep(20 * time.Millisecond) // no event tells of the end of a stranger's child
	}
}

func TestNodeFails(t *testing.T) {
	_, err := node(t.Context(), filepath.Join(t.TempDir(), "missing.mjs"), nil)
	if err == nil || !bytes.Contains([]byte(err.Error()), []byte("missing.mjs: exit status 1\n")) {
		t.Errorf("node = %v, want its exit status and what it said", err)
	}
}

// marked returns the command lines of the processes that have mark in their
// environment.
func marked(t *testing.T, mark string) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Error(err)
	}
	var found []string
	for _, dir := range dirs {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // ended in between, or somebody else's
		}
		if bytes.Contains(env, []byte(mark)) {
			line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
			found = append(found, dir+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}
