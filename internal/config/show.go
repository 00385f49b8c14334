package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"
)

// A shownServer is an entry as people may see it: what differs from the defaults,
// with "[hidden]" for every secret.
type shownServer struct {
	Command          string            `json:"command,omitempty"`
	Args             []string          `json:"args,omitempty"`
	Env              map[string]string `json:"env,omitempty"`
	Cwd              string            `json:"cwd,omitempty"`
	URL              string            `json:"url,omitempty"`
	Type             Transport         `json:"type,omitempty"`
	Headers          map[string]string `json:"headers,omitempty"`
	ForwardHeaders   []string          `json:"forwardHeaders,omitempty"`
	Credential       *shownCredential  `json:"credential,omitempty"`
	TLS              *shownTLS         `json:"tls,omitempty"`
	Proxy            string            `json:"proxy,omitempty"`
	Protocol         string            `json:"protocol,omitempty"`
	Disabled         bool              `json:"disabled,omitempty"`
	Name             string            `json:"name,omitempty"`
	Title            string            `json:"title,omitempty"`
	Description      string            `json:"description,omitempty"`
	Tools            *shownTools       `json:"tools,omitempty"`
	DisabledTools    []string          `json:"disabledTools,omitempty"`
	Timeout          string            `json:"timeout,omitempty"`
	StartTimeout     string            `json:"startTimeout,omitempty"`
	HandshakeTimeout string            `json:"handshakeTimeout,omitempty"`
	IdleTimeout      string            `json:"idleTimeout,omitempty"`
	MaxConcurrent    int               `json:"maxConcurrent,omitempty"`
	Rate             string            `json:"rate,omitempty"`
	AutoReconnect    *bool             `json:"autoReconnect,omitempty"`
	ReconnectDelay   string            `json:"reconnectDelay,omitempty"`
	Heartbeat        string            `json:"heartbeat,omitempty"`
	Sharing          Sharing           `json:"sharing,omitempty"`
	ParseText        bool              `json:"parseText,omitempty"`
	CheckResults     CheckResults      `json:"checkResults,omitempty"`
	Elicitation      bool              `json:"elicitation,omitempty"`
}

