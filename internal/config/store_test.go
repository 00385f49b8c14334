package config_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"mcpbridge/internal/config"
	"mcpbridge/internal/redistest"
)

// Every store does the same.
func TestStores(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) config.Store{
		"state file": func(t *testing.T) config.Store {
			return config.OpenStateFile(filepath.Join(t.TempDir(), "state.json"))
		},
		"redis": func(t *testing.T) config.Store { return openRedis(t, redistest.Start(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			if s.Name() != name {
				t.Errorf("Name = %q", s.Name())
			}
			if got := load(t, s); len(got) != 0 {
				t.Fatalf("a new store holds %v", got)
			}
			t.Run("versions", func(t *testing.T) { testVersions(t, s) })
			t.Run("keys", func(t *testing.T) { testKeys(t, s) })
			t.Run("race", func(t *testing.T) { testRace(t, s) })
		})
	}
}

func testVersions(t *testing.T, s config.Store) {
	key := config.EntryKey{Handle: "a"}
	one, two := json.RawMessage(`{"url":"http://one/<&>"}`), json.RawMessage(`{"url":"http://two"}`)
	refused := func(name, current string, data json.RawMessage, c config.Condition) {
		t.Helper()
		_, _, err := s.Write(t.Context(), key, data, c)
		e, ok := errors.AsType[*config.VersionError](err)
		if !ok || e.Current != current || e.Error() == "" {
			t.Errorf("%s: %v, want a version error with %q", name, err, current)
		}
	}
	refused("replace what is not there", "", one, config.Condition{Versions: []string{"*"}})
	refused("replace a version that is not there", "", one, config.Condition{Versions: []string{"x"}})
	refused("delete a version that is not there", "", nil, config.Condition{Versions: []string{"x"}})
	if _, _, err := s.Write(t.Context(), key, nil, config.Condition{}); !errors.Is(err, config.ErrNoEntry) {
		t.Errorf("delete what is not there: %v", err)
	}
	first, was, err := s.Write(t.Context(), key, one, config.Condition{New: true})
	if err != nil || was || first.Version == "" {
		t.Fatalf("Write = %+v, %t, %v", first, was, err)
	}
	if diff := gocmp.Diff([]config.Entry{{Key: key, Version: first.Version, Data: one}}, load(t, s)); diff != "" {
		t.Errorf("after a write (-want +got):\n%s", diff)
	}
	refused("make it again", first.Version, two, config.Condition{New: true})
	refused("another version", first.Version, two, config.Condition{Versions: []string{"x", "y"}})
	second, was, err := s.Write(t.Context(), key, two, config.Condition{Versions: []string{"x", first.Version}})
	if err != nil || !was || second.Version == first.Version {
		t.Fatalf("replace: %+v, %t, %v", second, was, err)
	}
	refused("the version before", second.Version, one, config.Condition{Versions: []string{first.Version}})
	third, was, err := s.Write(t.Context(), key, two, config.Condition{})
	if err != nil || !was || third.Version == second.Version {
		t.Errorf("the same again: %+v, %t, %v", third, was, err)
	}
	refused("delete the version before", third.Version, nil, config.Condition{Versions: []string{second.Version}})
	if _, was, err := s.Write(t.Context(), key, nil, config.Condition{Versions: []string{"*"}}); err != nil || !was {
		t.Errorf("delete: %t, %v", was, err)
	}
	if got := load(t, s); len(got) != 0 {
		t.Errorf("after deleting: %v", got)
	}
}

