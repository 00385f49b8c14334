package artifacts

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/raw"
)

const (
	refMember   = "artifact_ref" // the member that makes an object an artifact
	maxIterands = 10_000         // of a list that get references of their own
)

// A foreign reference was found on a result: another process that keeps artifacts made it.
type foreign struct {
	ref  string
	typ  string
	doc  []byte // the artifact's JSON; nil if nothing depends on it
	text bool   // doc is the text of a block, and becomes the data
}

// recognize finds a reference at the root of a result: of its structured content, then of the JSON
// of its only text block, then in its _meta. It returns nil where there is
// none, or where what has it does not fit the type that it claims.
func (k *Keeper) recognize(r *bridge.Result) *foreign {
	// Its end is looked for, since that begins with a byte that texts seldom have.
	if r.IsError || !bytes.Contains(r.Raw, []byte(refMember[len("artifact"):])) {
		return nil
	}
	if ref := raw.Get(r.Structured, refMember); ref != nil {
		return k.fits(ref, func() []byte { return r.Structured })
	}
	if doc := textDocument(r); doc != nil {
		if ref := raw.Get(doc, refMember); ref != nil {
			f := k.fits(ref, func() []byte { return doc })
			if f != nil {
				f.doc, f.text = doc, true
			}
			return f
		}
	}
	if ref := raw.Get(r.Meta, refMember); ref != nil {
		return k.fits(ref, func() []byte { return bytes.Join(r.Data(), nil) })
	}
	return nil
}

// textDocument returns the JSON object that a result's only block has as its text, or nil.
func textDocument(r *bridge.Result) []byte {
	if r.Structured != nil {
		return nil
	}
	var text string
	n := 0
	for b := range r.Blocks() {
		if n++; n > 1 || b.Type != "text" || !mayBeDocument(raw.Get(b.Raw, "text")) {
			return nil
		}
		text, _ = b.Text()
	}
	doc := []byte(text)
	if raw.KindOf(doc) != raw.Object || raw.CheckAny(doc) != nil {
		return nil
	}
	return doc
}

// mayBeDocument reports whether a string can hold a JSON object, by its beginning: it may be long.
func mayBeDocument(quoted []byte) bool {
	if raw.KindOf(quoted) != raw.String {
		return false
	}
	in := quoted[1 : len(quoted)-1]
	head := strings.TrimLeft(unquoteInner(in[:charsEnd(in, 0, 64)]), " \t\r\n")
	return head == "" || head[0] == '{'
}

// fits returns what the quoted reference says of the document, or nil if it is no reference, or the
// document is not of its type.
func (k *Keeper) fits(quoted []byte, doc func() []byte) *foreign {
	if raw.KindOf(quoted) != raw.String {
		return nil
	}
	name, ok := parseRef(raw.Unquote(quoted))
	if !ok || name.path != nil { // a nested one could be mistaken for a part of its parent
		return nil
	}
	f := &foreign{ref: name.root, typ: k.typeOf(name.alias())}
	if check := k.types[f.typ]; check != nil {
		f.doc = doc()
		if check(f.doc) != nil {
			return nil
		}
	}
	return f
}

// typeOf returns the nearest registered ancestor of an alias: the alias itself,
// or what is left of it without its last words.
func (k *Keeper) typeOf(alias string) string {
	for {
		if _, ok := k.types[alias]; ok {
			return alias
		}
		i := strings.LastIndexByte(alias, ':')
		if i < 0 {
			return mcpType
		}
		alias = alias[:i]
	}
}

// adopt gives a record its foreign reference, and returns the records of the
// list's items that have references of their own.
func (k *Keeper) adopt(rec *record, f *foreign) []*record {
	if f == nil {
		return nil
	}
	rec.Ref, rec.Type, rec.Foreign, rec.Nonce = f.ref, f.typ, true, nonce()
	rec.Digest = digest(rec.body[rec.From:rec.To])
	if f.typ != listType || rec.Wraps {
		return nil
	}
	var parts []*record
	data := rec.body[rec.From:rec.To]
	seen := map[string]bool{rec.Ref: true}
	for _, item := range raw.Elements(raw.Get(data, iterandsMember)) {
		g := k.fits(raw.Get(item, refMember), func() []byte { return item })
		if g == nil || seen[g.ref] {
			continue
		}
		seen[g.ref] = true
		p := *rec
		p.Ref, p.Type, p.Whole, p.Digest = g.ref, g.typ, rec.Ref, digest(item)
		p.From = rec.From + cap(data) - cap(item)
		p.To = p.From + len(item)
		p.Blocks, p.body, p.idx = -1, nil, nil
		if parts = append(parts, &p); len(parts) == maxIterands {
			break
		}
	}
	return parts
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
