package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/remote"
	"mcpbridge/internal/mcp/rpc"
)

// A RemoteConfig says how to reach a server over HTTP.
type RemoteConfig struct {
	Name     string // label of its accounts
	URL      Arg
	Headers  map[string]string  // sent with every request; secret
	As       *remote.Credential // whom to connect as, beside Headers without Authorization; nil for nobody; never with SSE
	Protocol string             // "auto" or a version; empty is auto
	SSE      bool               // the deprecated HTTP+SSE
	TLS      remote.TLS
	Proxy    string // a URL; "none" for no proxy; empty for the environment's

	MaxConcurrent int // calls at a time; zero has no gate of its own
	Rate          Rate
	Limits        Limits
}

// NewRemote returns the endpoint of a server that is reached over HTTP.
func NewRemote(c RemoteConfig) (Endpoint, error) {
	if u, err := url.Parse(c.URL.Text); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is not the URL of a server; it must start with http:// or https://", printedURL(c.URL, nil, nil))
	}
	headers := make(http.Header, len(c.Headers))
	for k, v := range c.Headers {
		headers.Set(k, v)
	}
	var tokens *remote.Tokens
	var as remote.Credential
	if c.As != nil {
		as = *c.As
		var err error
		if tokens, err = remote.NewTokens(*c.As); err != nil {
			return nil, err
		}
	}
	protocol, transport := c.Protocol, "http"
	if c.SSE {
		protocol, transport = remote.SSE, "sse"
	}
	id := identity{
		Transport: transport, URL: c.URL.Text, Headers: headers, As: as, Protocol: protocol,
		TLS: fmt.Sprintf("%q", []string{c.TLS.CA, c.TLS.Cert, c.TLS.Key, c.TLS.ServerName}), Proxy: c.Proxy,
	}.id(c.Name)
	display := "" // the URL without what is usually secret in it
	if c.URL.Secret {
		display = "its URL"
	}
	return &remoteEndpoint{
		id: id, printed: printedURL(c.URL, c.As, headers),
		demand:  demand(id, c.MaxConcurrent, c.Rate, bridge.HTTPSlots, c.Limits.orDefaults().HTTPCalls),
		options: remote.Options{URL: c.URL.Text, Headers: headers, Tokens: tokens, Protocol: protocol, TLS: c.TLS, Proxy: c.Proxy, Display: display},
	}, nil
}

type remoteEndpoint struct {
	id      bridge.EndpointID
	printed string
	demand  bridge.Demand
	options remote.Options
}

func (e *remoteEndpoint) ID() bridge.EndpointID { return e.id }
func (e *remoteEndpoint) String() string        { return e.printed }
func (e *remoteEndpoint) Demand() bridge.Demand { return e.demand }
func (e *remoteEndpoint) Process() bool         { return false }

func (e *remoteEndpoint) Connect(ctx context.Context, o rpc.Options) (rpc.Conn, error) {
	opts := e.options
	opts.Options = o
	conn, err := remote.Dial(ctx, opts)
	if err != nil {
		return nil, err
	}
	return conn, nil
}
