package artifacts

import (
	"bytes"
	"strconv"
	"testing"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

var (
	ann  = bridge.Caller{ID: "k1", User: "ann", Tenant: "acme"}
	bob  = bridge.Caller{ID: "k2", User: "bob", Tenant: "acme"}
	tool = &bridge.Tool{Handle: "demo", Name: "echo"}
)

// result parses the result of a call. Its bytes lie in a larger buffer, as those of a connection do.
func result(t testing.TB, s string) *bridge.Result {
	t.Helper()
	frame := []byte(`{"id":1,"result":` + s + `}`)
	if err := raw.CheckAny(frame); err != nil {
		t.Fatalf("the test's own JSON: %v", err)
	}
	r, err := bridge.ParseResult(raw.Get(frame, "result"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// structured returns a result with this structured content.
func structured(t testing.TB, s string) *bridge.Result {
	t.Helper()
	return result(t, `{"content":[],"structuredContent":`+s+`}`)
}

// keep stores a result, which must succeed.
func keep(t testing.TB, k *Keeper, c bridge.Caller, r *bridge.Result) *bridge.Artifact {
	t.Helper()
	a := k.Keep(t.Context(), c, tool, r, &bridge.Timing{})
	if a == nil {
		t.Fatalf("the result was not kept: %+v", k.Stats())
	}
	return a
}

func open(t testing.TB, k *Keeper, c bridge.Caller, ref string) *Artifact {
	t.Helper()
	a, err := k.Open(t.Context(), c, ref)
	if err != nil {
		t.Fatalf("Open(%s): %v", ref, err)
	}
	return a
}

// at returns the JSON at a pointer in the data of an artifact.
func at(t testing.TB, a *Artifact, pointer string) string {
	t.Helper()
	v, err := a.Data(pointer)
	if err != nil {
		t.Fatalf("%s at %q: %v", a.Meta().Ref, pointer, err)
	}
	return jsonOf(t, v)
}

func jsonOf(t testing.TB, v *Value) string {
	t.Helper()
	var b bytes.Buffer
	n, err := v.WriteTo(&b)
	if err != nil {
		t.Fatalf("WriteTo at %q: %v", v.Pointer, err)
	}
	if n != v.Size() || int(n) != b.Len() {
		t.Fatalf("at %q: WriteTo = %d, Size = %d, but %d bytes were written", v.Pointer, n, v.Size(), b.Len())
	}
	return b.String()
}

func summary(t testing.TB, a *Artifact, pointer string) string {
	t.Helper()
	v, err := a.Data(pointer)
	if err != nil {
		t.Fatalf("%s at %q: %v", a.Meta().Ref, pointer, err)
	}
	var b bytes.Buffer
	if err := v.Summarize(&b); err != nil {
		t.Fatalf("Summarize at %q: %v", pointer, err)
	}
	return b.String()
}

// words returns a text of n characters.
func words(n int) string {
	for len(wordsMade) < n {
		var b []byte
		for i := 0; len(b) < max(n, 64<<10); i++ {
			b = append(strconv.AppendInt(append(b, "word"...), int64(i), 10), ' ')
		}
		wordsMade = string(b)
	}
	return wordsMade[:n]
}

var wordsMade string

// kindOf returns the kind of an error, or "" for none.
func kindOf(err error) bridge.Kind {
	if err == nil {
		return ""
	}
	return bridge.KindOf(err)
}
