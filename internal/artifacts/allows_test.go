package artifacts

import (
	"testing"

	"mcpbridge/internal/bridge"
)

// Another key of the same user, which may not call the tool, does not find what it returned.
func TestAllows(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20), Allows: func(c bridge.Caller, _, tool string) bool { return c.ID == "wide" || tool == "open" }})
	wide, narrow := bridge.Caller{ID: "wide", User: "ann"}, bridge.Caller{ID: "narrow", User: "ann"}
	refs := map[string]string{}
	for _, tool := range []string{"open", "secret"} {
		r, err := bridge.ParseResult([]byte(`{"structuredContent":{"a":1}}`))
		if err != nil {
			t.Fatal(err)
		}
		a := k.Keep(t.Context(), wide, &bridge.Tool{Handle: "s", Name: tool}, r, new(bridge.Timing))
		if a == nil {
			t.Fatal("the result is not kept")
		}
		refs[tool] = a.Ref
	}
	for _, tt := range []struct {
		caller bridge.Caller
		tool   string
		found  bool
		listed int
	}{
		{narrow, "open", true, 1},
		{narrow, "secret", false, 1},
		{wide, "secret", true, 2},
	} {
		if _, err := k.Open(t.Context(), tt.caller, refs[tt.tool]); (err == nil) != tt.found || err != nil && bridge.KindOf(err) != bridge.NotFound {
			t.Errorf("%s opens what %s returned: %v", tt.caller.ID, tt.tool, err)
		}
		if p, err := k.List(t.Context(), tt.caller, "", 10); err != nil || len(p.Artifacts) != tt.listed {
			t.Errorf("%s lists %v, %v", tt.caller.ID, p, err)
		}
	}
	if err := k.Delete(t.Context(), narrow, refs["secret"]); bridge.KindOf(err) != bridge.NotFound || err == nil {
		t.Errorf("the narrow key deletes: %v", err)
	}
	if err := k.Delete(t.Context(), wide, refs["secret"]); err != nil {
		t.Error(err)
	}
}
