package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"mcpbridge/internal/bridge"
)

// offering returns a server with a tool, and what entries say beside it, each as its server could list it.
func offering(handle string, uris, templates, prompts []string) *bridge.Server {
	s := newServer(handle, newTool(handle, "t", ""))
	s.Target = s.Tool("t").Target
	for _, e := range uris {
		s.Resources = append(s.Resources, &bridge.Resource{URI: keyOf(e, "uri"), Raw: json.RawMessage(e)})
	}
	for _, e := range templates {
		s.Templates = append(s.Templates, &bridge.Resource{URI: keyOf(e, "uriTemplate"), Raw: json.RawMessage(e)})
	}
	for _, e := range prompts {
		s.Prompts = append(s.Prompts, &bridge.Prompt{Name: keyOf(e, "name"), Raw: json.RawMessage(e)})
	}
	return s
}

func keyOf(entry, member string) string {
	var m map[string]json.RawMessage
	var key string
	if json.Unmarshal([]byte(entry), &m) != nil || json.Unmarshal(m[member], &key) != nil {
		panic(entry)
	}
	return key
}

// twoServers have the same resource and prompt, and some of their own.
func twoServers() []*bridge.Server {
	return []*bridge.Server{
		offering("one", []string{`{"uri":"x:same","name":"n"}`, `{"uri":"x:1","name":"n"}`}, []string{`{"uriTemplate":"one:{id}","name":"n"}`}, []string{`{"name":"p"}`, `{"name":"say it/loud"}`}),
		offering("two__", []string{`{"uri":"x:same","name":"n"}`}, []string{`{"uriTemplate":"two:{id}","name":"n"}`}, []string{`{"name":"p"}`}),
	}
}

func offers(t *testing.T, cs *mcp.ClientSession) (all []string) {
	t.Helper()
	for r, err := range cs.Resources(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.URI)
	}
	for r, err := range cs.ResourceTemplates(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.URITemplate)
	}
	for p, err := range cs.Prompts(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Name)
	}
	return all
}

// No name or URI of two servers is the same, whatever theirs are, on pages of any size.
func TestOffersListed(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		for _, page := range []int{0, 1, 2} {
			f := newFixture(t, twoServers()...)
			f.opts.PageTools = page
			got := offers(t, f.serve().connect(version, nil))
			want := []string{
				"bridge:one:x:same", "bridge:one:x:1", "bridge:two__:x:same", "bridge:one:one:{id}", "bridge:two__:two:{id}",
				"one__p", got[6], got[7],
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("pages of %d: -want +got\n%s", page, diff)
			}
			if !strings.HasPrefix(got[6], "one__say_it_loud") || got[7] == "two____p" || len(slices.Compact(slices.Sorted(slices.Values(got)))) != 8 {
				t.Errorf("names = %q", got)
			}
		}
	})
}

