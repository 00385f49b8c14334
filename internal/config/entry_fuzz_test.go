package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"mcpbridge/internal/config"
)

// FuzzReadEntry: any entry is a server or an error whose problems have messages and
// pointers that lead somewhere, nothing in it is expanded, nothing starts a process, and what is
// shown of it holds no value of a header, and can be read again where it holds no secret.
func FuzzReadEntry(f *testing.F) {
	for _, s := range []string{
		`{"url":"http://x"}`, `{"url":"http://x?a=b","headers":{"A":"zQ9xV"}}`, `{"command":"x","args":["zQ9xV"],"env":{"A":"zQ9xV"}}`,
		`{"url":"${A}","tools":["a"]}`, `{"url":"http://x","timeout":5,"rate":"1/s","tools":{"allow":[],"deny":["a*"]},"sharing":"user"}`,
		`{"url":"http://x","headers":{"a/b":"1","~":"2","é":"\u0000"}}`, `[`, `{"":{}}`, `{"url":"http://x","x":{"y":1}}`,
		`{"url":"http://x","credential":{"clientId":"a","clientSecret":"zQ9xV"}}`, `{"url":"http://x","proxy":"http://u:zQ9xV@p"}`,
	} {
		f.Add([]byte(s))
	}
	b := config.DefaultBridge()
	rules := config.EntryRules{Bridge: &b, Dir: "/"}
	key := config.EntryKey{Handle: "a"}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, warnings, err := config.ReadEntry(key, data, rules)
		problems := warnings
		if err != nil {
			e, ok := errors.AsType[*config.Error](err)
			if !ok || len(e.Problems) == 0 {
				t.Fatalf("%T without problems", err)
			}
			problems = append(problems, e.Problems...)
		}
		for _, p := range problems {
			if at := p.Pointer(); p.Msg == "" || at != "" && at[0] != '/' {
				t.Errorf("problem %+v at %q", p, at)
			}
		}
		if err != nil {
			return
		}
		if s.Transport == config.Stdio || !s.Command.IsZero() || s.CallerRefs() != nil {
			t.Errorf("%s starts %v, and refers to %q", data, s.Command, s.CallerRefs())
		}
		shown := s.Show(&b)
		if !json.Valid(shown) {
			t.Fatalf("shown: %s", shown)
		}
		for _, v := range s.Headers {
			if text := v.Text(); len(text) > 8 && !strings.Contains(string(shown), "[hidden]") {
				t.Errorf("%s shows a header of %s", shown, data)
			}
		}
		if bytes.Contains(shown, []byte("[hidden]")) {
			return
		}
		again, _, err := config.ReadEntry(key, shown, rules)
		if err != nil || again.Fingerprint() != s.Fingerprint() {
			t.Errorf("%s is shown as %s: %v", data, shown, err)
		}
	})
}
