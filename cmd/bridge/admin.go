package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/routes"
)

// admin is the administration of a running bridge: a reloader that also writes.
type admin struct{ *reloader }

var _ routes.Admin = admin{}

// Servers implements [routes.Admin].
func (a admin) Servers() []routes.AdminServer {
	a.smu.Lock()
	defer a.smu.Unlock()
	return slices.Clone(a.now.listed)
}

// Put implements [routes.Admin].
func (a admin) Put(ctx context.Context, by bridge.Caller, key routes.AdminKey, data []byte, p routes.Precondition) (routes.AdminServer, bool, error) {
	k := config.EntryKey(key)
	if err := a.writable(); err != nil {
		return routes.AdminServer{}, false, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := k.Check(); err != nil {
		return routes.AdminServer{}, false, refusedEntry([]routes.AdminProblem{{Message: err.Error()}})
	}
	if err := a.ownedByFile(k); err != nil {
		return routes.AdminServer{}, false, err
	}
	// What is kept is what was meant: white space and comments are not.
	var compact json.RawMessage
	compact, err := json.Marshal(json.RawMessage(data))
	if err != nil {
		return routes.AdminServer{}, false, &bridge.Error{Kind: bridge.Malformed, Op: "admin.Put", Msg: "The entry is not JSON.", Err: err}
	}
	if _, _, _, err := a.app.entry(a.cfg, config.Entry{Key: k, Data: compact}); err != nil {
		if list, ok := errors.AsType[*config.Error](err); ok {
			return routes.AdminServer{}, false, refusedEntry(adminProblems(list.Problems))
		}
		return routes.AdminServer{}, false, refusedEntry([]routes.AdminProblem{{Message: err.Error()}})
	}
	// A caller who goes away must not leave half a change.
	ctx = context.WithoutCancel(ctx)
	_, was, err := a.store.Write(ctx, k, compact, config.Condition(p))
	if err != nil {
		return routes.AdminServer{}, false, a.writeError(err, k)
	}
	a.done(by, "put", entryName(k))
	if err := a.reloadLocked(ctx, byAdmin); err != nil {
		return routes.AdminServer{}, false, notApplied(err)
	}
	i := slices.IndexFunc(a.now.listed, func(s routes.AdminServer) bool {
		return s.Handle == k.Handle && s.User == k.User && s.Tenant == k.Tenant && s.Version != ""
	})
	if i < 0 { // somebody has deleted it meanwhile, through another bridge
		return routes.AdminServer{}, false, a.writeError(&config.VersionError{}, k)
	}
	s := a.now.listed[i]
	if srv := a.app.catalogue.Snapshot(bridge.Caller{User: k.User, Tenant: k.Tenant}).Server(k.Handle); srv != nil && !s.Shadowed {
		s.State, s.LastError = string(srv.State), srv.LastError
	}
	return s, !was, nil
}

// Delete implements [routes.Admin].
func (a admin) Delete(ctx context.Context, by bridge.Caller, key routes.AdminKey, p routes.Precondition) error {
	k := config.EntryKey(key)
	if err := a.writable(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	ctx = context.WithoutCancel(ctx)
	if _, _, err := a.store.Write(ctx, k, nil, config.Condition(p)); err != nil {
		if inFile := a.ownedByFile(k); inFile != nil && errors.Is(err, config.ErrNoEntry) {
			return inFile
		}
		return a.writeError(err, k)
	}
	a.done(by, "delete", entryName(k))
	if err := a.reloadLocked(ctx, byAdmin); err != nil {
		return notApplied(err)
	}
	return nil
}

// Reset implements [routes.Admin].
func (a admin) Reset(by bridge.Caller, handle string) error {
	found := slices.ContainsFunc(a.Servers(), func(s routes.AdminServer) bool { return s.Handle == handle })
	if !found {
		return noServer(handle)
	}
	for _, e := range a.app.pool.Stats().Endpoints {
		if slices.Contains(e.Handles, handle) {
			a.app.circuits.Reset(e.ID)
		}
	}
	a.done(by, "reset", handle)
	return nil
}

// done logs who has changed a server: of tokens, the caller is only who issued them.
func (a admin) done(by bridge.Caller, what, server string) {
	a.app.log.Info("a server was changed through the administration", slog.String("what", what), slog.String("server", server), slog.String("caller", by.ID), slog.String("user", by.User))
}

// writable refuses changes that could be kept nowhere.
func (a admin) writable() error {
	if a.store != nil {
		return nil
	}
	return &bridge.Error{
		Kind: bridge.Forbidden, Op: "admin",
		Msg: "This bridge has nowhere to keep what is put here: set bridge.admin.stateFile to a path, or bridge.sources.redis to the URL of a Redis, in its configuration file.",
	}
}

// ownedByFile refuses to change what the file defines.
func (a admin) ownedByFile(k config.EntryKey) error {
	if _, ok := a.cfg.Server(k.Handle); !ok || k.User != "" {
		return nil
	}
	return &bridge.Error{
		Kind: bridge.Forbidden, Op: "admin",
		Msg: fmt.Sprintf("The server %q is defined by the bridge's configuration (%s), which wins; change it there, or choose another handle.", k.Handle, fileSource(a.cfg)),
	}
}

func refusedEntry(problems []routes.AdminProblem) error {
	msg := "The entry is not right: "
	if problems[0].Pointer != "" {
		msg += problems[0].Pointer + ": "
	}
	msg += problems[0].Message
	if len(problems) > 1 {
		msg += fmt.Sprintf("; and %d more, see errors", len(problems)-1)
	}
	return &bridge.Error{
		Kind: bridge.InvalidArguments, Op: "admin.Put", Msg: msg + ". Nothing was changed.",
		Members: map[string]any{"errors": problems, "count": len(problems)},
	}
}

// writeError is what a caller sees of an error of the store.
func (a admin) writeError(err error, k config.EntryKey) error {
	if v, ok := errors.AsType[*config.VersionError](err); ok {
		e := &bridge.Error{
			Kind: routes.PreconditionFailed, Op: "admin", Err: err,
			Msg: fmt.Sprintf("There is no entry %q by now. Nothing was changed.", k.Handle),
		}
		if v.Current != "" {
			e.Msg = fmt.Sprintf("The entry %q is of version %q by now. Nothing was changed.", k.Handle, v.Current)
			e.Members = map[string]any{"version": v.Current}
		}
		return e
	}
	if errors.Is(err, config.ErrNoEntry) {
		return noServer(k.Handle)
	}
	return &bridge.Error{
		Kind: bridge.StoreUnavailable, Op: "admin", Err: err,
		Msg: "The change could not be kept, or it is not known whether it was: the " + a.store.Name() + " cannot be used. The operator finds the cause in the log.",
	}
}

func noServer(handle string) error {
	return &bridge.Error{Kind: bridge.NotFound, Op: "admin", Msg: fmt.Sprintf("There is no server %q that could be changed here; GET /admin/servers lists them.", handle)}
}

func notApplied(err error) error {
	return &bridge.Error{Kind: bridge.Unavailable, Op: "admin", Err: err, Msg: "The change is kept, but it is not in use yet; the operator finds the cause in the log."}
}
