package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"mcpbridge/internal/breaker"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/gate"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/jobs"
	"mcpbridge/internal/local"
	"mcpbridge/internal/mcp"
	"mcpbridge/internal/mcp/stdio"
	"mcpbridge/internal/openapi"
	"mcpbridge/internal/routes"
	"mcpbridge/internal/telemetry"
)

// An app is everything that a command needs to see and call tools. Its parts
// are started by run and ended by Close, in the reverse order.
type app struct {
	config      *config.Config
	log         *slog.Logger
	bridge      *bridge.Bridge
	catalogue   *mcp.Catalogue
	documents   *openapi.Documents
	pool        *mcp.Pool
	gate        *gate.Admission
	circuits    *breaker.Breaker
	supervisor  *stdio.Supervisor
	budget      *identity.Budget
	callers     *identity.Authenticator // set by handler
	credentials atomic.Int32            // an [openapi.Credentials]
	anonymous   bridge.Caller           // whom commands run for; see operator
	headers     callerHeaders           // what callers bring for servers

	mcp       func(http.ResponseWriter, *http.Request, bridge.Caller, bridge.Trace) // serves MCP clients; nil until publish
	tracing   *telemetry.Tracing                                                    // nil without a collector
	metrics   *telemetry.Metrics                                                    // nil until handler
	jobs      *jobs.Manager                                                         // nil until serve
	console   *routes.Console                                                       // what the page at the root shows of calls
	merged    *merged                                                               // the servers that it began with
	reload    *reloader                                                             // nil until serve
	listeners []func()                                                              // called when the catalogue has changed; fixed once it runs
	services  []func(context.Context)                                               // that run starts, each until its context ends

	stop context.CancelFunc // of what run started
	work sync.WaitGroup
}

// A keeper keeps results, and the built-in tools read them there.
type keeper interface {
	bridge.Keeper
	local.Artifacts
}

// newApp makes the app of a configuration and of the administration's entries, whose
// results go to keeper. Nothing is connected yet.
func newApp(cfg *config.Config, log *slog.Logger, keeper keeper, entries ...config.Entry) (*app, error) {
	a := &app{config: cfg, log: log, supervisor: stdio.NewSupervisor(log), console: routes.NewConsole(), stop: func() {}}
	a.anonymous = operator(cfg.Bridge.Auth)
	a.credentials.Store(int32(credentialsOf(cfg.Bridge.Auth)))
	b := cfg.Bridge
	a.circuits = breaker.New(breaker.Options{Failures: b.Breaker.Failures, Cooldown: b.Breaker.Cooldown, MaxCooldown: b.Breaker.MaxCooldown})
	a.gate = gate.New(gate.Options{MaxWait: orInstant(b.Queue.MaxWait), MaxWaiting: orNone(b.Queue.MaxWaiting), MaxWaitingPerCaller: orNone(b.Queue.MaxWaitingPerCaller)})
	a.pool = mcp.NewPool(mcp.PoolOptions{Connects: b.Pool.Connects, MaxProcesses: b.Pool.MaxProcesses, Drain: orInstant(b.CancelGrace), Circuit: a.circuits, Log: log})
	var err error
	if a.budget, err = newBudget(b.Artifacts, log); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	m, err := a.merge(cfg, entries)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.merged = m
	a.headers.set(headerNames(m.used))
	compiler := openapi.NewSchemas(log)
	host, err := local.NewHost(local.Options{
		Handles: []local.Handle{local.Builtin(keeper)}, Compiler: compiler, Next: a.pool,
		Timeout: b.Timeouts.Call, MaxTimeout: b.Timeouts.MaxTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.catalogue = mcp.NewCatalogue(mcp.CatalogueOptions{
		Servers: m.servers, Users: m.users, Local: host.Servers(), ReadyGrace: orInstant(b.ReadyGrace), OwnIdle: cmp.Or(b.Pool.IdleTimeout, 24*time.Hour),
		Registry: mcp.NewRegistry(mcp.RegistryOptions{
			Pool: a.pool, Compiler: compiler, Log: log,
			Lists:  mcp.ListLimits{Pages: b.Limits.Pages, Tools: b.Limits.ToolsPerServer, Timeout: b.Timeouts.Call},
			Forget: func(e bridge.EndpointID) { a.gate.Forget(e); a.circuits.Reset(e) },
		}),
	})
	a.documents = openapi.New(openapi.Options{Version: version, Description: aboutDocument, DescriptionChars: b.DescriptionChars, MCPO: b.OperationIDs == config.OperationIDsMCPO, Credentials: func() openapi.Credentials { return openapi.Credentials(a.credentials.Load()) }})
	a.bridge = &bridge.Bridge{
		Catalogue: a.catalogue, Policy: identity.Rules{},
		Budget:  a.budget,
		Breaker: a.circuits, Clients: host, Gate: a.gate, Keeper: keeper, Nesting: b.Limits.Nesting,
	}
	return a, nil
}

// orInstant turns a configured zero, which is no time at all, into the shortest
// time: in options zero is the default.
func orInstant(d time.Duration) time.Duration { return max(d, 1) }

// orNone turns a configured zero, which is none, into what options take for none.
func orNone(n int) int {
	if n == 0 {
		return -1
	}
	return n
}

// run connects the servers and keeps the documents up with them, until Close.
func (a *app) run(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	a.work.Go(func() { a.catalogue.Run(ctx) })
	for _, f := range a.services {
		a.work.Go(func() { f(ctx) })
	}
	a.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.catalogue.Changes():
				for _, f := range a.listeners {
					f()
				}
				a.documents.Prepare(a.bridge.View(a.anonymous))
			}
		}
	})
}

// Close ends everything and waits until no process is left.
func (a *app) Close() error {
	a.gate.Close()
	a.stop()
	a.work.Wait()
	return errors.Join(a.pool.Close(), a.supervisor.Close(), a.budget.Close())
}

// aboutDocument is in the document of all tools.
const aboutDocument = "What is the same whatever the tools are, as jobs, artifacts, resources and prompts, has [a document](openapi-bridge.json) and [a page](docs/bridge) of its own."
