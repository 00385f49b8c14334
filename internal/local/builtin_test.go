package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
)

// named is the rule of callers who may call the built-in tools.
var named = &bridge.Rule{Allow: []string{"*", "bridge/*"}}

var (
	ann = bridge.Caller{User: "ann", Rule: named}
	bob = bridge.Caller{User: "bob", Rule: named}
)

// builtin returns a bridge with the built-in tools over a store, and the reference of an artifact of ann's in it.
func builtin(t *testing.T, result string) (*bridge.Bridge, string) {
	t.Helper()
	k := artifacts.New(artifacts.Options{Store: artifacts.NewMemory(1 << 30)})
	r, err := bridge.ParseResult([]byte(result))
	if err != nil {
		t.Fatal(err)
	}
	kept := k.Keep(t.Context(), ann, &bridge.Tool{Handle: "demo", Name: "echo"}, r, &bridge.Timing{})
	return over(host(t, Options{Handles: []Handle{Builtin(k)}}), k), kept.Ref
}

// use calls a built-in tool and returns its structured content and its texts.
func use(t *testing.T, b *bridge.Bridge, c bridge.Caller, tool, args string) (structured string, texts []string, err error) {
	t.Helper()
	a, err := b.Invoke(t.Context(), &bridge.Call{Handle: "bridge", Tool: tool, Args: []byte(args), Caller: c})
	if err != nil {
		return "", nil, err
	}
	if a.Breach != "" || a.Artifact != nil {
		t.Errorf("%s(%s): breach %q, artifact %+v", tool, args, a.Breach, a.Artifact)
	}
	for block := range a.Result.Blocks() {
		text, _ := block.Text()
		texts = append(texts, text)
	}
	return string(a.Result.Structured), texts, nil
}

func TestGetArtifactField(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	b, ref := builtin(t, `{"structuredContent":{"title":"Über \"x\"","n":1.10,"long":"`+long+`","list":[{"a":1},{"a":2}]}}`)
	for args, want := range map[string]string{
		`"field":"/title"`:                             `"field":"/title","offset":0,"text":"Über \"x\""`,
		`"field":"/n"`:                                 `"field":"/n","offset":0,"text":"1.10"`,
		`"field":"/list/1"`:                            `"field":"/list/1","offset":0,"text":"{\"a\":2}"`,
		`"field":"/title","max_chars":4`:               `"field":"/title","offset":0,"text":"Über","next_offset":4`,
		`"field":"/title","max_chars":4,"offset":5`:    `"field":"/title","offset":5,"text":"\"x\""`,
		`"field":"/long"`:                              `"field":"/long","offset":0,"text":"` + long[:10_000] + `","next_offset":10000`,
		`"field":"/long","offset":1e4`:                 `"field":"/long","offset":10000,"text":"` + long[10_000:] + `"`,
		`"field":"/long","offset":4294967295`:          `"field":"/long","offset":4294967295,"text":""`,
		`"max_chars":8.0,"field":null`:                 `"field":"","offset":0,"text":"{\"title\"","next_offset":8`,
		`"field":"","offset":8,"max_chars":2`:          `"field":"","offset":8,"text":":\"","next_offset":10`,
		`"field":"/long","offset":8,"max_chars":3`:     `"field":"/long","offset":8,"text":"890","next_offset":11`,
		`"field":"/list","offset":0,"max_chars":20000`: `"field":"/list","offset":0,"text":"[{\"a\":1},{\"a\":2}]"`,
	} {
		got, texts, err := use(t, b, ann, "get_artifact_field", `{"ref":"`+ref+`",`+args+`}`)
		if want = `{"ref":"` + ref + `",` + want + `}`; err != nil || got != want {
			t.Errorf("%s: %v\ngot  %s\nwant %s", args, err, got, want)
			continue
		}
		var answer fieldAnswer
		if err := json.Unmarshal([]byte(got), &answer); err != nil {
			t.Fatal(err)
		}
		wantTexts := []string{answer.Text}
		if answer.Next != nil {
			wantTexts = append(wantTexts, fmt.Sprintf("[There is more: go on with offset %d.]", *answer.Next))
		}
		if diff := cmp.Diff(wantTexts, texts); diff != "" {
			t.Errorf("%s: texts (-want +got):\n%s", args, diff)
		}
	}
}

func TestSearchArtifactContent(t *testing.T) {
	b, ref := builtin(t, `{"structuredContent":{"a/b":["x Needle <y>"],"many":["`+strings.Repeat(`thread","`, 11)+`"]}}`)
	for query, want := range map[string]struct {
		structured string
		texts      []string
	}{
		"needle": {
			`{"ref":"` + ref + `","matches":[{"field":"/a~1b/0","offset":2,"excerpt":"x Needle <y>"}],"more":false}`,
			[]string{"/a~1b/0, from character 2: x Needle <y>"},
		},
		"nowhere": {`{"ref":"` + ref + `","matches":[],"more":false}`, []string{"[It is not found.]"}},
	} {
		got, texts, err := use(t, b, ann, "search_artifact_content", `{"ref":"`+ref+`","query":"`+query+`"}`)
		if diff := cmp.Diff(want.texts, texts); err != nil || got != want.structured || diff != "" {
			t.Errorf("%s: %v\ngot  %s\nwant %s\ntexts (-want +got):\n%s", query, err, got, want.structured, diff)
		}
	}
	got, texts, err := use(t, b, ann, "search_artifact_content", `{"ref":"`+ref+`","query":"THREAD"}`)
	if err != nil || strings.Count(got, `"excerpt"`) != 10 || !strings.HasSuffix(got, `"more":true}`) || !strings.HasSuffix(texts[0], "\n\n[There are more matches: search for a longer text.]") {
		t.Errorf("of eleven: %v, %s, %q", err, got, texts)
	}
}

