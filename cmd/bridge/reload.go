package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp"
	"mcpbridge/internal/routes"
)

// A reloader changes what a running bridge serves. Every change, wherever it comes
// from, goes the same way: read, check all of it, compare, apply. What is wrong changes nothing.
type reloader struct {
	app    *app
	origin origin
	store  config.Store // of the administration; nil without one

	mu      sync.Mutex     // one change at a time
	cfg     *config.Config // as last applied, guarded by mu
	entries []config.Entry // as last read, guarded by mu

	smu    sync.Mutex // of what status and the administration look at; taken after mu
	now    *merged    // as last applied, guarded by smu
	stats  routes.ConfigStatus
	broken []string // what is wrong with the file, guarded by smu
}

// An origin is where a running bridge has its configuration from.
type origin struct {
	file     *config.File // nil without one
	listen   string       // as the file says; the command line may say something else
	loopback bool         // only this machine can connect
	hangup   chan os.Signal
}

// newReloader returns what changes an app that serves entries of store beside its configuration.
func newReloader(a *app, from origin, store config.Store, entries []config.Entry) *reloader {
	r := &reloader{app: a, origin: from, store: store, cfg: a.config, entries: entries, now: a.merged}
	r.stats.Applied = time.Now()
	r.stats.Tried = r.stats.Applied
	r.now.logIdle(a.log, nil)
	return r
}

// services are what watches the sources, each until its context ends.
func (r *reloader) services() []func(context.Context) {
	all := []func(context.Context){r.hangups}
	if r.origin.file != nil {
		all = append(all, func(ctx context.Context) { r.origin.file.Watch(ctx, func() { r.reload(ctx, "file") }) })
	}
	if r.store != nil {
		all = append(all, func(ctx context.Context) { r.store.Watch(ctx, func() { r.reload(ctx, r.store.Name()) }) })
	}
	return all
}

// hangups reloads on SIGHUP.
func (r *reloader) hangups(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.origin.hangup:
			if r.origin.file == nil {
				r.app.log.LogAttrs(ctx, slog.LevelWarn, "SIGHUP has nothing to reload: there is no configuration file")
			}
			r.reload(ctx, "SIGHUP")
		}
	}
}

// byAdmin is the source of a change that the administration has just written.
const byAdmin = "admin"

// reload applies what has changed, and logs how that went.
func (r *reloader) reload(ctx context.Context, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.reloadLocked(ctx, why) // it is logged
}

// reloadLocked reads what the change is about and applies it. The error has been logged.
func (r *reloader) reloadLocked(ctx context.Context, why string) error {
	began := time.Now()
	err := r.applyLocked(ctx, why, began)
	r.smu.Lock()
	r.stats.Tried = began
	if err != nil {
		r.stats.Failed++
	} else {
		r.stats.Reloads++
	}
	r.smu.Unlock()
	if err != nil {
		r.app.log.LogAttrs(ctx, slog.LevelError, "the configuration is not changed: what is new cannot be applied",
			slog.String("source", why), slog.Any("problems", strings.Split(err.Error(), "\n")))
	}
	return err
}

func (r *reloader) applyLocked(ctx context.Context, why string, began time.Time) error {
	cfg, entries := r.cfg, r.entries
	var restart []string
	if r.origin.file != nil && (why == "file" || why == "SIGHUP") {
		next, err := r.readFile(ctx)
		r.note(err)
		if err != nil {
			return err
		}
		running := r.app.config.Bridge
		running.Listen = r.origin.listen
		cfg, restart = next, needRestart(&running, &next.Bridge)
	} else {
		r.smu.Lock()
		restart = r.stats.Restart
		r.smu.Unlock()
	}
	if r.store != nil {
		loaded, err := r.store.Load(ctx)
		switch {
		case err == nil:
			entries = loaded
		case why == byAdmin: // what was written is not known
			return err
		} // else a store that is away, which it says itself, keeps nobody from a change of the file
	}
	next, err := r.app.merge(cfg, entries)
	if err != nil {
		r.note(err)
		return err
	}
	// Until the swap, calls go to either, but not those of who is not to make any more: new servers may be slow to come.
	r.app.headers.set(headerNames(r.used(), next.used))
	r.app.callers.Revoke(callers(cfg.Bridge.Auth, r.origin.loopback))
	changes, err := r.app.catalogue.Apply(ctx, next.servers, next.users)
	if err != nil {
		r.app.headers.set(headerNames(r.used()))
		r.app.replaceCallers(r.cfg.Bridge.Auth, r.origin.loopback)
		return err
	}
	r.app.headers.set(headerNames(next.used))
	r.app.replaceCallers(cfg.Bridge.Auth, r.origin.loopback)
	r.cfg, r.entries = cfg, entries

	r.smu.Lock()
	before := r.now
	r.now = next
	r.stats.Applied = time.Now()
	told := strings.Join(r.stats.Restart, " ")
	r.stats.Restart = restart
	r.smu.Unlock()
	next.logIdle(r.app.log, before)
	if list := strings.Join(restart, " "); list != "" && list != told {
		r.app.log.LogAttrs(ctx, slog.LevelWarn, "settings were changed that take a restart; the others are applied", slog.Any("settings", restart))
	}
	level := slog.LevelInfo
	if len(changes.Added)+len(changes.Changed)+len(changes.Removed) == 0 && why != "file" && why != "SIGHUP" {
		level = slog.LevelDebug
	}
	r.app.log.LogAttrs(ctx, level, "configuration applied", slog.String("source", why),
		slog.Any("added", names(changes.Added)), slog.Any("changed", names(changes.Changed)), slog.Any("removed", names(changes.Removed)),
		slog.Int("kept", len(changes.Kept)), slog.Duration("duration", time.Since(began)))
	return nil
}

