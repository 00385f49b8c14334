package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// server reads one entry of mcpServers. Everything it does not set comes from
// the bridge section.
func (d *decoder) server(handle string, f field, b *Bridge) Server {
	s := newServer(handle, b)
	s.Line = f.line
	if err := checkHandle(handle); err != nil {
		d.problem(f.line, f.path, "%s", err)
	}
	if f.n.kind == kindNull {
		f.problem("is null; a server needs command or url")
		return s
	}
	if f.n.kind != kindMapping {
		f.problem("must be a mapping, not %s", f.n.kind)
		return s
	}
	o := f.object()
	// A server that is switched off may lack the secrets that it needs to run.
	s.Disabled = o.disabled()
	o.lenient = s.Disabled

	o.text("name", &s.Name, noControls)
	if s.Name == "" {
		s.Name = handle
	}
	o.text("title", &s.Title)
	o.text("description", &s.Description)

	d.transport(o, &s)
	d.stdioKeys(o, &s)
	d.remoteKeys(o, &s)
	d.tools(o, &s.Tools)

	o.timeout("timeout", &s.Timeout, b.Timeouts.MaxTimeout)
	o.duration("startTimeout", &s.StartTimeout, tick)
	o.duration("handshakeTimeout", &s.HandshakeTimeout, tick)
	o.duration("idleTimeout", &s.IdleTimeout, 0)
	if s.Transport == Stdio {
		s.MaxConcurrent = b.Pool.StdioCallsPerServer
	}
	o.int("maxConcurrent", &s.MaxConcurrent, 1)
	set(o, "rate", &s.Rate, parseRate, kindString)
	o.bool("autoReconnect", &s.AutoReconnect)
	o.duration("reconnectDelay", &s.ReconnectDelay, tick)
	o.duration("heartbeat", &s.Heartbeat, 0)
	oneOf(o, "sharing", &s.Sharing, Shared, PerTenant, PerUser)
	o.bool("parseText", &s.ParseText)
	oneOf(o, "checkResults", &s.CheckResults, CheckLog, CheckStrict)
	o.bool("elicitation", &s.Elicitation)

	d.warnIdleKeys(o, &s)
	d.checkCallers(o, &s)
	o.unknown(func(key, path string, line int) {
		if hint, ok := foreignKeys[key]; ok {
			d.warn(line, path, "has no effect; %s", hint)
			return
		}
		d.warn(line, path, "unknown key, has no effect%s", didYouMean(key, o.asked))
	})
	return s
}

// warnIdleKeys warns of settings that are right for the other kind of server.
func (d *decoder) warnIdleKeys(o *object, s *Server) {
	keys, beside := []string{"startTimeout"}, "url"
	switch {
	case s.Transport == Stdio:
		keys, beside = []string{"heartbeat"}, "command"
	case s.Sharing == Shared: // else each user's own connections end after it
		keys = append(keys, "idleTimeout")
	}
	for _, f := range o.presentKeys(keys...) {
		d.warn(f.line, f.path, "has no effect beside %s", beside)
	}
	if s.Elicitation && s.Transport == Stdio && s.Sharing != PerUser {
		for _, f := range o.presentKeys("elicitation") {
			d.warn(f.line, f.path, "lets a command of the versions with a handshake ask nothing without sharing: user, since it does not say which call it asks for")
		}
	}
}

// foreignKeys are keys that other programs know, and what to do instead.
var foreignKeys = map[string]string{
	"autoApprove":       "who may call a tool is in bridge.auth",
	"alwaysAllow":       "who may call a tool is in bridge.auth",
	"trust":             "who may call a tool is in bridge.auth",
	"envFile":           "put the variables into env, as ${NAME} or ${file:path}",
	"environment":       "write env",
	"workingDirectory":  "write cwd",
	"httpUrl":           "write url",
	"serverUrl":         "write url",
	"includeTools":      "write tools: {allow: […]}",
	"excludeTools":      "write tools: {deny: […]}",
	"enabledTools":      "write tools: {allow: […]}",
	"auth":              "write headers, or a credential",
	"oauth":             "write a credential",
	"bearerToken":       "write headers: {Authorization: …}",
	"bearerTokenEnvVar": "write headers: {Authorization: …}",
}

// newServer is a server with all defaults.
func newServer(handle string, b *Bridge) Server {
	return Server{
		Handle:           handle,
		Name:             handle,
		Protocol:         "auto",
		Timeout:          b.Timeouts.Call,
		StartTimeout:     b.Timeouts.Start,
		HandshakeTimeout: b.Timeouts.Handshake,
		IdleTimeout:      b.Pool.IdleTimeout,
		AutoReconnect:    true,
		ReconnectDelay:   defaultReconnectDelay,
		Heartbeat:        defaultHeartbeat,
		Sharing:          Shared,
		CheckResults:     CheckLog,
	}
}

func checkHandle(handle string) error {
	switch {
	case handle == "":
		return errors.New("the name of a server is empty; give it one, its tools are called by it")
	case handle == "bridge":
		return errors.New("the name bridge is reserved for the bridge's own tools; give the server another")
	case handle == "." || handle == "..":
		return errors.New("a name of dots cannot be in a path; give the server another")
	case strings.ContainsFunc(handle, unicode.IsControl):
		return errors.New("the name of a server holds control characters; give it another")
	case strings.TrimSpace(handle) != handle:
		return errors.New("the name of a server has space around it; take it away")
	}
	return nil
}

