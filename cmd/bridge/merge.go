package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp"
	"mcpbridge/internal/routes"
)

// A merged is the servers of the file and of the administration's store, ready to be served.
type merged struct {
	servers []mcp.ServerConfig
	users   map[bridge.Owner][]mcp.ServerConfig
	used    []config.Server      // what these are made of
	listed  []routes.AdminServer // all of them, by handle and then by user
	idle    []idleEntry
}

// An idleEntry is an entry of the administration that is not in use.
type idleEntry struct {
	name, version string
	why           string
}

// merge puts the servers of all sources together. A server of the file wins over an
// entry of its handle, and an entry that cannot be used costs no other one; the error is about the file.
func (a *app) merge(cfg *config.Config, entries []config.Entry) (*merged, error) {
	servers, err := a.servers(cfg.Servers)
	if err != nil {
		return nil, err
	}
	m := &merged{servers: servers, users: make(map[bridge.Owner][]mcp.ServerConfig), used: slices.Clone(cfg.Servers)}
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		m.listed = append(m.listed, routes.AdminServer{
			Handle: s.Handle, Source: fileSource(cfg), Fingerprint: s.Fingerprint(), Entry: s.Show(&cfg.Bridge),
		})
	}
	for _, e := range entries {
		m.add(a, cfg, e)
	}
	slices.SortFunc(m.listed, func(a, b routes.AdminServer) int {
		return cmp.Or(strings.Compare(a.Handle, b.Handle), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.User, b.User), strings.Compare(a.Source, b.Source))
	})
	return m, nil
}

// fileSource says where the servers come from that no store has.
func fileSource(cfg *config.Config) string {
	if cfg.Name == "" {
		return "command line"
	}
	return "file"
}

// entryRules decide over the administration's entries.
func entryRules(cfg *config.Config) config.EntryRules {
	return config.EntryRules{Bridge: &cfg.Bridge, Dir: cfg.Dir, AllowCommands: cfg.Bridge.Admin.AllowCommands}
}

// add adds one entry.
func (m *merged) add(a *app, cfg *config.Config, e config.Entry) {
	l := routes.AdminServer{Handle: e.Key.Handle, User: e.Key.User, Tenant: e.Key.Tenant, Source: storeName(&a.config.Bridge), Version: e.Version}
	s, sc, warnings, err := a.entry(cfg, e)
	l.Warnings = adminProblems(warnings)
	if s != nil {
		l.Fingerprint, l.Entry = s.Fingerprint(), s.Show(&cfg.Bridge)
	}
	_, inFile := cfg.Server(e.Key.Handle)
	idle := func(why string) { m.idle = append(m.idle, idleEntry{entryName(e.Key), e.Version, why}) }
	switch {
	case err != nil:
		l.Errors = []routes.AdminProblem{{Message: err.Error()}}
		if list, ok := errors.AsType[*config.Error](err); ok {
			l.Errors = adminProblems(list.Problems)
		}
		idle(err.Error())
	case e.Key.User != "":
		owner := bridge.Owner{User: e.Key.User, Tenant: e.Key.Tenant}
		sc.Idle = s.IdleTimeout // also over HTTP: a user's own connections do not stay for nothing
		m.users[owner] = append(m.users[owner], *sc)
		m.used = append(m.used, *s)
	case inFile:
		l.Shadowed = true
		idle("the configuration file has a server of this handle, which wins")
	default:
		m.servers = append(m.servers, *sc)
		m.used = append(m.used, *s)
	}
	m.listed = append(m.listed, l)
}

// entry reads one entry and makes its options. What could be read of it is returned beside an error, too.
func (a *app) entry(cfg *config.Config, e config.Entry) (*config.Server, *mcp.ServerConfig, []config.Problem, error) {
	if e.Err != nil {
		return nil, nil, nil, e.Err
	}
	s, warnings, err := config.ReadEntry(e.Key, e.Data, entryRules(cfg))
	if err != nil {
		return nil, nil, warnings, err
	}
	sc, err := a.servers([]config.Server{s})
	if err != nil {
		return &s, nil, warnings, err
	}
	return &s, &sc[0], warnings, nil
}

func adminProblems(ps []config.Problem) []routes.AdminProblem {
	out := make([]routes.AdminProblem, 0, len(ps))
	for _, p := range ps {
		out = append(out, routes.AdminProblem{Pointer: p.Pointer(), Message: p.Msg})
	}
	return out
}

// entryName names a server for people.
func entryName(k config.EntryKey) string {
	switch {
	case k.User == "":
		return k.Handle
	case k.Tenant == "":
		return fmt.Sprintf("%s of user %s", k.Handle, k.User)
	default:
		return fmt.Sprintf("%s of user %s of %s", k.Handle, k.User, k.Tenant)
	}
}

// logIdle logs the entries that are not in use, but not those that were not before.
func (m *merged) logIdle(log *slog.Logger, before *merged) {
	for _, e := range m.idle {
		if before == nil || !slices.Contains(before.idle, e) {
			log.Warn("an entry of the administration is not in use", slog.String("entry", e.name), slog.String("reason", e.why))
		}
	}
}

// unusable is what /status says of entries that are not in use.
func (m *merged) unusable() []string {
	var out []string
	for _, e := range m.idle {
		out = append(out, e.name+": "+e.why)
	}
	return out
}
