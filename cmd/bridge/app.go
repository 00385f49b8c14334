package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"mcpbridge/internal/breaker"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/gate"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/mcp"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/mcp/stdio"
	"mcpbridge/internal/openapi"
)

// An app is everything that a command needs to see and call tools. Its parts
// are started by run and ended by Close, in the reverse order.
type app struct {
	config     *config.Config
	log        *slog.Logger
	bridge     *bridge.Bridge
	catalogue  *mcp.Catalogue
	documents  *openapi.Documents
	pool       *mcp.Pool
	gate       *gate.Admission
	circuits   *breaker.Breaker
	supervisor *stdio.Supervisor
	anonymous  bridge.Caller // who comes without a credential

	stop context.CancelFunc // of what run started
	work sync.WaitGroup
}

// newApp makes the app of a configuration, whose results go to keeper. Nothing is connected yet.
func newApp(cfg *config.Config, log *slog.Logger, keeper bridge.Keeper) (*app, error) {
	a := &app{config: cfg, log: log, supervisor: stdio.NewSupervisor(log), stop: func() {}}
	a.anonymous = bridge.Caller{Scopes: bridge.AllScopes, Rule: anonymous(cfg.Bridge.Auth.Anonymous)}
	b := cfg.Bridge
	a.circuits = breaker.New(breaker.Options{Failures: b.Breaker.Failures, Cooldown: b.Breaker.Cooldown, MaxCooldown: b.Breaker.MaxCooldown})
	a.gate = gate.New(gate.Options{MaxWait: orInstant(b.Queue.MaxWait), MaxWaiting: orNone(b.Queue.MaxWaiting), MaxWaitingPerCaller: orNone(b.Queue.MaxWaitingPerCaller)})
	a.pool = mcp.NewPool(mcp.PoolOptions{Connects: b.Pool.Connects, MaxProcesses: b.Pool.MaxProcesses, Drain: orInstant(b.CancelGrace), Circuit: a.circuits, Log: log})
	servers, err := a.servers()
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	a.catalogue = mcp.NewCatalogue(mcp.CatalogueOptions{
		Servers: servers, ReadyGrace: orInstant(b.ReadyGrace),
		Registry: mcp.NewRegistry(mcp.RegistryOptions{
			Pool: a.pool, Compiler: openapi.NewSchemas(log), Log: log,
			Lists:  mcp.ListLimits{Pages: b.Limits.Pages, Tools: b.Limits.ToolsPerServer, Timeout: b.Timeouts.Call},
			Forget: func(e bridge.EndpointID) { a.gate.Forget(e); a.circuits.Reset(e) },
		}),
	})
	a.documents = openapi.New(openapi.Options{Version: version, DescriptionChars: b.DescriptionChars, MCPO: b.OperationIDs == config.OperationIDsMCPO})
	a.bridge = &bridge.Bridge{
		Catalogue: a.catalogue, Policy: identity.Rules{},
		Budget:  identity.NewBudget(),
		Breaker: a.circuits, Clients: a.pool, Gate: a.gate, Keeper: keeper, Nesting: b.Limits.Nesting,
	}
	return a, nil
}

// anonymous is the rule for callers without a credential, which are all there are so far.
func anonymous(p *config.Policy) *bridge.Rule {
	if p == nil {
		return nil
	}
	r := rate(p.Rate)
	return &bridge.Rule{
		Allow: p.Allow, Deny: p.Deny, Timeout: p.Timeout,
		Limits: bridge.Limits{PerSecond: r.PerSecond, Burst: cmp.Or(p.Burst, r.Burst), Concurrent: p.Concurrent},
	}
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
	a.work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-a.catalogue.Changes():
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
	return errors.Join(a.pool.Close(), a.supervisor.Close())
}

// servers makes the servers' options.
func (a *app) servers() ([]mcp.ServerConfig, error) {
	b := a.config.Bridge
	limits := mcp.Limits{StdioCalls: b.Pool.StdioCalls, StdioCallsPerServer: b.Pool.StdioCallsPerServer, HTTPCalls: b.Pool.HTTPCalls}
	servers := make([]mcp.ServerConfig, 0, len(a.config.Servers))
	var errs []error
	for _, s := range a.config.Servers {
		sc := mcp.ServerConfig{
			Handle: s.Handle, Title: s.Title, Description: s.Description, Disabled: s.Disabled,
			RPC: rpc.Options{
				ClientVersion: version, Handshake: s.HandshakeTimeout, CancelGrace: orInstant(b.CancelGrace),
				ResultBytes: b.Limits.ResultBytes, Log: a.log.With(slog.String("handle", s.Handle)),
			},
			Allow: s.Tools.Allow, Deny: s.Tools.Deny, Exclude: s.Tools.Disabled,
			Timeout: s.Timeout, MaxTimeout: b.Timeouts.MaxTimeout,
			ParseText: s.ParseText, Strict: s.CheckResults == config.CheckStrict,
			NoReconnect: !s.AutoReconnect, ReconnectDelay: s.ReconnectDelay, Heartbeat: s.Heartbeat,
		}
		if !s.Disabled {
			endpoint, err := a.endpoint(s, limits)
			if err != nil {
				errs = append(errs, fmt.Errorf("server %q: %w", s.Handle, err))
				continue
			}
			sc.Endpoint = endpoint
			if endpoint.Process() {
				sc.Idle = s.IdleTimeout
			}
		}
		servers = append(servers, sc)
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w%w", errors.Join(errs...), errConfig)
	}
	return servers, nil
}

func (a *app) endpoint(s config.Server, limits mcp.Limits) (mcp.Endpoint, error) {
	if err := checkServer(s); err != nil {
		return nil, err
	}
	if s.Transport == config.Stdio {
		args := make([]mcp.Arg, 0, len(s.Args))
		for _, v := range s.Args {
			args = append(args, mcp.Arg{Text: v.Text(), Secret: v.Secret()})
		}
		return mcp.NewStdio(mcp.StdioConfig{
			Name: s.Name, Command: mcp.Arg{Text: s.Command.Text(), Secret: s.Command.Secret()}, Args: args,
			Env: texts(s.Env), BaseEnv: os.Environ(), Dir: s.Cwd.Text(),
			Start: s.StartTimeout, MaxConcurrent: s.MaxConcurrent, Rate: rate(s.Rate), Limits: limits, Supervisor: a.supervisor,
		}), nil
	}
	return mcp.NewRemote(mcp.RemoteConfig{
		Name: s.Name, URL: mcp.Arg{Text: s.URL.Text(), Secret: s.URL.Secret()}, Headers: texts(s.Headers),
		Protocol: s.Protocol, SSE: s.Transport == config.SSE,
		TLS: remote.TLS{CA: s.TLS.CA, Cert: s.TLS.Cert, Key: s.TLS.Key, ServerName: s.TLS.ServerName}, Proxy: s.Proxy.Text(),
		MaxConcurrent: s.MaxConcurrent, Rate: rate(s.Rate), Limits: limits,
	})
}

// rate is a server's rate; its burst is what one period allows.
func rate(r config.Rate) mcp.Rate {
	if r.IsZero() {
		return mcp.Rate{}
	}
	return mcp.Rate{PerSecond: float64(r.Count) / r.Per.Seconds(), Burst: r.Count}
}

// texts returns the texts of a map's values.
func texts(m map[string]config.Value) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.Text()
	}
	return out
}
