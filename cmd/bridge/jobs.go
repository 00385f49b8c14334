package main

import (
	"context"
	"log/slog"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/routes"
)

// newJobs makes the manager of calls that outlast their request. Where the store of
// results is a Redis, jobs are shared there too; the store is to be closed after the manager.
func (a *app) newJobs(store artifacts.Store) *jobs.Manager {
	b := a.config.Bridge
	var shared *jobs.Redis
	if r, ok := store.(*artifacts.Redis); ok {
		shared = jobs.NewRedis(r.Client())
	}
	m := jobs.New(jobs.Options{
		Invoke:  a.bridge.Invoke,
		Compile: openapi.NewSchemas(a.log).Question,
		Allows:  a.bridge.Policy.Allows, Ended: a.jobEnded,
		TTL: b.Jobs.TTL, PerCaller: b.Jobs.PerCaller, InputWait: b.Jobs.InputWait, Events: b.Jobs.Events,
		KeyTTL: b.Idempotency.TTL, Redis: shared, Log: a.log,
	})
	a.services = append(a.services, m.Run)
	return m
}

// jobEnded writes the line of a call whose request did not see its end.
func (a *app) jobEnded(j *jobs.Job) {
	rec, c := j.Record(), j.Call()
	attrs := []slog.Attr{
		slog.String("job", rec.ID), slog.String("state", string(rec.State)), slog.Duration("duration", time.Since(rec.Created)),
		slog.String("caller", bridge.FirstChars(c.Caller.ID, 200)), slog.String("handle", rec.Handle), slog.String(c.Subject()),
		slog.Duration("queue", c.Timing.Queue), slog.Duration("upstream", c.Timing.Upstream),
		slog.Int("bytes_in", len(c.Args)), slog.Int("bytes_out", c.Received),
	}
	for _, a := range [...]struct{ key, value string }{{"request_id", c.ID}, {"user", c.Caller.User}, {"trace_id", c.Trace.ID()}} {
		if a.value != "" && a.value != c.Caller.ID {
			attrs = append(attrs, slog.String(a.key, bridge.FirstChars(a.value, 200)))
		}
	}
	code := bridge.Kind("")
	if rec.Problem != nil {
		code = rec.Problem.Kind
		attrs = append(attrs, slog.String("code", string(code)))
	}
	a.observe(rec.Handle, code, time.Since(rec.Created))
	a.console.Record(c, routes.Ending{ID: rec.ID, Code: code, Took: time.Since(rec.Created), In: int64(len(c.Args)), Out: int64(c.Received)})
	a.log.LogAttrs(context.Background(), slog.LevelInfo, "job ended", attrs...)
}
