package config

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

func (d *decoder) auth(o *object, a *Auth, maxTimeout time.Duration) {
	ids, hashes := make(map[string]int), make(map[string]int) // :: id or hash -> line
	for _, f := range o.get("keys").list() {
		k := d.key(f, maxTimeout)
		if line, ok := ids[k.ID]; ok && k.ID != "" {
			f.d.problem(f.line, f.path+".id", "is the id of another key, in line %d; give each its own, and the same user to both", line)
		}
		if line, ok := hashes[k.Hash]; ok && k.Hash != "" {
			f.d.problem(f.line, f.path+".hash", "is the hash of another key, in line %d; one key cannot be two callers", line)
		}
		ids[k.ID], hashes[k.Hash] = f.line, f.line
		a.Keys = append(a.Keys, k)
	}
	for _, f := range o.get("jwt").list() {
		a.JWT = append(a.JWT, d.jwt(f, maxTimeout))
	}
	if f := o.get("anonymous"); f.present() {
		a.Anonymous = d.anonymous(f, maxTimeout)
	}
	o.close()
}

var keyHash = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// parseHash never shows what it gets: it may be the key itself.
func parseHash(s string) (string, error) {
	s = strings.ToLower(s)
	if !keyHash.MatchString(s) {
		return "", errors.New(`is not "sha256:" and 64 hexadecimal digits, as bridge keys new prints it`)
	}
	return s, nil
}

func (d *decoder) key(f field, maxTimeout time.Duration) Key {
	o := f.object()
	var k Key
	o.text("id", &k.ID, notEmpty, noControls)
	o.required("id")
	hash := o.get("hash")
	hash.secret = true
	if h, ok := read(hash, parseHash, kindString); ok {
		k.Hash = h
	}
	o.required("hash")
	k.User = k.ID
	o.text("user", &k.User, notEmpty, noControls)
	o.text("tenant", &k.Tenant, noControls)
	k.Scopes = []Scope{ScopeCall}
	if f := o.get("scopes"); f.present() {
		k.Scopes = nil
		for _, s := range texts(f.listOrOne(), checkScope) {
			k.Scopes = append(k.Scopes, Scope(s))
		}
	}
	d.policy(o, &k.Policy, maxTimeout)
	o.close()
	return k
}

func checkScope(s string) error {
	if all := []Scope{ScopeCall, ScopeAdmin, ScopeMetrics}; !slices.Contains(all, Scope(s)) {
		return errors.New("is not a scope: write " + listing(all))
	}
	return nil
}

func (d *decoder) jwt(f field, maxTimeout time.Duration) JWT {
	o := f.object()
	j := JWT{User: "sub"}
	o.text("issuer", &j.Issuer, checkIssuer)
	o.required("issuer")
	j.Audience = texts(o.get("audience").listOrOne(), notEmpty)
	o.required("audience")
	if f := o.get("audience"); f.present() && f.n.kind == kindSequence && len(f.n.items) == 0 {
		f.problem("is empty, and a token for anybody must not be taken")
	}
	o.text("user", &j.User, notEmpty)
	o.text("tenant", &j.Tenant)
	o.text("scopes", &j.Scopes)
	d.policy(o, &j.Policy, maxTimeout)
	o.close()
	return j
}

// checkIssuer accepts http on loopback only: whoever can change the keys of an
// issuer on their way is that issuer.
func checkIssuer(s string) error {
	if err := checkURL(s, false, "https", "http"); err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.Scheme == "http" && !isLoopback(u.Hostname()+":0") && !isLoopback("["+u.Hostname()+"]:0") {
		return errors.New("must be https, except on loopback")
	}
	return nil
}

// anonymous reads a policy, or true for an empty one.
func (d *decoder) anonymous(f field, maxTimeout time.Duration) *Policy {
	if f.n.kind != kindMapping {
		yes, _ := read(f, parseBool, kindBool)
		if yes {
			return new(Policy)
		}
		return nil
	}
	o := f.object()
	p := new(Policy)
	d.policy(o, p, maxTimeout)
	o.close()
	return p
}

func (d *decoder) policy(o *object, p *Policy, maxTimeout time.Duration) {
	p.Allow = texts(o.get("allow").list(), checkToolGlob)
	p.Deny = texts(o.get("deny").list(), checkToolGlob)
	set(o, "rate", &p.Rate, parseRate, kindString)
	o.int("burst", &p.Burst, 1)
	if f := o.get("burst"); f.present() && !o.has("rate") {
		f.problem("has no meaning without rate")
	}
	o.int("concurrent", &p.Concurrent, 1)
	o.timeout("timeout", &p.Timeout, maxTimeout)
}

// timeout reads a duration of a call, which is bounded for all.
func (o *object) timeout(key string, dst *time.Duration, maxTimeout time.Duration) {
	set(o, key, dst, func(s string) (time.Duration, error) {
		d, err := parseDuration(s)
		switch {
		case err != nil:
			return 0, err
		case d < tick:
			return 0, errors.New("is below 1ms")
		case d > maxTimeout:
			// Some programs count this in milliseconds.
			return 0, errors.New("is above bridge.timeouts.maxTimeout; a number is of seconds, so write 30s or 500ms to be sure")
		}
		return d, nil
	}, scaledKinds...)
}

// required reports a key that is absent.
func (o *object) required(keys ...string) {
	for _, key := range keys {
		if o.n != nil && o.n.kind == kindMapping && !o.has(key) {
			o.d.problem(o.line, o.path, "needs %s", key)
		}
	}
}
