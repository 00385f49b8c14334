package main

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/mcp"
)

// own says how a server is connected that callers do not share.
func (a *app) own(s config.Server, limits mcp.Limits) (*mcp.Own, error) {
	// Nothing that a file can hold is taken for a mark, so that only equal templates have equal endpoints.
	template, err := resolve(s, func(ref string) (string, error) { return "\x00" + ref + "\x00", nil }, nil)
	if err != nil {
		return nil, err
	}
	e, err := a.endpoint(template, limits)
	if err != nil {
		return nil, err
	}
	return &mcp.Own{
		ByTenant: s.Sharing == config.PerTenant, Headers: takenHeaders(&s), Template: e.ID().Sum,
		For: func(c bridge.Caller) (mcp.Endpoint, error) {
			lookup := func(ref string) (string, error) { return callerValue(&c, ref) }
			resolved, err := resolve(s, lookup, checkWord)
			if err != nil {
				return nil, forbidden(s.Handle, err)
			}
			return a.endpoint(resolved, limits)
		},
	}, nil
}

// resolve returns the server with all references to the caller replaced by what lookup
// returns for them. What reaches the environment or a path of a process has to pass word, if
// that is not nil; what reaches a header has to be fit for one.
func resolve(s config.Server, lookup func(ref string) (string, error), word func(ref, value string) error) (config.Server, error) {
	words := lookup
	if word != nil {
		words = func(ref string) (string, error) {
			value, err := lookup(ref)
			if err == nil {
				err = word(ref, value)
			}
			return value, err
		}
	}
	var errs []error
	text := func(v config.Value, lookup func(string) (string, error)) config.Value {
		if len(v.Caller()) == 0 {
			return v
		}
		t, err := v.Resolve(lookup)
		if err != nil {
			errs = append(errs, err)
		}
		return config.Hidden(t)
	}
	s.Cwd = text(s.Cwd, words)
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		s.Env[name] = text(s.Env[name], words)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		s.Headers[name] = text(s.Headers[name], lookup)
	}
	return s, errors.Join(errs...)
}

// callerValue returns what a reference to the caller stands for, which is never empty.
func callerValue(c *bridge.Caller, ref string) (string, error) {
	var values []string
	what := "a " + ref
	switch header, isHeader := strings.CutPrefix(ref, "header."); {
	case isHeader:
		what, values = "the header "+header, c.Headers[header]
	case ref == "user":
		values = []string{c.User}
	case ref == "tenant":
		values = []string{c.Tenant}
	}
	switch {
	case len(values) > 1:
		return "", fmt.Errorf("the request has %s more than once", what)
	case len(values) == 0 || values[0] == "":
		return "", fmt.Errorf("it is connected with %s, which your request does not come with", what)
	case strings.ContainsFunc(values[0], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		return "", fmt.Errorf("%s holds control characters", what)
	}
	return values[0], nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,64}$`)

// checkWord accepts what can stand in an environment or be one name in a path, whatever
// the server makes of it.
func checkWord(ref, value string) error {
	if !word.MatchString(value) || strings.Trim(value, ".") == "" {
		return fmt.Errorf("your %s must be 1 to 64 of the characters A-Z a-z 0-9 _ . @ - and not dots alone, since it becomes part of how a process is started",
			strings.ReplaceAll(ref, "header.", "header "))
	}
	return nil
}

func forbidden(handle string, err error) error {
	return &bridge.Error{
		Kind: bridge.Forbidden, Op: "bridge.own",
		Msg: fmt.Sprintf("The server %q cannot be connected for you: %s.", handle, strings.ReplaceAll(err.Error(), "\n", "; ")),
	}
}

// takenHeaders returns the canonical names of the headers of a caller's request that the server is connected with.
func takenHeaders(s *config.Server) []string {
	var names []string
	for _, ref := range s.CallerRefs() {
		if name, ok := strings.CutPrefix(ref, "header."); ok {
			names = append(names, name)
		}
	}
	return names
}
