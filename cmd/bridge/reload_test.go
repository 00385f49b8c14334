package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mcpbridge/internal/config"
	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/routes"
)

// A configFile is the configuration file of a running bridge.
type configFile struct {
	t    *testing.T
	path string
	more map[string]any // of the bridge section
}

// startFile runs bridge serve with a file that is going to change.
func startFile(t *testing.T, servers map[string]server, more map[string]any) (*process, *configFile) {
	t.Helper()
	f := &configFile{t: t, path: filepath.Join(t.TempDir(), "bridge.json"), more: more}
	write(t, f.path, f.text(servers))
	return startArgs(t, "serve", "--config", f.path), f
}

func (f *configFile) text(servers map[string]server) string {
	f.t.Helper()
	section := map[string]any{"listen": "127.0.0.1:0"}
	maps.Copy(section, f.more)
	b, err := json.MarshalIndent(map[string]any{"mcpServers": servers, "bridge": section}, "", " ")
	if err != nil {
		f.t.Fatal(err)
	}
	return string(b) + "\n"
}

// replace writes the file as editors do: another one in its place.
func (f *configFile) replace(text string) {
	f.t.Helper()
	write(f.t, f.path+".new", text)
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// config is the part of /status that is about the configuration.
func (p *process) config() routes.ConfigStatus {
	p.t.Helper()
	st, _, _ := p.status()
	if st.Config == nil {
		p.t.Fatal("/status says nothing of the configuration")
	}
	return *st.Config
}

// serves reports whether exactly these servers are there, none of them still connecting.
func (p *process) serves(handles ...string) bool {
	p.t.Helper()
	var c catalogue
	decode(p.t, p.get("/tools?limit=1000"), &c)
	var have []string
	for _, s := range c.Servers {
		have = append(have, s.Handle)
		if s.State == "connecting" {
			return false
		}
	}
	return strings.Join(have, " ") == strings.Join(handles, " ")
}

// hangUp sends SIGHUP.
func (p *process) hangUp() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		p.t.Fatal(err)
	}
}