type shownCredential struct {
	ClientID     string   `json:"clientId,omitempty"`
	ClientSecret string   `json:"clientSecret,omitempty"`
	PrivateKey   string   `json:"privateKey,omitempty"`
	KeyID        string   `json:"keyId,omitempty"`
	Algorithm    string   `json:"algorithm,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Issuer       string   `json:"issuer,omitempty"`
}

type shownTLS struct {
	CA         string `json:"ca,omitempty"`
	Cert       string `json:"cert,omitempty"`
	Key        string `json:"key,omitempty"`
	ServerName string `json:"serverName,omitempty"`
}

type shownTools struct {
	Allow *[]string `json:"allow,omitempty"`
	Deny  []string  `json:"deny,omitempty"`
}

// Show returns the server as an entry in JSON: what differs from the defaults of b,
// with "[hidden]" in place of what is secret, and of the query of its URL.
func (s *Server) Show(b *Bridge) json.RawMessage {
	d := newServer(s.Handle, b)
	if s.Transport == Stdio {
		d.MaxConcurrent = b.Pool.StdioCallsPerServer
	}
	v := shownServer{
		Command: s.Command.String(), Env: shownValues(s.Env), Cwd: s.Cwd.String(),
		URL: shownURL(s.URL), Headers: shownValues(s.Headers), ForwardHeaders: s.ForwardHeaders,
		Proxy: s.Proxy.String(), Protocol: other(s.Protocol, d.Protocol),
		Disabled: s.Disabled, Name: other(s.Name, d.Name), Title: s.Title, Description: s.Description,
		DisabledTools: s.Tools.Disabled,
		Timeout:       shownDuration(s.Timeout, d.Timeout), StartTimeout: shownDuration(s.StartTimeout, d.StartTimeout),
		HandshakeTimeout: shownDuration(s.HandshakeTimeout, d.HandshakeTimeout), IdleTimeout: shownDuration(s.IdleTimeout, d.IdleTimeout),
		MaxConcurrent: other(s.MaxConcurrent, d.MaxConcurrent), Rate: shownRate(s.Rate),
		ReconnectDelay: shownDuration(s.ReconnectDelay, d.ReconnectDelay), Heartbeat: shownDuration(s.Heartbeat, d.Heartbeat),
		Sharing: other(s.Sharing, d.Sharing), ParseText: s.ParseText, CheckResults: other(s.CheckResults, d.CheckResults), Elicitation: s.Elicitation,
	}
	for _, a := range s.Args {
		v.Args = append(v.Args, a.String())
	}
	if s.Transport == SSE {
		v.Type = SSE
	}
	if !s.AutoReconnect {
		v.AutoReconnect = new(bool)
	}
	if c := s.Credential; c != nil {
		v.Credential = &shownCredential{
			c.ClientID.String(), c.ClientSecret.String(), c.PrivateKey.String(), c.KeyID, c.Algorithm, c.Scopes, c.Issuer,
		}
	}
	if s.TLS != (TLS{}) {
		v.TLS = new(shownTLS(s.TLS))
	}
	if s.Tools.Allow != nil || s.Tools.Deny != nil {
		v.Tools = &shownTools{Deny: s.Tools.Deny}
		if s.Tools.Allow != nil {
			v.Tools.Allow = &s.Tools.Allow // an empty list is not none
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		panic(err) // texts, numbers and lists of them
	}
	return out
}

func shownValues(m map[string]Value) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v.String()
	}
	return out
}

// shownURL hides a URL's query, where tokens are.
func shownURL(v Value) string {
	if v.Secret() {
		return v.String()
	}
	u, err := url.Parse(v.Text())
	if err != nil {
		return redacted
	}
	if u.RawQuery == "" {
		return v.Text()
	}
	u.RawQuery = ""
	return u.String() + "?" + redacted
}

func shownDuration(d, def time.Duration) string {
	if d == def {
		return ""
	}
	return d.String()
}

func shownRate(r Rate) string {
	if r.IsZero() {
		return ""
	}
	return r.String()
}

// other returns v, or the zero value if v is the default.
func other[T comparable](v, def T) T {
	if v == def {
		var zero T
		return zero
	}
	return v
}

// Fingerprint is a digest of everything that the entry says, secrets included. Two
// servers with one fingerprint are the same server.
func (s *Server) Fingerprint() string {
	h := sha256.New()
	c := *s
	c.Line = 0
	digest(h, reflect.ValueOf(c))
	return hex.EncodeToString(h.Sum(nil)[:16])
}

var valueType = reflect.TypeFor[Value]()

// digest writes a value so that no two different ones are written alike.
func digest(h hash.Hash, v reflect.Value) {
	if v.Type() == valueType {
		value := v.Interface().(Value)
		fmt.Fprintf(h, "%q %t;", value.Text(), value.secret)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			digest(h, field)
		}
	case reflect.Pointer:
		fmt.Fprintf(h, "%t;", v.IsNil())
		if !v.IsNil() {
			digest(h, v.Elem())
		}
	case reflect.Slice:
		fmt.Fprintf(h, "%t %d;", v.IsNil(), v.Len())
		for i := range v.Len() {
			digest(h, v.Index(i))
		}
	case reflect.Map:
		keys := slices.SortedFunc(slices.Values(v.MapKeys()), func(a, b reflect.Value) int {
			return strings.Compare(a.String(), b.String())
		})
		fmt.Fprintf(h, "%d;", len(keys))
		for _, k := range keys {
			digest(h, k)
			digest(h, v.MapIndex(k))
		}
	case reflect.String:
		fmt.Fprintf(h, "%q;", v.String())
	default:
		fmt.Fprintf(h, "%v;", v.Interface())
	}
}
