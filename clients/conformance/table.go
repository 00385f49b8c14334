package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// judge compares what was found with what is expected, and returns every difference.
func judge(all []run, results map[run]result) error {
	var errs []error
	used := map[int]bool{}
	for _, r := range all {
		found, ok := results[r]
		if !ok {
			errs = append(errs, fmt.Errorf("%s %s in %s was not run", r.role, r.scenario, r.version))
			continue
		}
		i := exceptionFor(r)
		switch {
		case i >= 0 && found.passed():
			errs = append(errs, fmt.Errorf("%s %s in %s passes, and is listed as one that does not apply", r.role, r.scenario, r.version))
		case i >= 0:
			used[i] = true
			if want := exceptions[i].checks; want != nil && !slices.Equal(want, found.failed) {
				errs = append(errs, fmt.Errorf("%s %s in %s fails in %q, and is listed with %q", r.role, r.scenario, r.version, found.failed, want))
			}
		case !found.passed():
			errs = append(errs, fmt.Errorf("%s %s in %s fails: %s", r.role, r.scenario, r.version, strings.Join(found.failed, ", ")))
		default:
			for _, id := range found.warned {
				if _, ok := advice[r.scenario+":"+id]; !ok {
					errs = append(errs, fmt.Errorf("%s %s in %s does not do what it should: %s", r.role, r.scenario, r.version, id))
				}
			}
		}
	}
	for i, e := range exceptions {
		if !used[i] {
			errs = append(errs, fmt.Errorf("the list of what does not apply has %s %s, which there is not", e.role, e.scenario))
		}
	}
	for r := range results {
		if !slices.Contains(all, r) {
			errs = append(errs, fmt.Errorf("%s %s in %s was run, but is not in the suite's list", r.role, r.scenario, r.version))
		}
	}
	return errors.Join(errs...)
}

// exceptionFor returns the index of what is said of a run that does not apply, or -1.
func exceptionFor(r run) int {
	return slices.IndexFunc(exceptions, func(e exception) bool {
		return e.role == r.role && e.scenario == r.scenario && (e.version == "" || e.version == r.version)
	})
}

// The table stands in the page between these lines.
const (
	tableBegin = "<!-- This table is written by: make conformance ARGS=-update -->\n"
	tableEnd   = "<!-- The end of the table. -->\n"
)

// table writes every scenario with the versions in which it passes, or why it does not apply.
func table(all []run) string {
	var b strings.Builder
	for _, r := range []role{asServer, asClient} {
		title := "The bridge as a server: `/mcp`"
		if r == asClient {
			title = "The bridge as a client of servers"
		}
		var names []string
		versions := map[string][]run{} // :: scenario -> its runs
		passes, not := 0, 0
		for _, one := range all {
			if one.role != r {
				continue
			}
			if versions[one.scenario] == nil {
				names = append(names, one.scenario)
			}
			versions[one.scenario] = append(versions[one.scenario], one)
			if exceptionFor(one) < 0 {
				passes++
			} else {
				not++
			}
		}
		fmt.Fprintf(&b, "\n## %s\n\n%d scenarios in all their versions are %d runs: %d pass, %d do not apply.\n\n", title, len(names), passes+not, passes, not)
		b.WriteString("| scenario | passes in | does not apply |\n|---|---|---|\n")
		for _, name := range names {
			var in, why []string
			for _, one := range versions[name] {
				if i := exceptionFor(one); i < 0 {
					in = append(in, one.version)
				} else if text := exceptions[i].text(); !slices.Contains(why, text) {
					why = append(why, text)
				}
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(in, ", "), strings.Join(why, " "))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// checkPage demands that the page has the table, or writes it.
func checkPage(path, table string, update bool) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := bytes.Cut(page, []byte(tableBegin))
	_, tail, closed := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !closed {
		return fmt.Errorf("%s has no place for the table", path)
	}
	want := slices.Concat(head, []byte(tableBegin), []byte(table), []byte(tableEnd), tail)
	if bytes.Equal(page, want) {
		return nil
	}
	if update {
		return os.WriteFile(path, want, 0o644)
	}
	return fmt.Errorf("%s has another table than this run makes; make conformance ARGS=-update writes it", path)
}
