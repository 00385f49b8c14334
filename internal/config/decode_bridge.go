package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A tick is the least duration where zero would mean "at once, always failing".
const tick = time.Millisecond

// bridge reads the bridge section over its defaults.
func (d *decoder) bridge(f field, b *Bridge) {
	o := f.object()
	d.bridgeKeys(o, b)
	o.close()
}

func (d *decoder) bridgeKeys(o *object, b *Bridge) {
	o.text("listen", &b.Listen, checkListen)
	o.text("basePath", &b.BasePath, checkBasePath)
	b.Hosts = texts(o.get("hosts").list(), checkHost)
	for i, h := range b.Hosts {
		b.Hosts[i] = strings.ToLower(h)
	}
	o.duration("readyGrace", &b.ReadyGrace, 0)
	o.duration("drainDelay", &b.DrainDelay, 0)
	o.duration("shutdownGrace", &b.ShutdownGrace, 0)
	o.duration("cancelGrace", &b.CancelGrace, 0)
	o.int("descriptionChars", &b.DescriptionChars, 1)

	d.timeouts(o.get("timeouts").object(), &b.Timeouts)

	p := o.get("pool").object()
	p.int("stdioCalls", &b.Pool.StdioCalls, 1)
	p.int("stdioCallsPerServer", &b.Pool.StdioCallsPerServer, 1)
	p.int("httpCalls", &b.Pool.HTTPCalls, 1)
	p.int("maxProcesses", &b.Pool.MaxProcesses, 1)
	p.int("connects", &b.Pool.Connects, 1)
	p.duration("idleTimeout", &b.Pool.IdleTimeout, 0)
	p.close()

	q := o.get("queue").object()
	q.duration("maxWait", &b.Queue.MaxWait, 0)
	q.int("maxWaiting", &b.Queue.MaxWaiting, 0)
	q.int("maxWaitingPerCaller", &b.Queue.MaxWaitingPerCaller, 0)
	q.close()

	br := o.get("breaker").object()
	br.int("failures", &b.Breaker.Failures, 1)
	br.duration("cooldown", &b.Breaker.Cooldown, tick)
	br.duration("maxCooldown", &b.Breaker.MaxCooldown, tick)
	br.close()
	notAbove(br, "cooldown", b.Breaker.Cooldown, "maxCooldown", b.Breaker.MaxCooldown)

	l := o.get("limits").object()
	l.size("requestBytes", &b.Limits.RequestBytes, 1)
	l.size("resultBytes", &b.Limits.ResultBytes, 1)
	l.int("nesting", &b.Limits.Nesting, 1)
	l.int("toolsPerServer", &b.Limits.ToolsPerServer, 1)
	l.int("pages", &b.Limits.Pages, 1)
	l.close()

	d.artifacts(o.get("artifacts").object(), &b.Artifacts)

	j := o.get("jobs").object()
	j.duration("ttl", &b.Jobs.TTL, tick)
	j.int("perCaller", &b.Jobs.PerCaller, 1)
	j.duration("inputWait", &b.Jobs.InputWait, tick)
	j.int("events", &b.Jobs.Events, 1)
	j.close()

	i := o.get("idempotency").object()
	i.duration("ttl", &b.Idempotency.TTL, tick)
	i.close()

	d.auth(o.get("auth").object(), &b.Auth, b.Timeouts.MaxTimeout)

	c := o.get("cors").object()
	b.CORS.Origins = texts(c.get("origins").list(), checkOrigin)
	c.close()

	s := o.get("sources").object()
	redisURL(s.get("redis"), &b.Sources.Redis, "")
	s.close()

	a := o.get("admin").object()
	a.text("stateFile", &b.Admin.StateFile, notEmpty, noControls)
	b.Admin.StateFile = d.absolute(b.Admin.StateFile)
	if f := a.get("stateFile"); f.present() && !b.Sources.Redis.IsZero() {
		d.warn(f.line, f.path, "has no effect beside sources.redis, which takes its place")
	}
	a.bool("allowCommands", &b.Admin.AllowCommands)
	a.close()

	oneOf(o, "operationIds", &b.OperationIDs, OperationIDsPlain, OperationIDsMCPO)

	m := o.get("compat").object()
	m.bool("mcpo", &b.Compat.MCPO)
	m.close()

	t := o.get("telemetry").object()
	set(t, "logLevel", &b.Telemetry.LogLevel, parseLevel, textKinds...)
	t.text("otlp", &b.Telemetry.OTLP, func(s string) error { return checkURL(s, false, "http", "https") })
	t.text("debugListen", &b.Telemetry.DebugListen, checkListen, checkLoopback)
	t.close()
}

