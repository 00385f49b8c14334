package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/web"
	"mcpbridge/internal/web/webtest"
)

// object is JSON to be.
type object = map[string]any

// An events is what sends the console its events, as the bridge does.
type events struct {
	*httptest.Server
	key string // that streams need; "" needs none
	mux *http.ServeMux

	mu      sync.Mutex
	latest  string        // the snapshot that new streams begin with, guarded by mu
	changed chan struct{} // closed when latest has changed, guarded by mu
	cut     chan struct{} // closed to end all streams, guarded by mu
	down    bool          // answers nothing but errors, guarded by mu
	opened  int           // streams so far, guarded by mu
	closed  int           // those of them that have ended, guarded by mu
}

const tools = `[{"handle":"files","tools":[["read file","read_file_0a"],["write","write"]]},{"handle":"big","tools":[` + `["t","t"]` + `]}]`

func newEvents(t *testing.T, prefix string) *events {
	t.Helper()
	mux := http.NewServeMux()
	e := &events{mux: mux, changed: make(chan struct{}), cut: make(chan struct{})}
	mux.Handle("GET "+prefix+"/docs/assets/{name}", web.Assets(http.NotFoundHandler()))
	mux.Handle("GET "+prefix+"/{$}", web.Console{Version: "1.2.3"})
	mux.HandleFunc("GET "+prefix+"/console/events", e.stream)
	mux.HandleFunc("GET "+prefix+"/tools/{handle}/docs", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the docs") })
	// Steps have the page ask for these, and so change what it is sent.
	mux.HandleFunc("POST "+prefix+"/do/{what}", func(_ http.ResponseWriter, r *http.Request) { e.do(r.PathValue("what")) })
	e.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		e.do("down")
		e.Close()
	})
	e.show(nil)
	return e
}

// do does what a step of a test wants of the server.
func (e *events) do(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch what {
	case "down":
		e.down = true
	case "up":
		e.down = false
	}
	close(e.cut)
	e.cut = make(chan struct{})
}

func (e *events) stream(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	latest, changed, cut, down := e.latest, e.changed, e.cut, e.down
	e.opened++
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.closed++
	}()
	if e.key != "" && r.Header.Get("Authorization") != "Bearer "+e.key {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnauthorized)
		io.WriteString(w, `{"detail":"Send a key."}`)
		return
	}
	if down {
		w.Header().Set("Retry-After", "2")
		w.WriteHeader(http.StatusServiceUnavailable)
		io.WriteString(w, `{"detail":"The bridge is about to stop."}`)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, ": open\n\nevent: tools\ndata: %s\n\n", tools)
	for {
		fmt.Fprintf(w, "event: snapshot\ndata: %s\n\n", latest)
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-changed:
		case <-cut:
			return
		case <-r.Context().Done():
			return
		}
		e.mu.Lock()
		latest, changed = e.latest, e.changed
		e.mu.Unlock()
	}
}

