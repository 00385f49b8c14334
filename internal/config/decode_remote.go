package config

import (
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"time"
)

const (
	defaultReconnectDelay = 5 * time.Second
	defaultHeartbeat      = 10 * time.Minute
)

// protocols are what a server's protocol can be.
var protocols = []string{"auto", "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// remoteKeys reads the keys of servers that have a url.
func (d *decoder) remoteKeys(o *object, s *Server) {
	if s.Transport == Stdio {
		d.refuseRemoteKeys(o)
		return
	}
	if f := o.get("url"); f.present() {
		if v, ok := f.value(); ok && f.checkSecret(v, func(s string) error { return checkURL(s, false, "http", "https") }) {
			s.URL = v
		}
	}
	static := d.headers(o.get("headers"), s)
	d.forwardHeaders(o.get("forwardHeaders"), s, static)
	if f := o.get("credential"); f.present() {
		s.Credential = d.credential(f)
		switch {
		case s.Transport == SSE:
			d.problem(f.line, f.path, "cannot be used with type sse, where a token that was refused cannot be replaced; use headers, or http")
		case static["Authorization"] > 0:
			d.problem(f.line, f.path, "cannot stand beside an Authorization header; keep one of them")
		}
	}
	d.tls(o.get("tls"), s)
	if f := o.get("proxy"); f.present() {
		if v, ok := f.value(); ok && f.checkSecret(v, checkProxy) {
			s.Proxy = v
			if v.Text() != "none" {
				s.Proxy = Hidden(v.Text())
			}
		}
	}
	oneOf(o, "protocol", &s.Protocol, protocols...)
	if s.Transport == SSE && s.Protocol == "2026-07-28" {
		o.get("protocol").problem("has no HTTP+SSE in that version; write another, or type: http")
	}
}

// refuseRemoteKeys is for servers that have a command. Headers may be there for
// no reason, as other programs write them; our own keys were meant.
func (d *decoder) refuseRemoteKeys(o *object) {
	o.get("url")
	for _, f := range o.presentKeys("headers") {
		d.warn(f.line, f.path, "has no effect beside command; a process takes its secrets from env")
	}
	for _, f := range o.presentKeys("credential", "tls", "proxy", "protocol") {
		d.problem(f.line, f.path, "is for servers with a url")
	}
	for _, f := range o.presentKeys("forwardHeaders") {
		d.problem(f.line, f.path, "is for servers with a url: a process has no headers; use ${caller.header.NAME} in env, with sharing: user")
	}
}

// checkSecret reports what is wrong with text that is not shown.
func (f field) checkSecret(v Value, check func(string) error) bool {
	if err := check(v.Text()); err != nil {
		f.problem("the value %s", err)
		return false
	}
	return true
}

func checkProxy(s string) error {
	if s == "none" {
		return nil
	}
	return checkURL(s, true, "http", "https", "socks5", "socks5h")
}

// headers reads the headers of every request, and returns the names that are
// there, with a good value or not.
func (d *decoder) headers(f field, s *Server) map[string]int {
	f.secret = true
	lines := make(map[string]int) // :: canonical name -> line
	f.object().each(func(name string, h field) {
		key := canonicalHeader(name)
		switch {
		case !isToken(name):
			d.problem(h.line, f.path, "the name of a header is empty, or holds spaces or other characters that no name can")
			return
		case hopByHop[key] || transportHeaders[key] || protocolHeader(key):
			d.problem(h.line, h.path, "is a header of the connection itself, which the bridge sets; leave it out")
			return
		case negotiationHeaders[key]:
			d.warn(h.line, h.path, "has no effect: the bridge sets this header itself")
			return
		case lines[key] > 0:
			d.problem(h.line, h.path, "is the header of line %d again, since case does not count", lines[key])
			return
		}
		lines[key] = h.line
		if v, ok := h.hidden(true); ok && h.checkSecret(v, checkHeaderValue) {
			if s.Headers == nil {
				s.Headers = make(map[string]Value)
			}
			s.Headers[key] = v
		}
	})
	return lines
}

func (d *decoder) forwardHeaders(f field, s *Server, static map[string]int) {
	for _, item := range f.list() {
		name, ok := read(item, checked([]func(string) error{checkForward}), kindString)
		if !ok {
			continue
		}
		key := canonicalHeader(name)
		if line, ok := static[key]; ok {
			item.problem("is a header that line %d sets for all callers; keep one of them", line)
			continue
		}
		if !slices.Contains(s.ForwardHeaders, key) {
			s.ForwardHeaders = append(s.ForwardHeaders, key)
		}
	}
}

func checkForward(s string) error {
	key := canonicalHeader(s)
	switch {
	case !isToken(s):
		return errors.New("is not the name of a header")
	case slices.Contains([]byte(s), '*'):
		return errors.New("is not the name of one header; name each")
	case bridgeCredential[key]:
		return errors.New("is never passed on: it says who the caller is to the bridge, which is nobody else's business")
	case hopByHop[key] || transportHeaders[key] || negotiationHeaders[key] || protocolHeader(key):
		return errors.New("is a header of the connection itself, and cannot be passed on")
	}
	return nil
}

var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

func (d *decoder) credential(f field) *Credential {
	o := f.object()
	c := new(Credential)
	if f := o.get("clientId"); f.present() {
		if v, ok := f.value(); ok && f.checkText(v, notEmpty, noControls) {
			c.ClientID = v
		}
	}
	o.required("clientId")
	if f := o.get("clientSecret"); f.present() {
		if v, ok := f.hidden(false); ok && f.checkSecret(v, notEmpty) {
			c.ClientSecret = v
		}
	}
	if f := o.get("privateKey"); f.present() {
		if v, ok := f.hidden(false); ok && f.checkSecret(v, checkPEM) {
			c.PrivateKey = v
		}
	}
	if o.n.kind == kindMapping && o.has("clientSecret") == o.has("privateKey") {
		d.problem(o.line, o.path, "needs one of clientSecret and privateKey")
	}
	o.text("keyId", &c.KeyID, noControls)
	oneOf(o, "algorithm", &c.Algorithm, algorithms...)
	for _, key := range []string{"keyId", "algorithm"} {
		if f := o.get(key); f.present() && !o.has("privateKey") {
			f.problem("has no meaning without privateKey")
		}
	}
	c.Scopes = texts(o.get("scopes").listOrOne(), notEmpty, noControls)
	o.text("issuer", &c.Issuer, checkIssuer)
	o.close()
	return c
}

func checkPEM(s string) error {
	if block, _ := pem.Decode([]byte(s)); block == nil {
		return errors.New("is not a key in PEM form; a file is read by ${file:path}")
	}
	return nil
}

func (d *decoder) tls(f field, s *Server) {
	f.secret = true // somebody will put the key itself here
	o := f.object()
	path := func(key string, dst *string) {
		o.text(key, dst, notEmpty, noPEM, noControls)
		*dst = d.absolute(*dst)
	}
	path("ca", &s.TLS.CA)
	path("cert", &s.TLS.Cert)
	path("key", &s.TLS.Key)
	o.text("serverName", &s.TLS.ServerName, checkHost)
	if o.has("cert") != o.has("key") {
		d.problem(f.line, f.path, "needs both cert and key, or none")
	}
	if f.present() && strings.HasPrefix(strings.ToLower(s.URL.Text()), "http:") {
		d.problem(f.line, f.path, "has no effect with a url that starts with http://")
	}
	o.close()
}

func noPEM(s string) error {
	if block, _ := pem.Decode([]byte(s)); block != nil {
		return errors.New("is a certificate or key itself; write the path of its file")
	}
	return nil
}