// Trial L10: servers are added, changed and removed in the file while calls run. No call
// to one that stays is lost, those that did not change keep their processes, and no old one is left.
func TestReloadUnderLoad(t *testing.T) {
	keep, change := with(mode(t, "ok"), "maxConcurrent", 8), with(mode(t, "ok"), "env", map[string]string{"V": "0"})
	p, f := startFile(t, map[string]server{"change": change, "keep": keep}, nil)
	p.ready()
	pid := p.pid("keep")

	var calls, lost atomic.Int32
	var first sync.Once
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for _, handle := range []string{"keep", "change", "come-and-go"} {
		for range 4 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					res := p.do("POST", "/tools/"+handle+"/echo", `{"message":"x"}`)
					calls.Add(1)
					if res.StatusCode != http.StatusOK && !(handle == "come-and-go" && res.StatusCode == http.StatusNotFound) {
						lost.Add(1)
						first.Do(func() { t.Logf("the first lost call, to %s: %d %s", handle, res.StatusCode, res.body) })
					}
				}
			})
		}
	}
	link := func(text, name string) { // as a ConfigMap is changed
		write(t, f.path+name, text)
		if err := os.Symlink(filepath.Base(f.path)+name, f.path+".tmp"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(f.path+".tmp", f.path); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 6 {
		servers := map[string]server{"keep": keep}
		value := fmt.Sprint(round + 1)
		servers["change"] = with(maps.Clone(change), "env", map[string]string{"V": value})
		want := []string{"change", "keep"}
		if round%2 == 0 {
			servers["come-and-go"] = with(mode(t, "ok"), "env", map[string]string{"V": "there"})
			want = []string{"change", "come-and-go", "keep"}
		}
		switch text := f.text(servers); round % 3 {
		case 0:
			write(t, f.path, text)
		case 1:
			f.replace(text)
		default:
			link(text, value)
		}
		until(t, "round "+value+" is served", func() bool {
			return p.serves(want...) && p.text("change", "env", `{"name":"V"}`) == value
		})
	}
	close(stop)
	wg.Wait()
	if lost.Load() > 0 || calls.Load() < 100 {
		t.Errorf("%d of %d calls were lost", lost.Load(), calls.Load())
	}
	if now := p.pid("keep"); now != pid {
		t.Errorf("the server that did not change has process %d, had %d", now, pid)
	}
	until(t, "the old processes are gone", func() bool {
		servers := 0
		for _, line := range tagged(p.tag) {
			if strings.Contains(line, "mcptest ok") {
				servers++
			}
		}
		st, _, _ := p.status()
		return st.Processes == 2 && servers == 2
	})
	if st := p.config(); st.Reloads != 6 || st.Failed != 0 || st.Stale {
		t.Errorf("configuration = %+v", st)
	}
	t.Logf("%d calls during 6 reloads", calls.Load())
}

// What is wrong with a file changes nothing, and is said in the log and in /status until it is mended.
func TestReloadBadFile(t *testing.T) {
	ok := mode(t, "ok")
	good := map[string]server{"ok": ok}
	p, f := startFile(t, good, nil)
	p.ready()
	pid := p.pid("ok")
	for _, tt := range []struct {
		name  string
		spoil func()
		says  []string
	}{
		{"two mistakes", func() {
			f.replace(f.text(map[string]server{"ok": with(maps.Clone(ok), "timeout", "soon"), "x": {"url": "ftp://s3cret"}}))
		}, []string{"mcpServers.ok.timeout", "mcpServers.x.url"}},
		{"empty", func() { write(t, f.path, "") }, []string{"the file is empty"}},
		{"half of it", func() { write(t, f.path, f.text(good)[:20]) }, []string{"the file ends in the middle of something"}},
		{"gone", func() {
			if err := os.Remove(f.path); err != nil {
				t.Fatal(err)
			}
		}, []string{"no such file"}},
		{"no key", func() {
			f.replace(f.text(map[string]server{"ok": ok, "x": {"url": "https://127.0.0.1:1", "credential": map[string]any{
				"clientId": "a", "privateKey": "-----BEGIN PRIVATE KEY-----\nczNjcmV0\n-----END PRIVATE KEY-----\n",
			}}}))
		}, []string{"the private key of the credential"}},
	} {
		before := p.config()
		tt.spoil()
		until(t, tt.name+" is noticed", func() bool { return p.config().Failed > before.Failed })
		st := p.config()
		if !st.Stale || st.Reloads != before.Reloads || !st.Applied.Equal(before.Applied) {
			t.Errorf("%s: configuration = %+v, was %+v", tt.name, st, before)
		}
		for _, text := range tt.says {
			if said := strings.Join(st.Errors, "\n"); !strings.Contains(said, text) || !strings.Contains(p.log(), text) {
				t.Errorf("%s: /status says %q, and the log\n%s\nwant %q", tt.name, said, p.log(), text)
			}
		}
		if !p.serves("ok") || p.pid("ok") != pid {
			t.Errorf("%s: what is served has changed", tt.name)
		}
		f.replace(f.text(good))
		until(t, "the good file is back, after: "+tt.name, func() bool {
			now := p.config()
			return !now.Stale && now.Reloads > before.Reloads
		})
	}
	if p.pid("ok") != pid {
		t.Error("the process is another one")
	}
	if strings.Contains(p.log(), "s3cret") {
		t.Error("the log shows a URL that could not be read")
	}
}

// SIGHUP reads the file and its secrets anew, whatever has changed.
func TestHangUp(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "key")
	write(t, secret, "one\n")
	ok := with(mode(t, "ok"), "env", map[string]string{"KEY": "${file:" + secret + "}"})
	p, _ := startFile(t, map[string]server{"ok": ok}, nil)
	p.ready()
	if got := p.text("ok", "env", `{"name":"KEY"}`); got != "one" {
		t.Errorf("the secret is %q", got)
	}
	pid := p.pid("ok")
	p.hangUp()
	until(t, "SIGHUP is answered", func() bool { return p.config().Reloads == 1 })
	if p.pid("ok") != pid {
		t.Error("nothing has changed, and the process is another one")
	}
	write(t, secret, "two\n")
	until(t, "the new secret is used", func() bool { return p.text("ok", "env", `{"name":"KEY"}`) == "two" })
	if strings.Contains(p.log(), "two") {
		t.Error("the log shows the secret")
	}
}

// Without a file there is nothing to reload, which is no reason to end.
func TestHangUpWithoutFile(t *testing.T) {
	p := startArgs(t, "serve", "--demo", "--listen", "127.0.0.1:0")
	p.ready()
	p.hangUp()
	until(t, "SIGHUP is answered", func() bool { return strings.Contains(p.log(), "there is no configuration file") })
	if got := p.call("demo", "add", `{"a":1,"b":2}`, 200); string(got.body) != `{"sum":3}` {
		t.Errorf("after SIGHUP: %s", got.body)
	}
}

// Settings that cannot be changed are named, and cost no other change; the file is never written.
func TestReloadSettings(t *testing.T) {
	remote := mcptest.Start(t, mcptest.HTTPRaw, "ok")
	p, f := startFile(t, map[string]server{"a": {"url": remote.URL}}, map[string]any{"pool": map[string]any{"stdioCalls": 5}})
	p.ready()
	f.more = map[string]any{"pool": map[string]any{"stdioCalls": 6}, "queue": map[string]any{"maxWait": "1s"}, "timeouts": map[string]any{"call": "3s"}}
	text := f.text(map[string]server{"b": {"url": remote.URL}})
	f.replace(text)
	until(t, "the new server is served", func() bool { return p.serves("b") })
	until(t, "the settings are named", func() bool {
		return strings.Join(p.config().Restart, " ") == "bridge.pool bridge.queue"
	})
	if !strings.Contains(p.log(), "take a restart") {
		t.Error("the log does not name them")
	}
	if now, err := os.ReadFile(f.path); err != nil || string(now) != text {
		t.Errorf("the file was written: %s, %v", now, err)
	}
	f.more = map[string]any{"pool": map[string]any{"stdioCalls": 5}}
	f.replace(f.text(map[string]server{"b": {"url": remote.URL}}))
	until(t, "the settings are as they were", func() bool { return p.config().Restart == nil })
}

