package routes

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAccept(t *testing.T) {
	tests := []struct {
		values []string
		want   ranges
	}{
		{nil, nil},
		{[]string{"*/*"}, nil},
		{[]string{"text/plain"}, ranges{{"text", "plain", 1000}}},
		{[]string{"a/b;q=0.5, c/d"}, ranges{{"c", "d", 1000}, {"a", "b", 500}}},
		{[]string{"*/*, a/*, a/b"}, ranges{{"a", "b", 1000}, {"a", "*", 1000}, {"*", "*", 1000}}},
		{[]string{"a/b", "c/d;q=1.0", "e/f;level=1;q=0.001"}, ranges{{"a", "b", 1000}, {"c", "d", 1000}, {"e", "f", 1}}},
		{[]string{`a/b;x="1,2;q=0", c/d`}, ranges{{"a", "b", 1000}, {"c", "d", 1000}}},
		{[]string{`a/b;x="1\",2", c/d`}, ranges{{"a", "b", 1000}, {"c", "d", 1000}}},
		{[]string{"a/b;q=-1, c/d;q=1.1, e/f;q=, g/h ; q=0"}, ranges{{"g", "h", 0}}},
		{[]string{"*/b, a/, /b, a"}, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, parseAccept(tt.values), cmp.AllowUnexported(mediaRange{})); diff != "" {
			t.Errorf("parseAccept(%q) (-want +got):\n%s", tt.values, diff)
		}
	}
	if got := len(parseAccept([]string{strings.Repeat("a/b,", 100000)})); got != maxRanges {
		t.Errorf("%d ranges of a long header count, want %d", got, maxRanges)
	}
}

// FuzzAccept: whatever the header, the ranges are in order, and their weights are weights.
func FuzzAccept(f *testing.F) {
	for _, s := range []string{"*/*", "a/b;q=0.5, c/d", `a/b;x="1\",2", c/d`, "a/b;q=NaN", ",;=/\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		rs := parseAccept([]string{header})
		if !slices.IsSortedFunc(rs, func(a, b mediaRange) int { return b.q - a.q }) {
			t.Errorf("%v is not in order", rs)
		}
		for _, r := range rs {
			if r.q < 0 || r.q > 1000 || r.typ == "" || r.sub == "" {
				t.Errorf("range %+v", r)
			}
			if got := rs.weight(r.typ, r.sub); got < 0 || got > 1000 {
				t.Errorf("weight = %d", got)
			}
		}
		if rs.weight("application", "json") > 0 && rs.check() != nil {
			t.Error("JSON is wanted and refused")
		}
		matches([]string{header}, `"a"`)
		preference([]string{header}, "wait")
	})
}