// show sends a snapshot, of which some members are others than usual.
func (e *events) show(change object) {
	now := time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format(time.RFC3339Nano) }
	closed := object{"state": "closed", "failures": 0}
	s := object{
		"now": at(0), "version": "1.2.3", "ready": true, "everybody": true, "waiting": 4, "processes": 2, "max_processes": 64,
		"artifacts": object{"store": "memory", "down": false},
		"servers": []object{
			{"handle": "files", "title": "Files", "state": "ready", "since": at(-time.Hour), "tools": 2, "docs": "tools/files/docs", "circuit": closed},
			{"handle": "idle", "title": "idle", "state": "idle", "since": at(-25 * time.Hour), "tools": 1, "docs": "tools/idle/docs"},
			{"handle": "mail", "title": "mail", "state": "needs-auth", "last_error": "the server answers 401", "since": at(-90 * time.Second), "next": at(4 * time.Second), "tools": 0, "docs": "tools/mail/docs", "circuit": closed},
			{
				"handle": "weather", "title": "weather", "state": "failed", "last_error": "the process exited with status 2", "since": at(-30 * time.Second), "next": at(20*time.Minute + 30*time.Second), "tools": 0, "docs": "tools/weather/docs",
				"circuit": object{"state": "open", "failures": 5, "until": at(2*time.Hour + 30*time.Second), "reason": "the process exited with status 2"},
			},
			{"handle": "zoo", "title": "zoo", "state": "degraded", "last_error": "tools/list failed", "since": at(-3 * time.Second), "tools": 9, "docs": "tools/zoo/docs", "circuit": object{"state": "half-open", "failures": 5, "reason": "slow"}},
		},
		"circuits": []object{
			{"name": "mcp:files", "handles": []string{"files"}, "state": "closed", "failures": 0},
			{"name": "mcp:weather", "handles": []string{"weather"}, "state": "open", "failures": 5, "until": at(2*time.Hour + 30*time.Second), "reason": "exit"},
			{"name": "mcp:zoo", "handles": []string{"zoo"}, "state": "half-open", "failures": 5, "reason": "slow"},
		},
		"gates": []object{
			{"name": "mcp:files", "kind": "slots", "in_use": 3, "capacity": 10, "waiting": 0},
			{"name": "mcp:http", "kind": "slots", "in_use": 180, "capacity": 200, "waiting": 0},
			{"name": "mcp:zoo", "kind": "slots", "in_use": 4, "capacity": 4, "waiting": 3},
			{"name": "mcp:zoo", "kind": "rate", "in_use": 17, "capacity": 60, "waiting": 1},
		},
		"calls": []object{},
	}
	maps.Copy(s, change)
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.latest = string(b)
	close(e.changed)
	e.changed = make(chan struct{})
}

// madeCall is a call in a snapshot.
func madeCall(n int, code string, status int) object {
	return object{"at": time.Unix(int64(n), 0).UTC(), "id": fmt.Sprint("request-", n), "handle": "files", "kind": "tool", "name": "read <b>file</b>", "status": status, "code": code, "ms": 12.5, "in": 34, "out": 5_600}
}

// value decodes what a step has noted.
func value[T any](t *testing.T, s *webtest.Session, i int) (v T) {
	t.Helper()
	if err := json.Unmarshal(s.Values[i], &v); err != nil {
		t.Fatalf("value %d, %s: %v", i, s.Values[i], err)
	}
	return v
}

// wantQuiet fails the test for anything that a page must never do.
func wantQuiet(t *testing.T, s *webtest.Session) {
	t.Helper()
	if len(s.Foreign) > 0 {
		t.Errorf("the page asked other hosts: %q", s.Foreign)
	}
	if len(s.Faults) > 0 {
		t.Errorf("the browser complained:\n%s", strings.Join(s.Faults, "\n"))
	}
	if len(s.Faint) > 0 {
		t.Errorf("hard to read:\n%s", strings.Join(s.Faint, "\n"))
	}
}

