package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An EntryKey names an entry of a [Store]: the server of a handle, for everybody
// or for one user. It is a struct so that no user can be mistaken for part of a handle.
type EntryKey struct {
	Handle string
	User   string // empty: for everybody
	Tenant string // of the user; empty: a user without a tenant
}

// An Entry is a server that was put into a [Store].
type Entry struct {
	Key     EntryKey
	Version string          // changes with every write; never repeats
	Data    json.RawMessage // the entry as it was put: one object in JSON
	Err     error           // why the store's record of it cannot be read; the rest is then incomplete
}

// EntryRules are what decides over entries besides the entries themselves.
type EntryRules struct {
	Bridge        *Bridge // the defaults of servers
	Dir           string  // what relative paths are relative to
	AllowCommands bool    // entries may start processes and name files of this machine
}

const (
	maxEntryBytes = 1 << 20
	maxUserBytes  = 256
)

// Check reports what is wrong with a key.
func (k EntryKey) Check() error {
	if err := checkHandle(k.Handle); err != nil {
		return err
	}
	switch {
	case k.User == "" && k.Tenant != "":
		return errors.New("a tenant without a user: a server is for everybody, or for one user")
	case len(k.User) > maxUserBytes || len(k.Tenant) > maxUserBytes || len(k.Handle) > maxUserBytes:
		return fmt.Errorf("a name is longer than %d bytes", maxUserBytes)
	case !utf8.ValidString(k.User) || !utf8.ValidString(k.Tenant) || !utf8.ValidString(k.Handle):
		return errors.New("a name is not UTF-8")
	}
	return nil
}

// ReadEntry decodes an entry by the rules of the file, with three differences. Text
// is taken as it stands: nothing in it refers to the environment, to a file, or to the
// caller. An entry that starts a process or names a file of this machine is refused
// unless the rules allow it. And text that says "[hidden]" is refused, since it
// stands for a secret that was not shown.
//
// The paths of problems begin within the entry; the error is an [*Error].
func ReadEntry(key EntryKey, data []byte, rules EntryRules) (Server, []Problem, error) {
	d := &decoder{name: key.Handle, dir: rules.Dir, literal: true}
	if err := key.Check(); err != nil {
		d.problem(0, "", "%s", err)
		return Server{}, nil, d.err()
	}
	if len(data) > maxEntryBytes {
		d.problem(0, "", "the entry is larger than 1 MiB")
		return Server{}, nil, d.err()
	}
	root, err := parseEntry(data)
	if err != nil {
		return Server{}, nil, err
	}
	s := d.server(key.Handle, field{d: d, n: root, line: root.line}, rules.Bridge)
	s.Line = 0
	o := field{d: &decoder{}, n: root}.object()
	if !rules.AllowCommands {
		d.refuseHost(o)
	}
	if key.User != "" && s.Sharing != Shared {
		d.problem(0, "sharing", "has no meaning for a server that is one user's own")
	}
	if err := d.err(); err != nil {
		return Server{}, d.sortedWarnings(), err
	}
	return s, d.sortedWarnings(), nil
}

func parseEntry(data []byte) (*node, error) {
	if err := checkBytes(data); err != nil {
		return nil, err
	}
	return parseJSON(data)
}

// refuseHost refuses what would act on this machine rather than on a server elsewhere.
func (d *decoder) refuseHost(o *object) {
	if o.has("command") {
		d.problem(0, "command", "starts a process, which entries may only if bridge.admin.allowCommands is true")
	}
	tls := o.get("tls")
	if tls.n == nil || tls.n.kind != kindMapping {
		return
	}
	files := tls.object()
	for _, key := range []string{"ca", "cert", "key"} {
		if files.has(key) {
			d.problem(0, "tls."+key, "names a file of the bridge's machine, which entries may only if bridge.admin.allowCommands is true")
		}
	}
}

// literalText checks text that is taken as it stands.
func (f field) literalText(text string) bool {
	switch {
	case strings.Contains(text, redacted):
		f.problem("says %s, which stands for a secret that was not shown; send the secret itself", redacted)
		return false
	case strings.Contains(text, "${caller."):
		f.problem("refers to the caller, which only servers of the configuration file can")
		return false
	case strings.Contains(text, "${"):
		f.d.warn(f.line, f.path, "holds ${…}, which stays as it is written: references are for the configuration file")
	}
	return true
}

// Pointer is the problem's path as a JSON pointer (RFC 6901). It ends before a key
// that is not shown.
func (p Problem) Pointer() string {
	var b strings.Builder
	path := p.Path
	for path != "" {
		var token string
		switch {
		case path[0] == '.':
			path = path[1:]
			continue
		case strings.HasPrefix(path, "[…]"):
			return b.String()
		case path[0] == '[':
			quoted, err := strconv.QuotedPrefix(path[1:])
			if err != nil { // an index
				token, path, _ = strings.Cut(path[1:], "]")
				break
			}
			token, _ = strconv.Unquote(quoted) // cannot fail on what was found to be quoted
			path = path[1+len(quoted)+1:]
		default:
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			token, path = path[:end], path[end:]
		}
		b.WriteByte('/')
		b.WriteString(pointerEscapes.Replace(token))
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