// No key is mistaken for another.
func testKeys(t *testing.T, s config.Store) {
	var want []config.Entry
	for _, k := range []config.EntryKey{
		{Handle: "a"},
		{Handle: "a", User: "u"},
		{Handle: "a", User: "u", Tenant: "t"},
		{Handle: "a", User: "u t"},
		{Handle: "a/u"},
		{Handle: "a b\"c", User: "1_2/_service_\n\u00e9"},
		{Handle: "\u00e4", User: "1"},
	} {
		e, _, err := s.Write(t.Context(), k, json.RawMessage(`{"url":"http://`+"x"+`"}`), config.Condition{New: true})
		if err != nil {
			t.Fatalf("%+v: %v", k, err)
		}
		want = append(want, e)
	}
	slices.SortFunc(want, byKey)
	if diff := gocmp.Diff(want, load(t, s)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for _, e := range want {
		if _, _, err := s.Write(t.Context(), e.Key, nil, config.Condition{Versions: []string{e.Version}}); err != nil {
			t.Error(err)
		}
	}
}

// Of many who change one version, one does.
func testRace(t *testing.T, s config.Store) {
	key := config.EntryKey{Handle: "raced"}
	e, _, err := s.Write(t.Context(), key, json.RawMessage(`{}`), config.Condition{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var won []string
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			next, _, err := s.Write(t.Context(), key, json.RawMessage(`{}`), config.Condition{Versions: []string{e.Version}})
			if _, refused := errors.AsType[*config.VersionError](err); refused {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			won = append(won, next.Version)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 || load(t, s)[0].Version != won[0] {
		t.Errorf("%q have changed the one version", won)
	}
}

func load(t *testing.T, s config.Store) []config.Entry {
	t.Helper()
	entries, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(entries, byKey)
	return entries
}

func byKey(a, b config.Entry) int {
	return cmp.Or(strings.Compare(a.Key.Handle, b.Key.Handle), strings.Compare(a.Key.User, b.Key.User), strings.Compare(a.Key.Tenant, b.Key.Tenant))
}

// The file can be read by nobody else, and is as before when it cannot be written.
func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	s := config.OpenStateFile(path)
	key := config.EntryKey{Handle: "a"}
	if _, _, err := s.Write(t.Context(), key, json.RawMessage(`{"url":"http://x"}`), config.Condition{}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if names, _ := filepath.Glob(filepath.Join(dir, "*")); len(names) != 1 {
		t.Errorf("files left: %q", names)
	}
	if got := load(t, config.OpenStateFile(path)); len(got) != 1 || got[0].Key != key {
		t.Errorf("read again: %+v", got)
	}

	t.Run("a bad record costs no other", func(t *testing.T) {
		if err := os.WriteFile(path, []byte(`{"entries":[5,{"handle":"b"},{"handle":"a","version":"v","entry":{"url":"http://x"}}]}`), 0o600); err != nil {
			t.Fatal(err)
		}
		got := load(t, s)
		if len(got) != 3 || got[0].Err == nil || got[1].Err != nil || got[1].Key != key || got[2].Err == nil || got[2].Key.Handle != "b" {
			t.Errorf("%+v", got)
		}
		// A write keeps what it does not understand.
		if _, _, err := s.Write(t.Context(), key, nil, config.Condition{}); err != nil {
			t.Fatal(err)
		}
		if got := load(t, s); len(got) != 2 {
			t.Errorf("after a write: %+v", got)
		}
	})
	t.Run("a file that is not ours stays", func(t *testing.T) {
		const foreign = `{"entries": {"s3cret":`
		if err := os.WriteFile(path, []byte(foreign), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Load = %v", err)
		}
		if _, _, err := s.Write(t.Context(), key, json.RawMessage(`{}`), config.Condition{}); err == nil {
			t.Error("it was written")
		}
		if now, _ := os.ReadFile(path); string(now) != foreign {
			t.Errorf("the file is now %q", now)
		}
	})
	t.Run("no directory", func(t *testing.T) {
		gone := config.OpenStateFile(filepath.Join(dir, "no", "state.json"))
		if _, _, err := gone.Write(t.Context(), key, json.RawMessage(`{}`), config.Condition{}); err == nil {
			t.Error("no error")
		}
	})
	t.Run("no file", func(t *testing.T) {
		if _, err := config.OpenStateFile(dir).Load(t.Context()); err == nil {
			t.Error("a directory was read")
		}
	})
}

func openRedis(t *testing.T, r *redistest.Server) *config.Redis {
	t.Helper()
	s, err := config.OpenRedis(r.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// watching runs Watch until the test ends, and returns what tells of changes.
func watching(t *testing.T, watch func(context.Context, func()), read func()) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	news := make(chan struct{}, 100)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch(ctx, func() {
			read()
			news <- struct{}{}
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return news
}

func wait(t *testing.T, what string, news <-chan struct{}) {
	t.Helper()
	select {
	case <-news:
	case <-time.After(30 * time.Second):
		t.Fatalf("nothing was heard of: %s", what)
	}
}

// What one bridge writes, the others hear of, also after Redis was away; and what
// Redis has lost it gets back.
func TestRedisPushes(t *testing.T) {
	r := redistest.Start(t)
	a, b := openRedis(t, r), openRedis(t, r)
	var heard atomic.Int32
	news := watching(t, b.Watch, func() {
		if entries, err := b.Load(context.Background()); err == nil {
			heard.Store(int32(len(entries)))
		}
	})
	write := func(handle string) {
		t.Helper()
		if _, _, err := a.Write(t.Context(), config.EntryKey{Handle: handle}, json.RawMessage(`{"url":"http://x"}`), config.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	wait(t, "the first entry", news)
	if heard.Load() != 1 {
		t.Errorf("heard of %d entries", heard.Load())
	}

	r.Kill()
	if _, err := b.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "redis") {
		t.Errorf("Load without Redis = %v", err)
	}
	if _, _, err := a.Write(t.Context(), config.EntryKey{Handle: "x"}, json.RawMessage(`{}`), config.Condition{}); err == nil {
		t.Error("a write without Redis succeeded")
	}
	r.Restart(t) // empty
	write("two")
	for heard.Load() != 2 {
		wait(t, "the second entry, after the restart", news)
	}
	if got := load(t, a); len(got) != 2 {
		t.Errorf("after the restart: %+v", got)
	}

	// The last entry can be taken away all the same.
	for _, handle := range []string{"one", "two"} {
		if _, _, err := a.Write(t.Context(), config.EntryKey{Handle: handle}, nil, config.Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	for heard.Load() != 0 {
		wait(t, "the end of all entries", news)
	}
	if got := load(t, a); len(got) != 0 {
		t.Errorf("after all were taken away: %+v", got)
	}
}

func TestRedisBadRecords(t *testing.T) {
	r := redistest.Start(t)
	s := openRedis(t, r)
	c := redis.NewClient(&redis.Options{Addr: r.Addr()})
	defer c.Close()
	if err := c.HSet(t.Context(), "mcpbridge:servers", "x", "v {}", `["a"]`, "v", `["b","",""]`, `v {"url":"http://x"}`).Err(); err != nil {
		t.Fatal(err)
	}
	got := load(t, s)
	if len(got) != 3 || got[0].Err == nil || got[1].Err == nil || got[1].Key.Handle != "a" || got[2].Err != nil || got[2].Version != "v" {
		t.Errorf("%+v", got)
	}
}

func TestOpenRedisURL(t *testing.T) {
	for _, good := range []string{"redis://h:1/2", "rediss://u:p@h", "redis://h:1?master_name=m&addr=h:2", "redis://h:1?addr=h:2"} {
		s, err := config.OpenRedis(good, nil)
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"http://s3cret@h", "redis://:s3cret@h:1/x", "redis://:s3cret@h?master_name=m&db=x", "redis://:s3cret@h?addr=h&pool_size=x", ":s3cret"} {
		if _, err := config.OpenRedis(bad, nil); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