// texts is an expression for the text of all elements by a selector, white space made plain.
func texts(selector string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%q)].map((e) => e.innerText.replace(/\s+/g, ' ').trim())`, selector)
}

// What is broken comes first, with the reason in words and what happens next; gates are
// drawn. Light and dark, wide and narrow, and behind a proxy on a sub-path.
func TestConsoleInBrowser(t *testing.T) {
	for _, test := range []struct {
		name, prefix string
		width        int
		dark         bool
	}{{"light", "", 1200, false}, {"dark", "/mcp/bridge", 1200, true}, {"narrow", "", 360, false}, {"narrow dark", "", 360, true}} {
		t.Run(test.name, func(t *testing.T) {
			e := newEvents(t, test.prefix)
			e.show(object{"calls": []object{madeCall(3, "", 200), madeCall(2, "server-unavailable", 503), madeCall(1, "tool-error", 0)}})
			s := webtest.Browse(t, webtest.Visit{URL: e.URL + test.prefix + "/", Width: test.width, Dark: test.dark, Steps: []webtest.Step{
				{Wait: "#link-text", Text: "Live"},
				{Wait: ".calls tbody tr"},
				{Value: texts(".servers tbody tr th a")},
				{Value: texts(".servers tbody tr td:nth-child(2)")},
				{Value: texts("#summary")},
				{Value: `document.title`},
				{Value: `[...document.querySelectorAll('.gates tbody tr')].map((r) => ['used', 'free', 'waiting'].map((k) => r.querySelectorAll('rect.' + k).length))`},
				{Value: texts(".circuits tbody tr")},
				{Value: texts("#news")},
				{Value: `document.documentElement.scrollWidth - innerWidth`},
				{Click: "#tools summary"},
				{Wait: "#tools a", Text: "read file"},
				{Value: `[...document.querySelectorAll('#tools a, .servers a, nav a')].map((a) => a.href.replace(location.origin, ''))`},
				{Value: `document.querySelectorAll('[role=table]').length + ' ' + document.querySelectorAll('[role=row]').length`},
				{Screenshot: filepath.Join(t.ArtifactDir(), "console.png")},
			}})
			wantQuiet(t, s)
			if diff := cmp.Diff([]string{"mail", "weather", "zoo", "files", "idle"}, value[[]string](t, s, 0)); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
			says := value[[]string](t, s, 1)
			for i, want := range [][]string{
				{"Credentials refused", "the server answers 401", "have to be renewed", "Tried again"},
				{"Failed", "circuit open", "the process exited with status 2", "Tried again in 20 min ", "Calls fail fast until that works; one may try in 2 h."},
				{"Degraded", "circuit half-open", "tools/list failed", "last good list"},
				{"Ready"},
				{"Idle", "by the next call"},
			} {
				for _, text := range want {
					if !strings.Contains(says[i], text) {
						t.Errorf("row %d says %q, and not %q", i, says[i], text)
					}
				}
			}
			if got := value[[]string](t, s, 2); !cmp.Equal(got, []string{"2 of 5 servers are broken: mail, weather"}) {
				t.Errorf("summary %q", got)
			}
			if got := value[string](t, s, 3); got != "2 broken – MCP Bridge" {
				t.Errorf("title %q", got)
			}
			// 3 of 10 slots; 180 of 200 as one bar; 4 of 4 and 3 in line; a rate.
			if diff := cmp.Diff([][]int{{3, 7, 0}, {1, 1, 0}, {4, 0, 3}, {1, 1, 1}}, bars(value[[][]int](t, s, 4))); diff != "" {
				t.Errorf("bars (-want +got):\n%s", diff)
			}
			if got := value[[]string](t, s, 5); len(got) != 2 || !strings.Contains(got[0], "mcp:weather open") || !strings.Contains(got[1], "mcp:zoo half-open") {
				t.Errorf("circuits: %q", got)
			}
			if got := value[[]string](t, s, 6); got[0] != "2 of 5 servers are broken: mail, weather" {
				t.Errorf("a screen reader hears %q", got)
			}
			if over := value[int](t, s, 7); over > 0 {
				t.Errorf("the page is %d pixels too wide", over)
			}
			for _, href := range value[[]string](t, s, 8) {
				if !strings.HasPrefix(href, test.prefix+"/") {
					t.Errorf("a link leads to %s", href)
				}
			}
			if hrefs := strings.Join(value[[]string](t, s, 8), " "); !strings.Contains(hrefs, test.prefix+"/tools/files/docs#/files/read_file_0a") {
				t.Errorf("no link to a tool: %s", hrefs)
			}
			if got := value[string](t, s, 9); got != "4 18" {
				t.Errorf("tables and rows: %s", got)
			}
		})
	}
}

// bars counts many boxes of a rate as one, whose number depends on the width.
func bars(rows [][]int) [][]int {
	for i := range rows[3] {
		rows[3][i] = min(rows[3][i], 1)
	}
	return rows
}

// What is new appears while it is looked at, and is told to a screen reader if it is a
// server's state; what is focused stays so, what is unfolded too, and the page does not grow.
func TestConsoleLiveInBrowser(t *testing.T) {
	e := newEvents(t, "")
	e.mux.HandleFunc("POST /calls/{from}", func(_ http.ResponseWriter, r *http.Request) {
		var from int
		if _, err := fmt.Sscan(r.PathValue("from"), &from); err != nil {
			panic(err)
		}
		calls := []object{}
		for n := from; n > from-100; n-- {
			calls = append(calls, madeCall(n, "", 200))
		}
		change := object{"calls": calls, "waiting": from}
		if from >= 3000 {
			change["servers"] = []object{{"handle": "files", "title": "Files", "state": "failed", "last_error": "gone", "tools": 0, "docs": "tools/files/docs"}}
		}
		e.show(change)
	})
	do := func(path string) webtest.Step {
		return webtest.Step{Value: fmt.Sprintf(`fetch(%q, {method: 'POST'}).then((r) => r.text())`, path)}
	}
	steps := []webtest.Step{
		{Wait: "#link-text", Text: "Live"},
		{Value: `window.heard = []; new MutationObserver(() => heard.push(document.querySelector('#news').textContent)).observe(document.querySelector('#news'), {childList: true, characterData: true, subtree: true})`},
		{Value: texts("#calls-empty")},
		{Click: "#tools summary"},
		{Wait: "#tools a", Text: "read file"},
		do("/calls/1000"),
		{Wait: ".calls tbody tr", Text: "request-1000"},
		{Value: `[document.querySelectorAll('*').length, document.querySelectorAll('.calls tbody tr').length]`},
		{Value: `document.querySelector('[data-key="server files"]').focus(); document.querySelector('.calls tbody tr').id = 'marked'`},
		do("/calls/1002"), // all but two are the same
		{Wait: ".calls tbody tr", Text: "request-1002"},
		{Value: `document.querySelectorAll('.calls tbody tr')[2].id + ' ' + document.querySelectorAll('.calls tbody tr').length`},
	}
	for n := 1010; n < 2900; n += 90 { // a long day
		steps = append(steps, do(fmt.Sprint("/calls/", n)))
		if n%200 == 0 {
			steps = append(steps, do("/do/cut"))
		}
	}
	steps = append(steps,
		do("/calls/2999"), webtest.Step{Wait: ".calls tbody tr", Text: "request-2999"},
		webtest.Step{Value: `[document.querySelectorAll('*').length, document.querySelectorAll('.calls tbody tr').length]`},
		webtest.Step{Value: `document.activeElement.dataset.key + ' ' + document.querySelector('#tools details').open`},
		webtest.Step{Value: `heard`},
		do("/calls/3000"), webtest.Step{Wait: "#summary", Text: "1 of 1 server is broken: files"},
		webtest.Step{Value: `document.activeElement.dataset.key`},
		webtest.Step{Value: `heard`},
	)
	s := webtest.Browse(t, webtest.Visit{URL: e.URL + "/", Steps: steps})
	wantQuiet(t, s)
	n := len(s.Values)
	if got := value[[]string](t, s, 1); got[0] != "No call has ended since the bridge was started." {
		t.Errorf("without calls it says %q", got)
	}
	before, after := value[[2]int](t, s, 3), value[[2]int](t, s, n-6)
	if before != after || before[1] != 100 {
		t.Errorf("elements and rows: %v, and after a long day %v", before, after)
	}
	if got := value[string](t, s, 6); got != "marked 100" {
		t.Errorf("the third row was drawn anew: %q", got)
	}
	if got := value[string](t, s, n-5); got != "server files true" {
		t.Errorf("focus and what was unfolded: %q", got)
	}
	for _, text := range value[[]string](t, s, n-4) {
		if !strings.Contains(text, "may be old") { // the stream was cut
			t.Errorf("a screen reader was told %q, though no state has changed", text)
		}
	}
	if got := value[string](t, s, n-2); got != "server files" {
		t.Errorf("the focus went to %q", got)
	}
	if heard := value[[]string](t, s, n-1); len(heard) == 0 || !strings.Contains(heard[len(heard)-1], "files: Failed") || !strings.Contains(heard[len(heard)-1], "weather: gone") {
		t.Errorf("a screen reader heard %q", heard)
	}
}

// Everything can be reached and used with the keyboard, and what has the focus shows it.
func TestConsoleByKeyboard(t *testing.T) {
	e := newEvents(t, "")
	const where = `(() => { const e = document.activeElement, s = getComputedStyle(e); return e.innerText.trim().split('\n')[0] + (s.outlineStyle === 'solid' && parseFloat(s.outlineWidth) >= 2 ? '' : ' without a mark'); })()`
	steps := []webtest.Step{{Wait: "#link-text", Text: "Live"}}
	want := []string{
		"Skip to the servers", "Swagger UI", "Tools", "OpenAPI", "Status", "mail", "weather", "zoo", "files", "idle", "files · 2 tools", "big · 1 tool",
	}
	for range want {
		steps = append(steps, webtest.Step{Press: "Tab"}, webtest.Step{Value: where})
	}
	steps = append(steps,
		webtest.Step{Press: "Shift+Tab"}, webtest.Step{Press: "Enter"}, webtest.Step{Wait: "#tools a", Text: "read file"},
		webtest.Step{Press: "Tab"}, webtest.Step{Value: where}, webtest.Step{Press: "Tab"}, webtest.Step{Value: where},
		webtest.Step{Value: `[...document.querySelectorAll('h1, h2')].map((h) => h.tagName + ' ' + h.innerText.trim()).concat([...document.querySelectorAll('header, nav, main, section[aria-labelledby]')].filter((e) => e.checkVisibility()).map((e) => e.tagName))`},
		webtest.Step{Press: "Enter"}, webtest.Step{Wait: "body", Text: "the docs"}, webtest.Step{Value: `location.pathname + location.hash`},
	)
	s := webtest.Browse(t, webtest.Visit{URL: e.URL + "/", Steps: steps})
	var got []string
	for i := range len(want) + 2 {
		got = append(got, value[string](t, s, i))
	}
	if diff := cmp.Diff(append(want, "Open files in Swagger UI", "read file"), got); diff != "" {
		t.Errorf("the focus (-want +got):\n%s", diff)
	}
	marks := []string{
		"H1 MCP Bridge 1.2.3", "H2 Who is looking?", "H2 Servers", "H2 Gates", "H2 Circuits", "H2 Recent calls", "H2 Tools",
		"HEADER", "NAV", "MAIN", "SECTION", "SECTION", "SECTION", "SECTION", "SECTION",
	}
	shown := value[[]string](t, s, len(want)+2)
	if i := slices.Index(shown, "H2 "); i >= 0 { // what is hidden has no text
		shown[i] = "H2 Who is looking?"
	}
	if diff := cmp.Diff(marks, shown); diff != "" {
		t.Errorf("headings and landmarks (-want +got):\n%s", diff)
	}
	if got := value[string](t, s, len(want)+3); got != "/tools/files/docs#/files/read_file_0a" {
		t.Errorf("the link led to %s", got)
	}
}

// Where keys are needed, the page asks for one, and for another if it is wrong or taken away.
func TestConsoleAsksForKey(t *testing.T) {
	e := newEvents(t, "")
	e.key = "right"
	s := webtest.Browse(t, webtest.Visit{URL: e.URL + "/", Steps: []webtest.Step{
		{Wait: "#key-label", Text: "needs an API key or a token"},
		{Value: `document.activeElement.id + ' ' + document.querySelector('#all').hidden`},
		{Screenshot: filepath.Join(t.ArtifactDir(), "key.png")},
		{Fill: "#key-input", Text: "wrong"},
		{Press: "Enter"},
		{Wait: "#key-label", Text: "not right"},
		{Fill: "#key-input", Text: " right "},
		{Press: "Enter"},
		{Wait: "#link-text", Text: "Live"},
		{Wait: ".servers tbody tr"},
		{Value: `[document.querySelector('#ask').hidden, document.querySelector('#key-input').value, localStorage.length + sessionStorage.length, document.cookie]`},
		{Click: "#forget"},
		{Wait: "#key-label", Text: "needs an API key or a token"},
	}})
	if got := value[string](t, s, 0); got != "key-input true" {
		t.Errorf("before the key: %s", got)
	}
	if got := string(s.Values[1]); got != `[true,"",0,""]` {
		t.Errorf("after the key: %s", got)
	}
	for _, f := range s.Faults {
		if !strings.Contains(f, "401") && !strings.Contains(f, "net::ERR_ABORTED") { // the browser tells of each, and of the stream that leaving ends
			t.Errorf("the browser complained: %s", f)
		}
	}
}

// A bridge that goes away is told of, tried again, and found again.
func TestConsoleReconnects(t *testing.T) {
	e := newEvents(t, "")
	do := func(what string) webtest.Step {
		return webtest.Step{Value: fmt.Sprintf(`fetch('/do/%s', {method: 'POST'}).then((r) => r.text())`, what)}
	}
	s := webtest.Browse(t, webtest.Visit{URL: e.URL + "/", Steps: []webtest.Step{
		{Wait: "#link-text", Text: "Live"},
		do("down"),
		{Wait: "#link-text", Text: "The bridge is about to stop. Trying again in"},
		{Value: `document.querySelector('#all').classList.contains('stale') + ' ' + document.querySelector('#news').textContent`},
		{Screenshot: filepath.Join(t.ArtifactDir(), "away.png")},
		do("up"),
		{Wait: "#link-text", Text: "Live"}, // by itself
		{Value: `document.querySelector('#all').classList.contains('stale')`},
		do("down"),
		{Wait: "#retry"},
		do("up"),
		{Click: "#retry"},
		{Wait: "#link-text", Text: "Live"},
		{Value: `document.querySelector('#retry').hidden`},
	}})
	if got := value[string](t, s, 1); got != "true The bridge is about to stop. What the page shows may be old." {
		t.Errorf("while it is away: %q", got)
	}
	if stale, hidden := value[bool](t, s, 3), value[bool](t, s, 6); stale || !hidden {
		t.Errorf("back again: stale %v, button hidden %v", stale, hidden)
	}
	for _, f := range s.Faults {
		if !strings.Contains(f, "503") {
			t.Errorf("the browser complained: %s", f)
		}
	}
}

// A page that nobody looks at holds no stream, of which a browser has few for one host.
func TestConsoleRestsWhileHidden(t *testing.T) {
	e := newEvents(t, "")
	hide := func(yes bool) webtest.Step {
		return webtest.Step{Value: fmt.Sprintf(`Object.defineProperty(document, 'hidden', {value: %v, configurable: true}), document.dispatchEvent(new Event('visibilitychange'))`, yes)}
	}
	e.mux.HandleFunc("GET /streams", func(w http.ResponseWriter, _ *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		fmt.Fprintf(w, "%d of %d", e.opened-e.closed, e.opened)
	})
	until := func(want string) string { // the server hears of an end a little later
		return fmt.Sprintf(`(async () => { for (let i = 0; ; i++) { const got = await (await fetch('/streams')).text(); if (got === %q || i === 100) return got; await new Promise((f) => setTimeout(f, 50)); } })()`, want)
	}
	s := webtest.Browse(t, webtest.Visit{URL: e.URL + "/", Steps: []webtest.Step{
		{Wait: "#link-text", Text: "Live"},
		hide(true),
		{Wait: "#all.stale"},
		{Value: until("0 of 1")},
		hide(false),
		{Wait: "#all:not(.stale)"},
		{Value: until("1 of 2")},
	}})
	if got := value[string](t, s, 1) + value[string](t, s, 3); got != "0 of 11 of 2" {
		t.Errorf("streams that are open while hidden, and then: %q", got)
	}
}
