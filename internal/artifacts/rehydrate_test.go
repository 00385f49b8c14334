package artifacts

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"mcpbridge/internal/bridge"
)

// inText returns a result whose only block has the JSON as its text.
func inText(t testing.TB, doc string) *bridge.Result {
	t.Helper()
	r, err := bridge.ParseResult([]byte(`{"content":[{"type":"text","text":` + quote(doc) + `}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func dataOf(r *bridge.Result) string { return string(bytes.Join(r.Data(), nil)) }

func TestForeignReferencesAreKept(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store, Types: map[string]func([]byte) error{
			"report": func(doc []byte) error {
				if !bytes.Contains(doc, []byte(`"total"`)) {
					return errors.New("no total")
				}
				return nil
			},
		}})
		for i, tt := range []struct {
			alias, members string
			typ            string // "" if it gets a reference of ours
		}{
			{"link", `"url":"u","title":"t"`, "link"},
			{"link:page", `"url":"u"`, "link:page"},
			{"link:cite", `"title":"t","authors":["a"],"year":2020,"journal":null,"doi":"d","abstract":"x"`, "link:cite"},
			{"link:cite:pubmed", `"title":"t","pmid":7`, "link:cite"},
			{"link:video:short", `"url":"u"`, "link"},
			{"code", `"text":"x"`, "code"},
			{"person:author", `"name":"x"`, "person"},
			{"report:daily", `"total":1`, "report"},
			{"unknown:kind", `"x":1`, "mcp"},
			{"mcp", `"x":1`, "mcp"},
			{"list", `"iterands":[]`, "list"},
			// What does not fit its type.
			{"link", `"url":5`, ""},
			{"link", `"x":5`, ""},
			{"link:cite", `"title":"t","year":true`, ""},
			{"report", `"x":1`, ""},
			{"list", `"iterands":{}`, ""},
			// What is no reference.
			{"LINK", `"url":"u"`, ""},
			{"link/x", `"url":"u"`, ""},
			{"", `"url":"u"`, ""},
		} {
			foreign := fmt.Sprintf("%s~%s%d", tt.alias, mint()[4:], i)
			doc := fmt.Sprintf(`{"artifact_ref":"«artifact:%s»",%s}`, foreign, tt.members)
			for where, r := range map[string]*bridge.Result{"structured": structured(t, doc), "text": inText(t, doc)} {
				was := dataOf(r)
				kept := keep(t, k, ann, r)
				if tt.typ == "" {
					if kept.Type != "mcp" || kept.Ref == foreign || dataOf(r) != was {
						t.Errorf("%s in %s is %+v with data %s", foreign, where, kept, dataOf(r))
					}
					continue
				}
				if kept.Ref != foreign || kept.Type != tt.typ || dataOf(r) != doc {
					t.Errorf("%s in %s is %+v with data %s", foreign, where, kept, dataOf(r))
				}
				a := open(t, k, ann, foreign)
				if got := at(t, a, ""); got != doc || a.Meta().Type != tt.typ {
					t.Errorf("%s in %s is a %s, %s", foreign, where, a.Meta().Type, got)
				}
				if _, err := k.Open(t.Context(), bob, foreign); kindOf(err) != bridge.NotFound {
					t.Errorf("another caller opens %s: %v", foreign, err)
				}
			}
		}
	})
}

func TestForeignReferenceBehindWhiteSpace(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	for _, space := range []string{"", " ", "\\n\\t", strings.Repeat(" ", 100)} {
		r := result(t, `{"content":[{"type":"text","text":"`+strings.ReplaceAll(space, `\\`, `\`)+`{\"artifact_ref\":\"link~x\",\"url\":\"u\"}"}]}`)
		if kept := keep(t, k, ann, r); kept.Ref != "link~x" {
			t.Errorf("behind %q it is %+v", space, kept)
		}
	}
}

func TestForeignReferenceInMeta(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		inner, link := mint(), "link~"+mint()[4:]
		r := result(t, `{"content":[{"type":"text","text":"hello"}],"_meta":{"artifact_ref":"`+inner+`"}}`)
		if kept := keep(t, k, ann, r); kept.Ref != inner || kept.Type != "mcp" {
			t.Errorf("it is %+v", kept)
		}
		if got := at(t, open(t, k, ann, inner), "/content/0/text"); got != `"hello"` {
			t.Errorf("its text is %s", got)
		}
		if kept := keep(t, k, ann, result(t, `{"structuredContent":{"url":"u"},"_meta":{"artifact_ref":"`+link+`"}}`)); kept.Ref != link || kept.Type != "link" {
			t.Errorf("it is %+v", kept)
		}
		if kept := keep(t, k, ann, result(t, `{"content":[],"_meta":{"artifact_ref":"`+link+`2"}}`)); kept.Type != "mcp" {
			t.Errorf("what is no link is %+v", kept)
		}
	})
}

func TestOnlyTheRootIsRehydrated(t *testing.T) {
	k := New(Options{Store: NewMemory(1 << 20)})
	for _, r := range []*bridge.Result{
		structured(t, `{"a":{"artifact_ref":"link~x","url":"u"}}`),
		structured(t, `[{"artifact_ref":"link~x","url":"u"}]`),
		structured(t, `{"artifact_ref":7}`),
		structured(t, `{"artifact_ref":"mcp~x.1"}`),
		inText(t, `[{"artifact_ref":"link~x"}]`),
		inText(t, `{"artifact_ref":"link~x"`),
		inText(t, `see artifact_ref`),
		inText(t, strings.Repeat(" ", 100)+`artifact_ref`),
		result(t, `{"content":[{"type":"text","text":7,"artifact_ref":1}]}`),
		result(t, `{"content":[{"type":"text","text":"{\"artifact_ref\":\"mcp~x\"}"},{"type":"text","text":"more"}]}`),
		result(t, `{"content":[{"type":"resource","resource":{"uri":"u","text":"{\"artifact_ref\":\"mcp~x\"}"}}]}`),
		result(t, `{"isError":true,"structuredContent":{"artifact_ref":"mcp~x"}}`),
		result(t, `{"artifact_ref":"mcp~x","content":[]}`),
	} {
		if kept := keep(t, k, ann, r); len(kept.Ref) != 30 || kept.Type != "mcp" {
			t.Errorf("%s is %+v", r.Raw, kept)
		}
	}
}

func TestForeignReferencesThatCollide(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		ours := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
		foreign := "link~" + mint()[4:]
		doc := `{"artifact_ref":"` + foreign + `","url":"u"}`
		first := keep(t, k, ann, structured(t, doc))

		// One that we minted is never replaced.
		if kept := keep(t, k, ann, structured(t, `{"artifact_ref":"`+ours+`","evil":1}`)); kept.Ref == ours || len(kept.Ref) != 30 {
			t.Errorf("it is kept as %s", kept.Ref)
		}
		if got := at(t, open(t, k, ann, ours), ""); got != `{"a":1}` {
			t.Errorf("%s is now %s", ours, got)
		}
		// The same again is the same.
		again := keep(t, k, ann, structured(t, doc))
		if again.Ref != foreign || !again.Expires.Equal(first.Expires) {
			t.Errorf("the same again is %+v, not %+v", again, first)
		}
		if got := at(t, open(t, k, ann, foreign), "/url"); got != `"u"` {
			t.Errorf("/url = %s", got)
		}
		// Others under a held reference get one of ours, and the data that they came with.
		other := inText(t, `{"artifact_ref":"`+foreign+`","url":"v"}`)
		was := dataOf(other)
		kept := keep(t, k, ann, other)
		if kept.Ref == foreign || kept.Type != "mcp" || dataOf(other) != was || at(t, open(t, k, ann, kept.Ref), "") != was {
			t.Errorf("other data is %+v, %s", kept, dataOf(other))
		}
		if got := at(t, open(t, k, ann, foreign), "/url"); got != `"u"` {
			t.Errorf("/url = %s", got)
		}
		// Another caller holds its own under the same reference.
		if kept := keep(t, k, bob, structured(t, `{"artifact_ref":"`+foreign+`","url":"w"}`)); kept.Ref != foreign {
			t.Errorf("another caller's is %+v", kept)
		}
		if got, of := at(t, open(t, k, ann, foreign), "/url"), at(t, open(t, k, bob, foreign), "/url"); got != `"u"` || of != `"w"` {
			t.Errorf("/url = %s and %s", got, of)
		}
		if a, b := open(t, k, ann, foreign).ETag("data"), open(t, k, bob, foreign).ETag("data"); a == b {
			t.Error("both have the same tag")
		}
	})
}

func TestListsHaveAddressableItems(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store})
		id := mint()[4:]
		item := func(n int, members string) string {
			return fmt.Sprintf(`{"artifact_ref":"link:page~%s%d",%s}`, id, n, members)
		}
		items := []string{
			item(1, `"url":"u1","body":{"k":"`+words(3000)+`"}`), item(2, `"url":"u2"`), item(3, `"url":3`), `7`, `{"url":"u"}`, item(2, `"url":"twice"`),
			`{"artifact_ref":"list~` + id + `0","iterands":[]}`, // the list's own
		}
		doc := ` { "artifact_ref" : "list~` + id + `0" , "iterands" : [ ` + strings.Join(items, " , ") + ` ] }`
		for where, r := range map[string]*bridge.Result{"text": inText(t, doc), "structured": structured(t, doc)} {
			c := bridge.Caller{User: where + id}
			kept := keep(t, k, c, r)
			if kept.Ref != "list~"+id+"0" || kept.Type != "list" {
				t.Fatalf("the list in %s is %+v", where, kept)
			}
			if got := at(t, open(t, k, c, kept.Ref), "/iterands/1/url"); got != `"u2"` {
				t.Errorf("the second item in %s is %s", where, got)
			}
			for i := range 2 {
				a := open(t, k, c, fmt.Sprintf("«artifact:link:page~%s%d»", id, i+1))
				if m := a.Meta(); m.Type != "link:page" || m.Parent != kept.Ref || m.Size != int64(len(items[i])) {
					t.Errorf("the %d. item in %s is %+v", i, where, m)
				}
				if got := at(t, a, ""); got != items[i] {
					t.Errorf("the %d. item in %s is %s, want %s", i, where, got, items[i])
				}
			}
			nested := open(t, k, c, "link:page~"+id+"1.1")
			if got := at(t, nested, "/k"); got != `"`+words(3000)+`"` || nested.Meta().Parent != "link:page~"+id+"1" {
				t.Errorf("nested in an item in %s: %.100s, %+v", where, got, nested.Meta())
			}
			if got, want := summary(t, open(t, k, c, "link:page~"+id+"1"), "/body"), summary(t, nested, ""); got != want {
				t.Errorf("its summary is %s, but %s", got, want)
			}
			for _, ref := range []string{"link:page~" + id + "2.1", "link:page~" + id + "3"} {
				if _, err := k.Open(t.Context(), c, ref); kindOf(err) != bridge.NotFound {
					t.Errorf("%s in %s: %v", ref, where, err)
				}
			}
			p, err := k.List(t.Context(), c, "", 10)
			if err != nil || len(p.Artifacts) != 1 {
				t.Errorf("the list of artifacts has %d, %v", len(p.Artifacts), err)
			}
			if err := k.Delete(t.Context(), c, "link:page~"+id+"2"); err != nil {
				t.Error(err)
			}
			if got := at(t, open(t, k, c, kept.Ref), "/iterands/1/url"); got != `"u2"` {
				t.Errorf("after its deletion the second item in %s is %s", where, got)
			}
			if err := k.Delete(t.Context(), c, kept.Ref); err != nil {
				t.Fatal(err)
			}
			if _, err := k.Open(t.Context(), c, "link:page~"+id+"1"); kindOf(err) != bridge.NotFound {
				if err == nil { // its record may be there still, but not its bytes
					_, err = open(t, k, c, "link:page~"+id+"1").Data("/url")
				}
				if kindOf(err) != bridge.NotFound {
					t.Errorf("an item of a deleted list: %v", err)
				}
			}
		}
	})
}

// One bridge calls another: what the inner one kept under its reference, the outer one keeps under the same.
func TestReferencesTravelBetweenKeepers(t *testing.T) {
	inner := New(Options{Store: NewMemory(1 << 20)})
	outer := New(Options{Store: NewMemory(1 << 20)})
	doc := `{"rows":[{"k":"` + words(3000) + `"}],"n":1.10}`
	kept := keep(t, inner, bob, structured(t, doc))
	published := result(t, `{"content":[],"structuredContent":`+doc+`,"_meta":{"artifact_ref":"`+kept.Ref+`"}}`)
	there := keep(t, outer, ann, published)
	if there.Ref != kept.Ref {
		t.Fatalf("the outer one has it as %s, the inner one as %s", there.Ref, kept.Ref)
	}
	for _, ref := range []string{kept.Ref, kept.Ref + ".1"} {
		a, b := at(t, open(t, inner, bob, ref), ""), at(t, open(t, outer, ann, ref), "")
		if a != b {
			t.Errorf("%s is %.100s and %.100s", ref, a, b)
		}
	}
}

func TestStoreDownWithForeignReference(t *testing.T) {
	k := New(Options{Store: NewMemory(0)})
	doc := `{"artifact_ref":"link~x","url":"u"}`
	r := inText(t, doc)
	if a := k.Keep(t.Context(), ann, tool, r, &bridge.Timing{}); a != nil || dataOf(r) != doc {
		t.Errorf("it is %+v with data %s", a, dataOf(r))
	}
}