// used returns the servers that were last applied.
func (r *reloader) used() []config.Server {
	r.smu.Lock()
	defer r.smu.Unlock()
	return r.now.used
}

// readFile reads the file and checks all that can be known before it is applied.
func (r *reloader) readFile(ctx context.Context) (*config.Config, error) {
	cfg, warnings, err := r.origin.file.Load()
	for _, w := range warnings {
		r.app.log.LogAttrs(ctx, slog.LevelWarn, "configuration file", slog.String("warning", w.String()))
	}
	if err != nil {
		return nil, err
	}
	if r.cfg.Bridge.Auth.Enabled() && !cfg.Bridge.Auth.Enabled() {
		// A file that was cut off, say, must not open the bridge to everybody.
		return nil, errors.New("the file no longer says who callers are (bridge.auth.keys, bridge.auth.jwt); a bridge that asks for credentials goes on doing so until it is restarted")
	}
	if err := checkParts(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

// note keeps what is wrong with the file, until a reading of it finds nothing.
func (r *reloader) note(err error) {
	r.smu.Lock()
	defer r.smu.Unlock()
	r.broken = nil
	if err != nil {
		r.broken = strings.Split(err.Error(), "\n")
	}
}

// status is what /status says of the configuration; nil for a nil reloader.
func (r *reloader) status() *routes.ConfigStatus {
	if r == nil {
		return nil
	}
	r.smu.Lock()
	defer r.smu.Unlock()
	st := r.stats
	st.Stale, st.Errors, st.Unusable = r.broken != nil, r.broken, r.now.unusable()
	st.Entries = map[string]int{}
	for _, l := range r.now.listed {
		st.Entries[l.Source]++
	}
	st.Sources = []string{"command line"}
	if r.origin.file != nil {
		st.Sources[0] = "file"
	}
	if r.store != nil {
		st.Sources = append(st.Sources, r.store.Name())
	}
	return &st
}

// admin is the administration; nil for a nil reloader.
func (r *reloader) admin() routes.Admin {
	if r == nil {
		return nil
	}
	return admin{r}
}

// names are the names that a log line shows of servers.
func names(all []mcp.ServerName) []string {
	const most = 20
	out := make([]string, 0, min(len(all), most+1))
	for i, n := range all {
		if i == most {
			out = append(out, fmt.Sprintf("and %d more", len(all)-most))
			break
		}
		out = append(out, entryName(config.EntryKey{Handle: n.Handle, User: n.Owner.User, Tenant: n.Owner.Tenant}))
	}
	return out
}

// needRestart names the settings that differ and that a running bridge does not change.
func needRestart(running, next *config.Bridge) []string {
	var out []string
	for _, k := range []struct {
		name      string
		have, new any
	}{
		{"listen", running.Listen, next.Listen},
		{"basePath", running.BasePath, next.BasePath},
		{"hosts", running.Hosts, next.Hosts},
		{"readyGrace", running.ReadyGrace, next.ReadyGrace},
		{"drainDelay", running.DrainDelay, next.DrainDelay},
		{"shutdownGrace", running.ShutdownGrace, next.ShutdownGrace},
		{"cancelGrace", running.CancelGrace, next.CancelGrace},
		{"timeouts.maxTimeout", running.Timeouts.MaxTimeout, next.Timeouts.MaxTimeout},
		{"pool", withoutDefaults(running.Pool), withoutDefaults(next.Pool)},
		{"queue", running.Queue, next.Queue},
		{"breaker", running.Breaker, next.Breaker},
		{"limits", running.Limits, next.Limits},
		{"descriptionChars", running.DescriptionChars, next.DescriptionChars},
		{"artifacts", running.Artifacts, next.Artifacts},
		{"jobs", running.Jobs, next.Jobs},
		{"idempotency", running.Idempotency, next.Idempotency},
		{"cors", running.CORS, next.CORS},
		{"sources", running.Sources, next.Sources},
		{"admin.stateFile", running.Admin.StateFile, next.Admin.StateFile},
		{"operationIds", running.OperationIDs, next.OperationIDs},
		{"compat", running.Compat, next.Compat},
		{"telemetry", running.Telemetry, next.Telemetry},
	} {
		if !reflect.DeepEqual(k.have, k.new) {
			out = append(out, "bridge."+k.name)
		}
	}
	return out
}

// withoutDefaults leaves out what is only the default of servers, which are read anew.
func withoutDefaults(p config.Pool) config.Pool {
	p.IdleTimeout, p.StdioCallsPerServer = 0, 0
	return p
}
