package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"

	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
)

// servers makes the options of the servers that are listed.
func (a *app) servers(list []config.Server) ([]mcp.ServerConfig, error) {
	b := a.config.Bridge
	limits := mcp.Limits{StdioCalls: b.Pool.StdioCalls, StdioCallsPerServer: b.Pool.StdioCallsPerServer, HTTPCalls: b.Pool.HTTPCalls}
	servers := make([]mcp.ServerConfig, 0, len(list))
	var errs []error
	for _, s := range list {
		if oneByOne(s) {
			s.MaxConcurrent = 1
		}
		sc := mcp.ServerConfig{
			Handle: s.Handle, Title: s.Title, Description: s.Description, Disabled: s.Disabled,
			RPC: rpc.Options{
				ClientVersion: version, Handshake: s.HandshakeTimeout, CancelGrace: orInstant(b.CancelGrace),
				Elicitation: s.Elicitation, Exclusive: oneByOne(s),
				ResultBytes: b.Limits.ResultBytes, Log: a.log.With(slog.String("handle", s.Handle)),
			},
			Allow: s.Tools.Allow, Deny: s.Tools.Deny, Exclude: s.Tools.Disabled,
			Timeout: s.Timeout, MaxTimeout: b.Timeouts.MaxTimeout,
			ParseText: s.ParseText, Strict: s.CheckResults == config.CheckStrict, Asks: s.Elicitation, Forward: s.ForwardHeaders,
			NoReconnect: !s.AutoReconnect, ReconnectDelay: s.ReconnectDelay, Heartbeat: s.Heartbeat,
		}
		if !s.Disabled {
			var err error
			if s.Sharing == config.Shared {
				sc.Endpoint, err = a.endpoint(s, limits)
			} else {
				sc.Own, err = a.own(s, limits)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("server %q: %w", s.Handle, err))
				continue
			}
			// What everybody shares over HTTP stays connected.
			if sc.Own != nil || sc.Endpoint.Process() {
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
	if s.Transport == config.Stdio {
		args := make([]mcp.Arg, 0, len(s.Args))
		for _, v := range s.Args {
			args = append(args, mcp.Arg{Text: v.Text(), Secret: v.Secret()})
		}
		return mcp.NewStdio(mcp.StdioConfig{
			Name: s.Name, Command: mcp.Arg{Text: s.Command.Text(), Secret: s.Command.Secret()}, Args: args,
			Env: texts(s.Env), BaseEnv: os.Environ(), Dir: s.Cwd.Text(), HideDir: s.Cwd.Secret(),
			Start: s.StartTimeout, MaxConcurrent: s.MaxConcurrent, Rate: rate(s.Rate), Limits: limits, Supervisor: a.supervisor,
		}), nil
	}
	return mcp.NewRemote(mcp.RemoteConfig{
		Name: s.Name, URL: mcp.Arg{Text: s.URL.Text(), Secret: s.URL.Secret()}, Headers: texts(s.Headers), As: credential(s.Credential),
		Protocol: s.Protocol, SSE: s.Transport == config.SSE,
		TLS: remote.TLS{CA: s.TLS.CA, Cert: s.TLS.Cert, Key: s.TLS.Key, ServerName: s.TLS.ServerName}, Proxy: s.Proxy.Text(),
		MaxConcurrent: s.MaxConcurrent, Rate: rate(s.Rate), Limits: limits,
	})
}

// oneByOne reports whether a server gets one call at a time: where all calls share a stream,
// as that of a process, nothing else says whose question it is that the server asks.
func oneByOne(s config.Server) bool {
	return s.Elicitation && s.Sharing == config.PerUser && (s.Transport == config.Stdio || s.Transport == config.SSE || s.MaxConcurrent == 1)
}

// rate is a server's rate; its burst is what one period allows.
func rate(r config.Rate) mcp.Rate {
	if r.IsZero() {
		return mcp.Rate{}
	}
	return mcp.Rate{PerSecond: float64(r.Count) / r.Per.Seconds(), Burst: r.Count}
}

// credential is whom a server is connected to as; nil for nobody.
func credential(c *config.Credential) *remote.Credential {
	if c == nil {
		return nil
	}
	return &remote.Credential{
		ClientID: c.ClientID.Text(), HideID: c.ClientID.Secret(), ClientSecret: c.ClientSecret.Text(), PrivateKey: c.PrivateKey.Text(),
		KeyID: c.KeyID, Algorithm: c.Algorithm, Scopes: c.Scopes, Issuer: c.Issuer,
	}
}

// texts returns the texts of a map's values.
func texts(m map[string]config.Value) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.Text()
	}
	return out
}
