package main

import (
	"context"
	"errors"
	"time"

	"mcpbridge/internal/publish"
	"mcpbridge/internal/telemetry"
)

type mcpCmd struct {
	configFlags
}

// Run publishes the configured servers' tools to one MCP client over the standard
// streams, until they end or ctx does. The log goes to the standard error.
func (c *mcpCmd) Run(ctx context.Context, io streams) (err error) {
	cfg, err := c.load(io)
	if err != nil {
		return err
	}
	log := telemetry.NewLog(io.stderr, cfg.Bridge.Telemetry.LogLevel)
	tracing, err := newTracing(ctx, &cfg.Bridge, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, flush(ctx, tracing, time.Time{})) }()
	keeper, store, err := newKeeper(cfg.Bridge.Artifacts, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := newApp(cfg, log, keeper)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	a.trace(tracing)
	p := a.publish()
	defer p.Close()
	a.run(context.WithoutCancel(ctx)) // ended by Close, after the calls
	return p.ServeStdio(ctx, io.stdin, io.stdout, a.anonymous, orInstant(cfg.Bridge.ShutdownGrace))
}

// publish returns what publishes the app's tools to MCP clients. It must be called
// before run, and what it returns be closed before the app.
func (a *app) publish() *publish.Server {
	b := a.config.Bridge
	o := publish.Options{Bridge: a.bridge, Version: version, Log: a.log, RequestBytes: b.Limits.RequestBytes, InputWait: b.Jobs.InputWait, Called: a.called}
	if a.tracing != nil {
		o.Trace = tracer{a.tracing}.message
	}
	p := publish.New(o)
	a.mcp = p.ServeHTTP
	a.listeners = append(a.listeners, p.Changed)
	a.services = append(a.services, p.Run)
	return p
}