func (d *decoder) timeouts(o *object, t *Timeouts) {
	o.duration("call", &t.Call, tick)
	o.duration("maxTimeout", &t.MaxTimeout, tick)
	o.duration("start", &t.Start, tick)
	o.duration("handshake", &t.Handshake, tick)
	o.close()
	notAbove(o, "call", t.Call, "maxTimeout", t.MaxTimeout)
}

// notAbove reports a pair of durations in the wrong order, at the one of the two
// that the file sets.
func notAbove(o *object, low string, lowValue time.Duration, high string, highValue time.Duration) {
	if lowValue <= highValue {
		return
	}
	if f := o.get(low); f.present() {
		f.problem("is above %s.%s", lastKey(o.path), high)
		return
	}
	if f := o.get(high); f.present() {
		f.problem("is below %s.%s, which is %v unless set", lastKey(o.path), low, lowValue)
	}
}

func lastKey(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

func (d *decoder) artifacts(o *object, a *Artifacts) {
	redisURL(o.get("store"), &a.Store, "memory")
	o.size("bytes", &a.Bytes, 0)
	o.duration("ttl", &a.TTL, tick)
	o.size("promoteBytes", &a.PromoteBytes, 1)
	o.int("summaryAfter", &a.SummaryAfter, 1)
	o.int("summaryChars", &a.SummaryChars, 1)
	o.int("summaries", &a.Summaries, 0)
	if a.SummaryChars > a.SummaryAfter {
		f := o.get("summaryChars")
		if !f.present() {
			f = o.get("summaryAfter")
		}
		f.problem("would make summaries longer than what they are for: summaryChars is above summaryAfter")
	}
	types := o.get("types").object()
	types.each(func(name string, f field) {
		if !artifactType.MatchString(name) {
			f.d.problem(f.line, f.path, "is not a name of a type: write words of lower-case letters, digits and dashes, joined by colons")
			return
		}
		if f.n.kind != kindMapping && f.n.kind != kindBool {
			f.problem("must be a JSON Schema: a mapping, or true or false, not %s", f.n.kind)
			return
		}
		schema, ok := f.json()
		if !ok {
			return
		}
		if a.Types == nil {
			a.Types = make(map[string]json.RawMessage)
		}
		a.Types[name] = schema
	})
	o.close()
}

var artifactType = regexp.MustCompile(`^[a-z0-9-]+(:[a-z0-9-]+)*$`)

// redisURL reads the URL of a Redis, which may hold a password, or the word
// that stands for none.
func redisURL(f field, dst *Value, none string) {
	v, ok := f.value()
	if !ok {
		return
	}
	if v.Text() == none {
		*dst = Plain(none)
		return
	}
	if f.checkSecret(v, func(s string) error { return checkURL(s, true, "redis", "rediss") }) {
		*dst = Hidden(v.Text())
	}
}

// json gives a value that is free in form as JSON, text expanded.
func (f field) json() (json.RawMessage, bool) {
	var b bytes.Buffer
	if !f.writeJSON(&b) {
		return nil, false
	}
	return b.Bytes(), true
}

func (f field) writeJSON(b *bytes.Buffer) bool {
	ok := true
	switch f.n.kind {
	case kindNull:
		b.WriteString("null")
	case kindBool:
		b.WriteString(strings.ToLower(f.n.text))
	case kindNumber:
		number, err := jsonNumber(f.n.text)
		if err != nil {
			f.problem("%q %s", f.n.text, err)
			return false
		}
		b.WriteString(number)
	case kindString:
		s, good := f.scalar(false)
		if !good {
			return false
		}
		writeJSONText(b, s.value.Text())
	case kindSequence:
		b.WriteByte('[')
		for i, item := range f.list() {
			if i > 0 {
				b.WriteByte(',')
			}
			ok = item.writeJSON(b) && ok
		}
		b.WriteByte(']')
	case kindMapping:
		b.WriteByte('{')
		comma := false
		f.object().each(func(key string, value field) {
			if comma {
				b.WriteByte(',')
			}
			comma = true
			writeJSONText(b, key)
			b.WriteByte(':')
			ok = value.writeJSON(b) && ok
		})
		b.WriteByte('}')
	}
	return ok
}

func writeJSONText(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text cannot fail to encode
	b.Truncate(b.Len() - 1)
}

// jsonNumber keeps what is a number of JSON digit by digit, and brings YAML's
// other spellings to one.
func jsonNumber(s string) (string, error) {
	if json.Valid([]byte(s)) {
		return s, nil
	}
	plain := strings.ReplaceAll(s, "_", "")
	if n, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return strconv.FormatInt(n, 10), nil
	}
	x, err := strconv.ParseFloat(plain, 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return "", errors.New("is not a number of JSON")
	}
	return strconv.FormatFloat(x, 'g', -1, 64), nil
}
