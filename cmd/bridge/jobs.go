package main

import (
	"context"
	"log/slog"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/openapi"
)

// newJobs makes the manager of calls that outlast their request. Where the store of
// results is a Redis, jobs are shared there too; the store is to be closed after the manager.
func (a *app) newJobs(store artifacts.Store) *jobs.Manager {
	b := a.config.Bridge
	schemas := openapi.NewSchemas(a.log)
	var shared *jobs.Redis
	if r, ok := store.(*artifacts.Redis); ok {
		shared = jobs.NewRedis(r.Client())
	}
	m := jobs.New(jobs.Options{
		Invoke: a.bridge.Invoke,
		Compile: func(schema []byte) (bridge.Checker, error) {
			t := &bridge.Tool{Handle: "input", Name: "input", Input: schema}
			err := schemas.Compile(t)
			return t.Arguments, err
		},
		Allows: a.bridge.Policy.Allows, Ended: a.jobEnded,
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
		slog.String("caller", c.Caller.ID), slog.String("handle", rec.Handle), slog.String(c.Subject()),
		slog.Duration("queue", c.Timing.Queue), slog.Duration("upstream", c.Timing.Upstream),
	}
	code := bridge.Kind("")
	if rec.Problem != nil {
		code = rec.Problem.Kind
		attrs = append(attrs, slog.String("code", string(code)))
	}
	a.observe(rec.Handle, code, time.Since(rec.Created))
	a.log.LogAttrs(context.Background(), slog.LevelInfo, "job ended", attrs...)
}
