package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/routes"
	"mcpbridge/internal/telemetry"
)

type serveCmd struct {
	configFlags
	Listen         string `placeholder:"HOST:PORT" help:"Address to listen on, over the one in the file."`
	InsecureNoAuth bool   `help:"Listen beyond loopback although every caller is anonymous."`
}

// Run serves until ctx is done.
func (c *serveCmd) Run(ctx context.Context, io streams) error {
	cfg, file, err := c.loadFile(io)
	if err != nil {
		return err
	}
	from := origin{file: file, listen: cfg.Bridge.Listen, hangup: make(chan os.Signal, 1)}
	signal.Notify(from.hangup, syscall.SIGHUP)
	defer signal.Stop(from.hangup)
	if c.Listen != "" {
		cfg.Bridge.Listen = c.Listen
	}
	if err := config.CheckExposure(cfg.Bridge.Listen, cfg.Bridge.Auth.Enabled(), c.InsecureNoAuth); err != nil {
		return fmt.Errorf("%w%w", err, errConfig)
	}
	log, flush := telemetry.NewServerLog(io.stderr, cfg.Bridge.Telemetry.LogLevel)
	defer flush()
	return serve(ctx, cfg, from, log)
}

// serve starts from the outside in, so that the port listens before any server
// is connected, and stops in the reverse order: first it says "not ready", and goes
// on serving until balancers have looked away; then the port closes, and the
// requests under way are drained; only then do the clients go that those requests
// use, then the processes, and the store of results last, since a call that ends
// late is still to be kept; then the last spans are sent. All the while profiles
// can be taken, also of a stop that hangs.
func serve(ctx context.Context, cfg *config.Config, from origin, log *slog.Logger) (err error) {
	b := cfg.Bridge
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", b.Listen)
	if err != nil {
		return fmt.Errorf("cannot listen: %w; is another program using the port? --listen chooses another one", err)
	}
	debug, err := newDebug(ctx, &b, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, debug.Close()) }()
	tracing, err := newTracing(ctx, &b, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	var graceEnds time.Time
	defer func() { err = errors.Join(err, flush(ctx, tracing, graceEnds)) }()
	keeper, store, err := newKeeper(b.Artifacts, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	entryStore, entries, err := openStore(ctx, &b, log)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	if entryStore != nil {
		defer func() { err = errors.Join(err, entryStore.Close()) }()
	}
	a, err := newApp(cfg, log, keeper, entries...)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer func() { err = errors.Join(err, a.Close()) }()

	a.trace(tracing)
	from.loopback = isLoopback(ln.Addr())
	a.reload = newReloader(a, from, entryStore, entries)
	a.services = append(a.services, a.reload.services()...)
	clients := a.publish()
	defer clients.Close()
	a.jobs = a.newJobs(store)
	defer func() { err = errors.Join(err, a.jobs.Close()) }()
	var stopping atomic.Bool
	srv := &http.Server{
		Handler:           closing(&stopping, a.handler(keeper, from.loopback, &stopping)),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ln) }() // ended by Shutdown or Close below
	log.LogAttrs(ctx, slog.LevelInfo, "serving", slog.String("addr", ln.Addr().String()),
		slog.String("docs", "http://"+ln.Addr().String()+b.BasePath+"/docs"), slog.Int("servers", len(cfg.Servers)))
	a.run(context.WithoutCancel(ctx)) // ended by Close, after the requests

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stopping.Store(true)
	delay := drainDelay(ctx, &b)
	log.LogAttrs(ctx, slog.LevelInfo, "stopping; a second signal ends it at once", slog.Duration("delay", delay), slog.Duration("grace", b.ShutdownGrace))
	time.Sleep(delay)
	clients.EndStreams()
	a.console.Close()
	// ctx is already done: Shutdown would return at once if given it.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.ShutdownGrace)
	defer cancel()
	graceEnds, _ = sctx.Deadline()
	if srv.Shutdown(sctx) == nil {
		a.jobs.Drain(sctx) // nobody can start another
		return nil
	}
	log.LogAttrs(ctx, slog.LevelWarn, "requests are cut, the grace is over")
	cut(bridge.ErrStopping)
	lctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	if srv.Shutdown(lctx) == nil {
		return nil
	}
	return srv.Close()
}

// lastWords is how long requests that are cut have to say so to their callers.
const lastWords = 2 * time.Second

// handler serves the app; it is not ready once stopping is set.
func (a *app) handler(keeper *artifacts.Keeper, loopback bool, stopping *atomic.Bool) http.Handler {
	b := a.config.Bridge
	a.callers = identity.New(callers(b.Auth, loopback), a.log)
	a.metrics = a.newMetrics(keeper)
	o := routes.Options{
		Bridge: a.bridge, Documents: a.documents, Log: a.log, Version: version,
		BasePath: b.BasePath, Hosts: b.Hosts, Loopback: loopback, Origins: b.CORS.Origins, MCPO: b.Compat.MCPO,
		RequestBytes: b.Limits.RequestBytes, MaxTimeout: b.Timeouts.MaxTimeout,
		Status: func() routes.Status { return a.status(keeper) }, Artifacts: keeper, Jobs: a.jobs, Metrics: a.metrics, Observe: a.observe, Console: a.console, MCP: a.mcp, Admin: a.reload.admin(),
		Caller: a.headers.with(a.callers.Caller), Allowance: a.budget.Allowance,
		Ready: func() bool { return !stopping.Load() && a.catalogue.Snapshot(bridge.Caller{}).Ready },
	}
	if a.tracing != nil {
		o.Trace = tracer{a.tracing}.request
	}
	return routes.New(o)
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}
