package bridge

import "testing"

// What is itself a part of an artifact does not become another one.
func TestTransientResultsAreNotKept(t *testing.T) {
	for _, transient := range []bool{false, true} {
		w := newWorld()
		w.snapshot.Server("s").Tool("t").Target.Transient = transient
		a, err := w.Invoke(t.Context(), &Call{Handle: "s", Tool: "t"})
		if err != nil || (a.Artifact == nil) != transient {
			t.Errorf("transient %v: %+v, %v", transient, a, err)
		}
	}
}

// Two tools have the same hash only if both of their schemas are the same.
func TestHashSchemas(t *testing.T) {
	seen := map[string][2]string{}
	for _, s := range [][2]string{{`{}`, ``}, {``, `{}`}, {`{}`, `{}`}, {`{}{}`, ``}, {``, ``}} {
		h := HashSchemas([]byte(s[0]), []byte(s[1]))
		if other, ok := seen[h]; ok || len(h) != 64 || h != HashSchemas([]byte(s[0]), []byte(s[1])) {
			t.Errorf("%q has the hash %s, and so has %q", s, h, other)
		}
		seen[h] = s
	}
}