func TestOfferEntries(t *testing.T) {
	for _, tt := range []struct {
		kind        kind
		entry, want string
	}{
		{
			resources, `{ "uri":"x:1","name":"n","title":"T","size":10,"annotations":{"audience":["user"],"priority":1.0,"own":1},"_meta":{"z":1.10},"future":1e400}`,
			`{"uri":"bridge:s+%C3%BC%3A:x:1","name":"n","title":"T","size":10,"annotations":{"audience":["user"],"priority":1.0,"own":1},"_meta":{"z":1.10},"future":1e400}`,
		},
		{
			resources, `{"uri":"x:1","name":5,"title":[],"description":{},"mimeType":1,"size":1e3,"annotations":{"audience":"user"},"_meta":5,"icons":5}`,
			`{"uri":"bridge:s+%C3%BC%3A:x:1","name":"x:1"}`,
		},
		{templates, `{"uriTemplate":"x:{a}","name":"n","annotations":[]}`, `{"uriTemplate":"bridge:s+%C3%BC%3A:x:{a}","name":"n"}`},
		{
			prompts, `{"name":"p","arguments":[{"name":"a","required":true,"own":1.10},{"name":5},{"name":"b","required":"yes"},7,{"name":"c","description":5},{"name":"d"}]}`,
			`{"name":"` + "NAME" + `","arguments":[{"name":"a","required":true,"own":1.10},{"name":"d"}]}`,
		},
		{prompts, `{"name":"p","arguments":{}}`, `{"name":"NAME"}`},
	} {
		member := map[kind]string{resources: "uri", templates: "uriTemplate", prompts: "name"}[tt.kind]
		got := string(tt.kind.appendEntry(nil, "s ü:", offered{keyOf(tt.entry, member), json.RawMessage(tt.entry)}))
		if tt.kind == prompts {
			got = strings.Replace(got, keyOf(got, "name"), "NAME", 1)
		}
		if got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

// What is read, got and completed is the server's that its name says, in its own bytes.
func TestOffersAsked(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, twoServers()...)
		f.ref = "mcp~x"
		var sent string
		f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
			sent = r.Tool.Handle + " " + string(r.Tool.Params) + string(r.Args)
			return r.Method.Parse([]byte(map[bridge.Method]string{
				bridge.ReadResource: `{"contents":[{"uri":"x:same","text":"a"}],"cacheScope":"public"}`,
				bridge.GetPrompt:    `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`,
				bridge.Complete:     `{"completion":{"values":["v"]}}`,
			}[r.Method]))
		}
		cs := f.serve().connect(version, nil)
		names := offers(t, cs)
		for uri, want := range map[string]string{
			"bridge:one:x:same":      `one "uri":"x:same"`,
			"bridge:two__:x:same":    `two__ "uri":"x:same"`,
			"bridge:two__:two:7/%20": `two__ "uri":"two:7/%20"`,
			// As servers call them in their results, where it can be only one's.
			"x:1":   `one "uri":"x:1"`,
			"two:9": `two__ "uri":"two:9"`,
		} {
			res, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || res.Contents[0].Text != "a" || sent != want {
				t.Errorf("%s: %v, sent %s, want %s", uri, err, sent, want)
				continue
			}
			if res.Meta["artifact_ref"] != "«artifact:mcp~x»" || version >= modern && res.CacheScope != "private" {
				t.Errorf("%s: %+v", uri, res)
			}
		}
		for _, uri := range []string{"x:same", "x:none", "bridge:none:x:1", "bridge:", "bridge:%zz:x"} {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeInvalidParams {
				t.Errorf("%s: %v", uri, err)
			}
		}
		for name, want := range map[string]string{
			"one__p": `one "name":"p","arguments":{"a":"<b>"}`,
			names[6]: `one "name":"say it/loud","arguments":{"a":"<b>"}`,
			names[7]: `two__ "name":"p","arguments":{"a":"<b>"}`,
		} {
			res, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"a": "<b>"}})
			if sent = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(sent); err != nil || len(res.Messages) != 1 || sent != want {
				t.Errorf("%s: %v, sent %s, want %s", name, err, sent, want)
			}
		}
		if _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__p"}); err != nil || sent != `one "name":"p","arguments":{}` {
			t.Errorf("without arguments: %v, sent %s", err, sent)
		}
		if _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err == nil {
			t.Error("a prompt was got by its server's name")
		}
		arg := mcp.CompleteParamsArgument{Name: "a", Value: "v"}
		for ref, want := range map[*mcp.CompleteReference]string{
			{Type: "ref/prompt", Name: "one__p"}:                 `one "argument":{"name":"a","value":"v"},"ref":{"type":"ref/prompt","name":"p"}`,
			{Type: "ref/resource", URI: "bridge:two__:two:{id}"}: `two__ "argument":{"name":"a","value":"v"},"ref":{"type":"ref/resource","uri":"two:{id}"}`,
		} {
			res, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: ref, Argument: arg})
			if err != nil || !slices.Equal(res.Completion.Values, []string{"v"}) || sent != want {
				t.Errorf("%+v: %v, sent %s, want %s", ref, err, sent, want)
			}
		}
		if _, err := cs.Complete(t.Context(), &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "p"}, Argument: arg}); err == nil {
			t.Error("a prompt was completed by its server's name")
		}
		if log := f.logged(); strings.Contains(log, "x:same") || !strings.Contains(log, `"method":"resources/read"`) || !strings.Contains(log, `"prompt":"say it/loud"`) {
			t.Errorf("the log is %s", log)
		}
	})
}

