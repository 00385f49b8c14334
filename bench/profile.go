package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/pprof/profile"
)

// compositions says what a small call is made of, from profiles of the bridge under
// load: whatever stands between it and a bare handler is in there.
func (b *bench) compositions(ctx context.Context) error {
	for _, conns := range []int{32, 1} {
		if err := b.composition(ctx, smallLoad(conns)); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) composition(ctx context.Context, l load) error {
	debug, err := freeAddr()
	if err != nil {
		return err
	}
	s, err := b.startBridge(ctx, nameB, setup{debug: debug})
	if err != nil {
		return err
	}
	defer s.stop()
	req := s.call(l.tool, l.args)
	if r := repeat(ctx, req, l.conns, b.span); r.failed != nil {
		return r.failed
	}
	p, calls, err := profileUnder(ctx, req, l.conns, debug, b.profiled)
	if err != nil {
		return err
	}
	b.sections = append(b.sections, compositionOf(p, calls, l.conns))
	return nil
}

// profileUnder takes a profile while a request is sent again and again, and says how often it was meanwhile.
func profileUnder(ctx context.Context, req request, conns int, debug string, seconds int) (*profile.Profile, float64, error) {
	var over atomic.Bool
	loaded := make(chan *run, 1)
	go func() { loaded <- drive(ctx, req, conns, func(time.Time, int) bool { return !over.Load() }) }() // ended by over
	p, err := fetchProfile(ctx, debug, seconds)
	over.Store(true)
	r := <-loaded
	if err := errors.Join(err, r.failed); err != nil {
		return nil, 0, err
	}
	return p, r.rate() * time.Duration(p.DurationNanos).Seconds(), nil
}

func fetchProfile(ctx context.Context, addr string, seconds int) (*profile.Profile, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", addr, seconds), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the profile was answered with %s", res.Status)
	}
	return profile.Parse(res.Body)
}

// A share is the CPU time that a part of the bridge took, in nanoseconds.
type share struct{ all, allocating, system int64 }

// compositionOf sums up the profile of so many calls by the parts of the bridge.
func compositionOf(p *profile.Profile, calls float64, conns int) section {
	shares := map[string]share{}
	var sum share
	var recorder int64
	for _, sample := range p.Sample {
		one := share{all: sample.Value[len(sample.Value)-1]}
		stack := functions(sample)
		switch {
		case anyOf(stack, "runtime.trace", "runtime/trace."):
			recorder += one.all
			continue
		case anyOf(stack, "runtime.mallocgc"):
			one.allocating = one.all
		case anyOf(stack, "syscall.", "internal/runtime/syscall", "runtime.futex"):
			one.system = one.all
		}
		part := partOf(stack)
		shares[part] = shares[part].plus(one)
		sum = sum.plus(one)
	}
	per := func(ns int64) string { return fmt.Sprintf("%.1f µs", float64(ns)/calls/1e3) }
	of := func(ns int64) float64 { return 100 * float64(ns) / float64(max(1, sum.all)) }
	sec := section{
		title: "What a small call is made of, " + plural(conns, "connection"),
		head:  []string{"", "CPU/call", "of all", "allocating", "in system calls"},
		foot: fmt.Sprintf("From a CPU profile of the bridge's own process over %s calls. Left out is the flight recorder, which runs only where profiles are served, and took %.0f %% more.",
			number(calls), of(recorder)),
	}
	row := func(name string, s share) {
		sec.rows = append(sec.rows, []string{name, per(s.all), fmt.Sprintf("%.0f %%", of(s.all)), per(s.allocating), per(s.system)})
	}
	names := slices.SortedFunc(maps.Keys(shares), func(x, y string) int {
		return cmp.Or(cmp.Compare(shares[y].all, shares[x].all), cmp.Compare(x, y))
	})
	for _, name := range names {
		row(name, shares[name])
	}
	row("all", sum)
	return sec
}

func (s share) plus(t share) share {
	return share{s.all + t.all, s.allocating + t.allocating, s.system + t.system}
}

// functions returns the names of a sample's stack, the innermost first.
func functions(s *profile.Sample) []string {
	var names []string
	for _, at := range s.Location {
		for _, l := range at.Line {
			names = append(names, l.Function.Name)
		}
	}
	return names
}

func anyOf(stack []string, prefixes ...string) bool {
	return slices.ContainsFunc(stack, func(name string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) })
	})
}

// partsOf are the parts of the bridge by what the names of their functions begin with. The first
// that is found from the inside out has the sample, and of its prefixes the longest counts.
var partsOf = map[string]string{
	"net/http.":                                     "net/http: requests in, answers out",
	"net/http.(*Request).SetPathValue":              "chi and huma",
	"net/http.(*Request).WithContext":               "chi and huma",
	"github.com/go-chi/":                            "chi and huma",
	"github.com/danielgtaylor/":                     "chi and huma",
	"mcpbridge/internal/routes.":                    "routes: reading the request, writing the answer",
	"mcpbridge/internal/routes.(*exchange).logLine": "the log line",
	"log/slog.":                                     "the log line",
	"mcpbridge/internal/telemetry.(*handler)":       "the log line",
	"mcpbridge/internal/telemetry.(*lines)":         "the log line",
	"mcpbridge/internal/telemetry.":                 "metrics and the console",
	"github.com/prometheus/":                        "metrics and the console",
	"mcpbridge/internal/routes.(*Console)":          "metrics and the console",
	"mcpbridge/internal/routes.(*exchange).observe": "metrics and the console",
	"mcpbridge/internal/bridge.":                    "Invoke, and the gates before the call",
	"mcpbridge/internal/gate.":                      "Invoke, and the gates before the call",
	"mcpbridge/internal/breaker.":                   "Invoke, and the gates before the call",
	"mcpbridge/internal/identity.":                  "Invoke, and the gates before the call",
	"mcpbridge/internal/mcp.":                       "the call lane",
	"mcpbridge/internal/mcp/":                       "the call lane",
	"mcpbridge/internal/bridge.ParseResult":         "the call lane",
	"mcpbridge/internal/openapi.":                   "checking the arguments",
	"github.com/santhosh-tekuri/":                   "checking the arguments",
	"mcpbridge/internal/bridge.(*Bridge).strict":    "checking the arguments",
	"mcpbridge/internal/artifacts.":                 "keeping the result",
	"runtime.gcBgMarkWorker":                        "garbage collection, beside allocating",
	"runtime.bgsweep":                               "garbage collection, beside allocating",
	"runtime.bgscavenge":                            "garbage collection, beside allocating",
}

// partOf returns the part that a stack belongs to; what belongs to none is the scheduler's.
func partOf(stack []string) string {
	for _, name := range stack {
		part, long := "", 0
		for prefix, p := range partsOf {
			if strings.HasPrefix(name, prefix) && len(prefix) > long {
				part, long = p, len(prefix)
			}
		}
		if part != "" {
			return part
		}
	}
	return "the scheduler, and whatever else the runtime does"
}
