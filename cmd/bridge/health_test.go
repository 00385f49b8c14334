package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
)

// health runs bridge health and returns its exit status and what it prints.
func health(t *testing.T, env string, args ...string) (code int, printed string) {
	t.Helper()
	var out strings.Builder
	getenv := func(name string) string {
		if name == "BRIDGE_URL" {
			return env
		}
		return ""
	}
	err := run(t.Context(), append([]string{"health"}, args...), getenv, strings.NewReader(""), &out, &out)
	return exitCode(err, &out), out.String()
}

func TestHealth(t *testing.T) {
	p := start(t, map[string]server{"ok": mode(t, "ok")}, map[string]any{"basePath": "/b", "drainDelay": "10m"})
	until(t, "the bridge is ready", func() bool { return p.get("/b/readyz").StatusCode == http.StatusOK })
	if code, out := health(t, "", "--url", p.base+"/b/"); code != 0 || out != "" {
		t.Errorf("of a bridge that is ready: %d, %q", code, out)
	}
	if code, out := health(t, p.base+"/b"); code != 0 || out != "" {
		t.Errorf("by the environment: %d, %q", code, out)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(t, "the bridge stops", func() bool { return p.get("/b/readyz").StatusCode != http.StatusOK })
	if code, out := health(t, p.base+"/b"); code != 1 || !strings.Contains(out, "not ready: HTTP 503") {
		t.Errorf("of a bridge that stops: %d, %q", code, out)
	}
	_ = p.cmd.Process.Kill() // the delay is long
	<-p.exited
	if code, out := health(t, p.base); code != 1 || !strings.Contains(out, "cannot be reached") {
		t.Errorf("of no bridge: %d, %q", code, out)
	}
	p.wantNoProcess()

	elsewhere := httptest.NewServer(http.RedirectHandler("/other", http.StatusFound))
	defer elsewhere.Close()
	if code, out := health(t, elsewhere.URL); code != 1 || !strings.Contains(out, "HTTP 302") {
		t.Errorf("of what sends us elsewhere: %d, %q", code, out)
	}
	if code, out := health(t, "127.0.0.1:8080"); code != 2 || !strings.Contains(out, "must start with http://") {
		t.Errorf("of no URL: %d, %q", code, out)
	}
}