// What goes wrong is an error of the protocol, the server's own where it answered one.
func TestOffersFail(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, twoServers()...)
		var fails error
		f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { return nil, fails }
		cs := f.serve().connect(version, nil)
		notFound := int64(-32002)
		if version >= modern {
			notFound = -32602
		}
		for _, tt := range []struct {
			err  error
			code int64
			says string
		}{
			{&bridge.Error{Kind: bridge.NotFound, Msg: "outer", Members: map[string]any{"upstream_code": int64(-32002), "upstream_message": "gone"}}, notFound, "gone"},
			{&bridge.Error{Kind: bridge.UpstreamError, Msg: "outer", Members: map[string]any{"upstream_code": int64(-32050), "upstream_message": "broke"}}, -32050, "broke"},
			{&bridge.Error{Kind: bridge.InvalidArguments, Msg: "wrong"}, -32602, "wrong"},
			{&bridge.Error{Kind: bridge.Unavailable, Msg: "down"}, -32603, "down"},
			{&bridge.Error{Kind: bridge.Internal}, -32603, "fault"},
			{errors.New("secret"), -32603, "ended"},
		} {
			fails = tt.err
			_, read := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "bridge:one:x:1"})
			_, got := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "one__p"})
			for _, err := range []error{read, got} {
				e, ok := errors.AsType[*jsonrpc.Error](err)
				if !ok || e.Code != tt.code || !strings.Contains(e.Message, tt.says) || strings.Contains(e.Message+string(e.Data), "secret") {
					t.Errorf("%v: %v, want %d that says %q", tt.err, err, tt.code, tt.says)
				}
			}
		}
	})
}

// The caller's view and the handles that it asks for bound what is listed and asked.
func TestOffersNarrowed(t *testing.T) {
	f := newFixture(t, twoServers()...)
	f.allows = func(_ bridge.Caller, _, name string) bool { return name != "x:1" && name != "say it/loud" }
	f.client = func(_ context.Context, r bridge.Request) (*bridge.Result, error) {
		return r.Method.Parse([]byte(`{"contents":[]}`))
	}
	f.serve()
	f.url += "?handles=one"
	cs := f.connect("2025-11-25", nil)
	if diff := cmp.Diff([]string{"bridge:one:x:same", "bridge:one:one:{id}", "one__p"}, offers(t, cs)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for uri, want := range map[string]bool{"bridge:one:x:same": true, "x:same": true, "bridge:two__:x:same": false, "bridge:one:x:1": false, "two:1": false} {
		if _, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); (err == nil) != want {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// Each list's change is told to those who have listed it.
func TestOffersChange(t *testing.T) {
	onEach(t, func(t *testing.T, version string) {
		f := newFixture(t, twoServers()...).serve()
		heard := make(chan string, 10)
		cs := f.connect(version, &mcp.ClientOptions{
			ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) { heard <- "tools" },
			ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { heard <- "resources" },
			PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) { heard <- "prompts" },
		})
		f.watched(1)
		names := offers(t, cs)
		servers := f.snap.Load().Servers
		next := servers[0]
		for _, change := range []struct {
			of   string
			make func()
		}{
			{"prompts", func() { next.Prompts = next.Prompts[:1] }},
			{"resources", func() { next.Resources = next.Resources[:1] }},
			{"resources", func() { next.Templates = nil }},
		} {
			next = next.Copy()
			change.make()
			f.set(true, next, servers[1])
			if got := <-heard; got != change.of {
				t.Errorf("heard of %s, want %s", got, change.of)
			}
		}
		select {
		case got := <-heard:
			t.Errorf("also heard of %s", got)
		default:
		}
		if got := fmt.Sprint(offers(t, cs)); got != "[bridge:one:x:same bridge:two__:x:same bridge:two__:two:{id} one__p "+names[len(names)-1]+"]" {
			t.Errorf("the lists are %s", got)
		}
	})
}

// Whatever the handle and the URI, the one that is published leads back to both.
func FuzzURIs(f *testing.F) {
	f.Add("files", "file:///a b%20")
	f.Add("s ü:", "x:{id}")
	f.Add("", ":")
	f.Fuzz(func(t *testing.T, handle, uri string) {
		h, u, ok := splitURI(publicURI(handle, uri))
		if !ok || h != handle || u != uri {
			t.Errorf("%q of %q became %q of %q", uri, handle, u, h)
		}
	})
}
