package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expected makes results in which everything is as it is listed.
func expected() ([]run, map[run]result) {
	all := []run{{asServer, "ping", "2025-11-25"}, {asClient, "initialize", "2025-11-25"}}
	results := map[run]result{}
	for _, r := range all {
		results[r] = result{succeeded: []string{r.scenario}}
	}
	for _, e := range exceptions {
		r := run{e.role, e.scenario, e.version}
		if r.version == "" {
			r.version = "2026-07-28"
		}
		all = append(all, r)
		results[r] = result{failed: e.checks}
	}
	return all, results
}

func TestJudge(t *testing.T) {
	ping := run{asServer, "ping", "2025-11-25"}
	sampling := run{asServer, "tools-call-sampling", "2026-07-28"}
	cimd := run{asClient, "auth/basic-cimd", "2026-07-28"}
	for name, tt := range map[string]struct {
		change func(all []run, results map[run]result) []run
		want   string
	}{
		"as listed": {func(all []run, _ map[run]result) []run { return all }, ""},
		"fails":     {func(all []run, r map[run]result) []run { r[ping] = result{failed: []string{"x"}}; return all }, "ping in 2025-11-25 fails: x"},
		"nothing was checked": {func(all []run, r map[run]result) []run {
			r[ping] = result{succeeded: []string{"wire-schema-valid"}}
			return all
		}, "ping in 2025-11-25 fails"},
		"advice": {func(all []run, r map[run]result) []run {
			r[ping] = result{succeeded: []string{"a"}, warned: []string{"x"}}
			return all
		}, "does not do what it should: x"},
		"passes after all":    {func(all []run, r map[run]result) []run { r[sampling] = result{succeeded: []string{"a"}}; return all }, "tools-call-sampling in 2026-07-28 passes"},
		"another check fails": {func(all []run, r map[run]result) []run { r[cimd] = result{failed: []string{"a"}}; return all }, `fails in ["a"], and is listed`},
		"was not run":         {func(all []run, r map[run]result) []run { delete(r, ping); return all }, "ping in 2025-11-25 was not run"},
		"is not there":        {func(all []run, r map[run]result) []run { delete(r, all[2]); return append(all[:2:2], all[3:]...) }, "which there is not"},
		"is not in the list":  {func(all []run, _ map[run]result) []run { return all[1:] }, "not in the suite's list"},
		"a new one that fails": {func(all []run, r map[run]result) []run {
			n := run{asServer, "new", "x"}
			r[n] = result{}
			return append(all, n)
		}, "new in x fails"},
	} {
		t.Run(name, func(t *testing.T) {
			all, results := expected()
			err := judge(tt.change(all, results), results)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("judged %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckPage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("no place")
	if err := checkPage(path, "x", true); err == nil || !strings.Contains(err.Error(), "no place") {
		t.Errorf("a page without a place: %v", err)
	}
	write("head\n" + tableBegin + "old\n" + tableEnd + "tail\n")
	if err := checkPage(path, "new\n", false); err == nil || !strings.Contains(err.Error(), "ARGS=-update") {
		t.Errorf("another table: %v", err)
	}
	for _, update := range []bool{true, false} {
		if err := checkPage(path, "new\n", update); err != nil {
			t.Error(err)
		}
	}
	got, err := os.ReadFile(path)
	if want := "head\n" + tableBegin + "new\n" + tableEnd + "tail\n"; err != nil || string(got) != want {
		t.Errorf("the page is %q, %v", got, err)
	}
}

func TestTable(t *testing.T) {
	all := []run{
		{asServer, "ping", "2025-06-18"},
		{asServer, "ping", "2025-11-25"},
		{asServer, "tools-call-sampling", "2025-11-25"},
		{asClient, "auth/basic-cimd", "2025-11-25"},
		{asClient, "initialize", "2025-11-25"},
	}
	got := table(all)
	for _, want := range []string{
		"2 scenarios in all their versions are 3 runs: 2 pass, 1 do not apply.", "| `ping` | 2025-06-18, 2025-11-25 |  |",
		"| `tools-call-sampling` |  | " + noSampling + " |", "| `auth/basic-cimd` |  | All but `cimd-client-id-used`. " + needsBrowser + " |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

// What a scenario checks several times is as bad as the worst of it, and what it skips says nothing.
func TestCollect(t *testing.T) {
	dir := t.TempDir()
	put := func(folder, text string) {
		t.Helper()
		path := filepath.Join(dir, filepath.FromSlash(folder))
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "checks.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("server-ping-2026-11-30T19-41-43-747Z", `[{"id":"b","status":"SUCCESS"},{"id":"b","status":"FAILURE"},{"id":"a","status":"SUCCESS"},{"id":"c","status":"WARNING"},{"id":"d","status":"SKIPPED"},{"id":"e","status":"INFO"}]`)
	put("auth/2025-03-26-x-2026-11-30T19-41-43-747Z", `[{"id":"b","status":"SUCCESS"}]`)
	got := map[string]result{}
	found := func(scenario string, r result) { got[scenario] = r }
	if err := collect(dir, found); err != nil {
		t.Fatal(err)
	}
	want := map[string]result{
		"ping":              {succeeded: []string{"a"}, warned: []string{"c"}, failed: []string{"b"}},
		"auth/2025-03-26-x": {succeeded: []string{"b"}},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	put("odd", `[]`)
	if err := collect(dir, found); err == nil || !strings.Contains(err.Error(), "no folder of results") {
		t.Errorf("another folder: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "odd")); err != nil {
		t.Fatal(err)
	}
	put("ping-2026-11-30T19-41-43-748Z", `{}`)
	if err := collect(dir, found); err == nil {
		t.Error("what is no list of checks was taken for one")
	}
}