// Every setting is either changed by a reload or named as one that takes a restart.
func TestNeedRestart(t *testing.T) {
	live := []string{"Auth"} // and the parts of others that are only the defaults of servers
	have := config.DefaultBridge()
	v := reflect.ValueOf(have)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		next := have
		change(reflect.ValueOf(&next).Elem().Field(i))
		named := needRestart(&have, &next)
		if want := !slices.Contains(live, name); want != (len(named) == 1) {
			t.Errorf("a change of %s takes a restart because of %q, want %t", name, named, want)
		}
	}
	next := have
	next.Timeouts = config.Timeouts{Call: 1, MaxTimeout: have.Timeouts.MaxTimeout, Start: 2, Handshake: 3}
	next.Pool.IdleTimeout, next.Pool.StdioCallsPerServer, next.Admin.AllowCommands = 1, 1, true
	if named := needRestart(&have, &next); named != nil {
		t.Errorf("%q take a restart", named)
	}
}

// change makes a value, and all in it, another one.
func change(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 1)
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[config.Value]() {
			v.Set(reflect.ValueOf(config.Plain("x")))
			return
		}
		for _, field := range v.Fields() {
			change(field)
		}
	}
}

// Keys come and go with the file, and a bridge that others can reach is never left without.
func TestReloadCallers(t *testing.T) {
	one, oneEntry := newKey(t, "one", map[string]any{"scopes": []string{"call", "admin"}})
	two, twoEntry := newKey(t, "two", nil)
	keys := func(entries ...map[string]any) map[string]any {
		return map[string]any{"auth": map[string]any{"keys": entries}}
	}
	f := &configFile{t: t, path: filepath.Join(t.TempDir(), "bridge.json"), more: keys(oneEntry)}
	off := map[string]server{"off": {"command": "x", "disabled": true}}
	write(t, f.path, f.text(off))
	p := startArgs(t, "serve", "--config", f.path, "--listen", "0.0.0.0:0")
	p.base = "http://127.0.0.1:" + p.base[strings.LastIndexByte(p.base, ':')+1:]
	status := func(key string) int { return p.do("GET", "/tools", "", "X-API-Key", key).StatusCode }
	if status(one) != 200 || status(two) != 401 {
		t.Errorf("at first: %d, %d", status(one), status(two))
	}
	f.more = keys(oneEntry, twoEntry)
	f.replace(f.text(off))
	until(t, "the new key is good", func() bool { return status(two) == 200 })
	f.more = nil
	f.replace(f.text(off))
	until(t, "a file without keys is refused", func() bool {
		var st routes.Status
		decode(t, p.do("GET", "/status", "", "X-API-Key", one), &st)
		return st.Config.Stale && strings.Contains(strings.Join(st.Config.Errors, ""), "no longer says who callers are")
	})
	if status(one) != 200 || status("") != 401 {
		t.Errorf("after a file without keys: %d with one, %d without", status(one), status(""))
	}
	f.more = keys(twoEntry)
	f.replace(f.text(off))
	until(t, "the old key is bad", func() bool { return status(one) == 401 && status(two) == 200 })
	if res := p.do("GET", "/status", "", "X-API-Key", two); strings.Contains(string(res.body), "config") {
		t.Errorf("a caller without the scope sees the configuration: %s", res.body)
	}
	for _, key := range []string{one, two} {
		if strings.Contains(p.log(), key) {
			t.Error("the log shows a key")
		}
	}
}

// A key that is taken away is bad at once, also while a new server of the same change keeps everybody waiting.
func TestReloadRevokesAtOnce(t *testing.T) {
	one, oneEntry := newKey(t, "one", map[string]any{"scopes": []string{"call", "admin"}})
	two, twoEntry := newKey(t, "two", nil)
	p, f := startFile(t, nil, map[string]any{"auth": map[string]any{"keys": []any{oneEntry, twoEntry}}})
	status := func(key string) int { return p.do("GET", "/tools", "", "X-API-Key", key).StatusCode }
	if status(one) != 200 || status(two) != 200 {
		t.Fatalf("at first: %d, %d", status(one), status(two))
	}
	f.more = map[string]any{"auth": map[string]any{"keys": []any{oneEntry}}, "shutdownGrace": "1s"}
	f.replace(f.text(map[string]server{"silent": with(mode(t, mcptest.NeverAnswerInitialize), "handshakeTimeout", "5m")}))
	until(t, "the key is bad", func() bool { return status(two) == 401 })
	var st routes.Status
	decode(t, p.do("GET", "/status", "", "X-API-Key", one), &st)
	if st.Config.Reloads != 0 {
		t.Error("the change was applied by then, which shows nothing")
	}
}
