package publish

import (
	"bytes"
	"testing"

	"mcpbridge/internal/mcptest"
	"mcpbridge/internal/raw"
)

// However a result looks, nothing of it is lost by what is added to its _meta.
func FuzzResult(f *testing.F) {
	for _, s := range []string{
		`{}`, `{ }`, `{"content":[]}`, `{"_meta":null}`, `{"_meta":{}}`, `{"_meta":{ "a" : 1 , "artifact_ref":"x"} ,"b":[1.0]}`, `{"_meta":{"artifact_ref":1}}`,
		`{"structuredContent":` + mcptest.ExactNumbers + `,"_meta":` + mcptest.ExactMeta + `}`, `{"\u005fmeta":{"a":1},"a":"}"}`, `{"_meta":[],"_meta2":{}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if raw.Check(b, 100) != nil { // which refuses keys that are there twice
			return
		}
		b = bytes.Clone(bytes.TrimSpace(b))
		r := &result{raw: b, ref: "mcp~abc", modern: true, server: "x"}
		out, err := r.whole()
		if err != nil || raw.Check(out, 100) != nil {
			t.Fatalf("%s became %s: %v", b, out, err)
		}
		for m := range raw.Members(b) {
			got := raw.Get(out, m.Name())
			if m.Is("_meta") && raw.KindOf(m.Val) == raw.Object {
				for n := range raw.Members(m.Val) {
					if v := raw.Get(got, n.Name()); !n.Is(refKey) && !n.Is(serverKey) && !bytes.Equal(v, n.Val) {
						t.Errorf("_meta's %s became %s", n.Val, v)
					}
				}
			} else if !m.Is("_meta") && !bytes.Equal(got, m.Val) {
				t.Errorf("%s became %s", m.Val, got)
			}
		}
		if ref := raw.GetString(raw.Get(out, "_meta"), refKey); ref != "«artifact:mcp~abc»" {
			t.Errorf("%s has the reference %q", out, ref)
		}
		if raw.Get(b, "resultType") == nil && raw.GetString(out, "resultType") != "complete" {
			t.Errorf("%s is not complete", out)
		}
	})
}

// Whatever a schema is, what is published of it says that arguments are an object.
func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{}`, `true`, `{ "type":"string" }`, `{"a":1,"type":["object"]}`, `{"type":"object"}`, `{"type":"object","a":{"type":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if raw.CheckAny(b) != nil || raw.KindOf(b) == raw.Object && raw.Check(b, 100) != nil {
			return
		}
		out := asObject(bytes.Clone(b))
		if raw.CheckAny(out) != nil || raw.GetString(out, "type") != "object" {
			t.Fatalf("%s became %s", b, out)
		}
		for m := range raw.Members(b) {
			if got := raw.Get(out, m.Name()); !m.Is("type") && !bytes.Equal(got, m.Val) {
				t.Errorf("%s: %s became %s", b, m.Val, got)
			}
		}
	})
}