// disabled reads both ways of saying it.
func (o *object) disabled() bool {
	var disabled bool
	o.bool("disabled", &disabled)
	enabled := !disabled
	o.bool("enabled", &enabled)
	if o.has("disabled") && o.has("enabled") && enabled == disabled {
		o.get("enabled").problem("contradicts disabled; write one of them")
	}
	return disabled || !enabled
}

// presentKeys returns which of the keys hold something: an empty list or mapping is
// what programs write for nothing.
func (o *object) presentKeys(keys ...string) []field {
	var fs []field
	for _, key := range keys {
		f := o.get(key)
		if f.present() && (f.n.kind == kindNumber || f.n.kind == kindBool || f.n.text != "" || len(f.n.members) > 0 || len(f.n.items) > 0) {
			fs = append(fs, f)
		}
	}
	return fs
}

func (d *decoder) stdioKeys(o *object, s *Server) {
	if s.Transport == HTTP || s.Transport == SSE {
		for _, f := range o.presentKeys("args", "env", "cwd") {
			d.warn(f.line, f.path, "has no effect beside url")
		}
		return
	}
	if f := o.get("command"); f.present() {
		if v, ok := f.value(); ok {
			s.Command = v
			f.checkText(v, notEmpty, noNUL)
			if words := strings.Fields(v.Text()); len(words) > 1 && !o.has("args") && !strings.Contains(words[0], "/") {
				d.warn(f.line, f.path, "is taken as the name of one program, spaces and all; put the other words into args")
			}
		}
	}
	for _, f := range o.get("args").list() {
		if v, ok := f.value(); ok && f.checkText(v, noNUL) {
			s.Args = append(s.Args, v)
		}
	}
	env := o.get("env")
	env.secret = true
	env.object().each(func(name string, f field) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			d.problem(f.line, env.path, "the name of a variable is empty, or holds an equals sign")
			return
		}
		if v, ok := f.hidden(true); ok && f.checkText(v, noNUL) {
			if s.Env == nil {
				s.Env = make(map[string]Value)
			}
			s.Env[name] = v
		}
	})
	if f := o.get("cwd"); f.present() {
		if sc, ok := f.scalar(true); ok && f.checkText(sc.value, noNUL) {
			s.Cwd = d.absoluteValue(sc.value)
		}
	}
}

// hidden reads a value that is secret whether or not it came from a reference.
func (f field) hidden(callers bool) (Value, bool) {
	f.secret = true
	s, ok := f.scalar(callers)
	return s.value, ok
}

// checkText reports what is wrong with text.
func (f field) checkText(v Value, checks ...func(string) error) bool {
	for _, check := range checks {
		if err := check(v.Text()); err != nil {
			f.problem("%s %s", f.subject(scalar{value: v}), err)
			return false
		}
	}
	return true
}

func noNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("holds a NUL, which no process can be given")
	}
	return nil
}

// absolute makes a path of the file absolute: it is relative to the file.
func (d *decoder) absolute(path string) string {
	if path == "" {
		return ""
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(d.dir, path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// absoluteValue does the same for text that may begin with a reference to the
// caller.
func (d *decoder) absoluteValue(v Value) Value {
	if v.IsZero() || strings.HasPrefix(v.parts[0].text, "/") {
		return v
	}
	e := expander{parts: literal(d.absolute(".") + "/")}
	for _, p := range v.parts {
		if p.caller != "" {
			e.parts = append(e.parts, p)
			continue
		}
		e.literal(p.text)
	}
	return Value{parts: e.parts, secret: v.secret}
}

// tools reads which tools there are: a mapping, or a list to allow.
func (d *decoder) tools(o *object, t *Tools) {
	if f := o.get("tools"); f.present() && f.n.kind == kindSequence {
		t.Allow = texts(f.list(), checkGlob)
	} else {
		to := f.object()
		t.Allow = texts(to.get("allow").list(), checkGlob)
		t.Deny = texts(to.get("deny").list(), checkGlob)
		// Not a warning: a tool that was to be denied would be there.
		to.close()
	}
	for _, key := range []string{"disabledTools", "disabled_tools"} {
		for _, name := range texts(o.get(key).list(), notEmpty) {
			if !slices.Contains(t.Disabled, name) {
				t.Disabled = append(t.Disabled, name)
			}
		}
	}
}

// checkCallers refuses references to callers in what callers share.
func (d *decoder) checkCallers(o *object, s *Server) {
	refs := s.CallerRefs()
	switch {
	case len(refs) == 0:
	case s.Sharing == Shared:
		d.problem(o.line, o.path, "refers to the caller (${caller.%s}), but all callers share it; write sharing: user, or tenant", refs[0])
	case s.Sharing == PerTenant && slices.Contains(refs, "user"):
		d.problem(o.line, o.path, "refers to ${caller.user}, but the callers of a tenant share it; write sharing: user")
	}
}
