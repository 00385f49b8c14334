// Package webtest drives the bridge's pages in a real browser, for tests only.
//
// It runs the scripts in testdata/npm/browser on Node.js with playwright-core and
// Debian's Chromium; "make deps" installs all three.
package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Options say what to do on a page.
type Options struct {
	URL        string   `json:"url"`
	Calls      []Call   `json:"calls,omitempty"`      // to try, one after the other; none only opens the page
	Keys       []string `json:"keys,omitempty"`       // credentials to give where the page asks for one first
	Authorize  string   `json:"authorize,omitempty"`  // credential for the first scheme in the dialog; "" gives none
	Screenshot string   `json:"screenshot,omitempty"` // path of a PNG to write; "" writes none
	Dark       bool     `json:"-"`                    // the browser prefers dark pages
}

// A Call is one operation to try.
type Call struct {
	Operation string  `json:"operation"`      // its operationId
	Body      *string `json:"body,omitempty"` // of the request; nil leaves the example that the page offers
}

// A Report is what the browser saw.
type Report struct {
	Title      string    // of the tab
	Heading    string    // title of the document on the page
	Operations []string  // operationIds on the page
	Requests   []Request // everything that was asked for, in order
	Foreign    []string  // addresses of another origin that were asked for
	Faults     []string  // console errors and warnings, exceptions, failed requests, breaches of the page's policy
	Answers    []Answer  // one for each of Options.Calls
}

// A Request is one that the page made. Status is 0 when no answer came.
type Request struct {
	Method string
	URL    string
	Status int
}

// An Answer is what came of a call by the button "Execute".
type Answer struct {
	Method  string
	URL     string
	Headers map[string]string // of the request, names in lower case
	Body    string            // of the request
	Status  int               // as the page shows it
	Shown   string            // the answer's body, as the page shows it
}

// limit is how long a page may take altogether; a browser's cold start on a busy
// machine is most of it.
const limit = 4 * time.Minute

// Swagger opens a Swagger UI page, tries operations as a person would, and
// returns what the browser saw. The test fails at once if that cannot be done.
func Swagger(t *testing.T, o Options) *Report {
	t.Helper()
	var report Report
	drive(t, "swagger.mjs", struct {
		Options
		browser
	}{o, newBrowser(t, o.Dark)}, &report)
	return &report
}

// A browser is what every script is told of the browser.
type browser struct {
	Chromium    string `json:"chromium"`
	ColorScheme string `json:"colorScheme"`
}

func newBrowser(t *testing.T, dark bool) browser {
	t.Helper()
	b := browser{chromium(t), "light"}
	if dark {
		b.ColorScheme = "dark"
	}
	return b
}

// drive runs a script with what it is asked, and reads its report.
func drive(t *testing.T, script string, ask, report any) {
	t.Helper()
	in, err := json.Marshal(ask)
	if err != nil {
		t.Fatal(err)
	}
	out, err := node(t.Context(), filepath.Join(root(t), "testdata", "npm", "browser", script), in)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, report); err != nil {
		t.Fatalf("the script printed %q: %v", out, err)
	}
}

// node runs a script and returns what it printed. When ctx ends, the script is
// asked to stop, and stops its browser; the browser also ends by itself when the
// pipe through which the script drives it closes.
func node(ctx context.Context, script string, in []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "node", script)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", filepath.Base(script), err, stderr.Bytes())
	}
	return stdout.Bytes(), nil
}

// chromium finds the browser under the names that distributions give it.
func chromium(t *testing.T) string {
	t.Helper()
	names := []string{"chromium", "chromium-browser", "google-chrome"}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatalf("none of %s is installed; run make deps", strings.Join(names, ", "))
	return ""
}

// root finds the repository's directory, from whichever package is being tested.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's directory")
		}
		dir = parent
	}
}