// What the caller can mend is the tool's own failure, and says how.
func TestBuiltinFailures(t *testing.T) {
	var keys strings.Builder
	for i := range 25 {
		fmt.Fprintf(&keys, `,"k%d":0`, i)
	}
	b, ref := builtin(t, `{"structuredContent":{"o":{"first":1`+keys.String()+`},"l":[1,2,3],"s":"x"}}`)
	for _, tt := range []struct {
		c          bridge.Caller
		tool, args string
		says       []string
	}{
		{ann, "get_artifact_field", `"ref":"` + ref + `","field":"/o/second"`, []string{`only up to "/o"`, `Keys: ["first" "k0" "k1"`, "and 6 more."}},
		{ann, "get_artifact_field", `"ref":"` + ref + `","field":"/x"`, []string{`only up to ""`, `Keys: ["o" "l" "s"].`}},
		{ann, "get_artifact_field", `"ref":"` + ref + `","field":"/l/3"`, []string{`only up to "/l"`, "an array of 3 items"}},
		{ann, "get_artifact_field", `"ref":"` + ref + `","field":"/s/0"`, []string{`only up to "/s"`}},
		{ann, "get_artifact_field", `"ref":"` + ref + `","field":"o"`, []string{"begins with a slash"}},
		{ann, "get_artifact_field", `"ref":"mcp~none"`, []string{"no such artifact"}},
		{ann, "get_artifact_field", `"ref":"../../etc"`, []string{"no such artifact"}},
		{bob, "get_artifact_field", `"ref":"` + ref + `"`, []string{"no such artifact"}},
		{bob, "search_artifact_content", `"ref":"` + ref + `","query":"x"`, []string{"no such artifact"}},
	} {
		_, _, err := use(t, b, tt.c, tt.tool, `{`+tt.args+`}`)
		e, ok := errors.AsType[*bridge.Error](err)
		if !ok || e.Kind != bridge.ToolError {
			t.Errorf("%s(%s) by %s: %v, want a tool error", tt.tool, tt.args, tt.c.User, err)
			continue
		}
		for _, want := range tt.says {
			if !strings.Contains(e.Msg, want) {
				t.Errorf("%s(%s) by %s says %q, want %q in it", tt.tool, tt.args, tt.c.User, e.Msg, want)
			}
		}
	}
	for tool, bad := range map[string][]string{
		"get_artifact_field":      {`{}`, `{"ref":""}`, `{"ref":5}`, `{"ref":"a","offset":-1}`, `{"ref":"a","max_chars":0}`, `{"ref":"a","max_chars":100001}`, `{"ref":"a","offset":4294967296}`, `{"ref":"a","offset":1.5}`, `{"ref":"a","pointer":"/x"}`},
		"search_artifact_content": {`{}`, `{"ref":"a"}`, `{"ref":"a","query":""}`, `{"ref":"a","query":"x","limit":5}`},
	} {
		for _, args := range bad {
			if _, _, err := use(t, b, ann, tool, args); bridge.KindOf(err) != bridge.InvalidArguments {
				t.Errorf("%s(%s): %v", tool, args, err)
			}
		}
	}
}

// Nobody has the built-in tools whose rule does not name them.
func TestBuiltinIsOptIn(t *testing.T) {
	b, ref := builtin(t, `{"structuredContent":{}}`)
	for _, rule := range []*bridge.Rule{nil, {}, {Allow: []string{"*"}}, {Allow: []string{"*/*"}}, {Allow: []string{"bridge/*"}, Deny: []string{"*/get_*"}}} {
		c := bridge.Caller{User: "ann", Rule: rule}
		if _, _, err := use(t, b, c, "get_artifact_field", `{"ref":"`+ref+`"}`); bridge.KindOf(err) != bridge.NotFound {
			t.Errorf("%+v: %v", rule, err)
		}
	}
}

// broken is a store that is down.
type broken struct{}

func (broken) ReadText(context.Context, bridge.Caller, string, string, int, int) (string, int, error) {
	return "", 0, &bridge.Error{Kind: bridge.StoreUnavailable, Op: "test", Msg: "down"}
}

func (broken) SearchText(context.Context, bridge.Caller, string, string, func(string, int, string)) (bool, error) {
	return false, errors.New("odd")
}

// What the caller cannot mend fails the call.
func TestBuiltinStoreDown(t *testing.T) {
	b := over(host(t, Options{Handles: []Handle{Builtin(broken{})}}), artifacts.Discard{})
	if _, _, err := use(t, b, ann, "get_artifact_field", `{"ref":"a"}`); bridge.KindOf(err) != bridge.StoreUnavailable {
		t.Errorf("get_artifact_field: %v", err)
	}
	if _, _, err := use(t, b, ann, "search_artifact_content", `{"ref":"a","query":"x"}`); bridge.KindOf(err) != bridge.Internal {
		t.Errorf("search_artifact_content: %v", err)
	}
	// Arguments that nobody has checked.
	for _, tool := range Builtin(broken{}).Tools {
		if r, err := tool.Run(t.Context(), bridge.Request{Args: []byte(`{"ref":5}`)}); err == nil {
			t.Errorf("%s: %+v", tool.Name, r)
		}
	}
}
