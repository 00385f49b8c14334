package openapi

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOperationID(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := []struct{ handle, tool, want string }{
		{"github", "create_issue", "github__create_issue"},
		{"my-server", "firecrawl_search", "my-server__firecrawl_search"},
		{"a", "b__c", "a__b__c"},
		{"_a", "_b", "_a___b"},
		{"a__b", "c", "a__b__c_b6385df6"},
		{"a_", "b", "a___b_6d95a666"},
		{"a", "b.c", "a__b_c_e0e55c71"},
		{"a", "b/c", "a__b_c_80a19786"},
		{"a", "{id}", "a___id_91468b48"},
		{"a", "日本", "a_0f908364"},
		{"日", "本", "tool_5b731933"},
		{"a", long, ""},
		{"a", "b_0123abcd", ""},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		got := OperationID(test.handle, test.tool)
		if !idForm.MatchString(got) || seen[got] {
			t.Errorf("OperationID(%q, %q) = %q", test.handle, test.tool, got)
		}
		seen[got] = true
		if test.want != "" && got != test.want {
			t.Errorf("OperationID(%q, %q) = %q, want %q", test.handle, test.tool, got, test.want)
		}
	}
}

func TestToolID(t *testing.T) {
	long := strings.Repeat("x", 70)
	tests := []struct{ tool, want string }{
		{"firecrawl_search", "firecrawl_search"},
		{"a__b", "a__b"},
		{strings.Repeat("x", 64), strings.Repeat("x", 64)},
		{long, strings.Repeat("x", 55) + "_" + shortHash(long)},
		{long + "y", strings.Repeat("x", 55) + "_" + shortHash(long+"y")},
		{"a/b", "a_b_" + shortHash("a/b")},
		{"a.b", "a_b_" + shortHash("a.b")},
		{"", "tool_" + shortHash("")},
		// What another name could become is taken by nobody.
		{"a_b_" + shortHash("a/b"), "a_b_" + shortHash("a/b") + "_" + shortHash("a_b_"+shortHash("a/b"))},
	}
	seen := map[string]bool{}
	for _, test := range tests {
		got := ToolID(test.tool)
		if got != test.want || !idForm.MatchString(got) || seen[got] {
			t.Errorf("ToolID(%q) = %q, want %q", test.tool, got, test.want)
		}
		seen[got] = true
	}
}

func TestComponentPrefix(t *testing.T) {
	if got := componentPrefix("github", "create_issue"); got != "github.create_issue." {
		t.Errorf("componentPrefix = %q", got)
	}
	seen := map[string]bool{}
	for _, names := range [][2]string{{"a.b", "c"}, {"a", "b.c"}, {"a", "b/c"}, {"a_b", "c"}, {"a b", "c"}, {"ä", "ö"}, {"ö", "ä"}, {"a", ""}, {"a", strings.Repeat("x", 99)}, {"a", strings.Repeat("x", 98)}} {
		got := componentPrefix(names[0], names[1])
		if seen[got] || strings.Count(got, ".") != 2 || len(got) > 80 {
			t.Errorf("componentPrefix(%q) = %q", names, got)
		}
		seen[got] = true
	}
}

func TestSegment(t *testing.T) {
	for name, want := range map[string]string{
		"echo": "echo", "a/b": "a%2Fb", "{id}": "%7Bid%7D", "a b": "a%20b", "a?b#c%d": "a%3Fb%23c%25d", "ä": "%C3%A4", "a\nb": "a%0Ab",
	} {
		if got := segment(name); got != want {
			t.Errorf("segment(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestMCPO(t *testing.T) {
	long := strings.Repeat("x", 60)
	for tool, want := range map[string]string{
		"add": "tool_add_post", "get-env": "tool_get_env_post", "a/b é": "tool_a_b___post", "": "tool__post",
		long: "tool_" + long[:50] + "_" + shortHash(long), long[:54]: "tool_" + long[:54] + "_post",
	} {
		if got := mcpoID(tool); got != want || len(got) > maxID {
			t.Errorf("mcpoID(%q) = %q, want %q", tool, got, want)
		}
	}
}

func TestMCPODocuments(t *testing.T) {
	d := New(Options{MCPO: true})
	v := view(server("h", tool(t, "h", "get-env", props(`"a":{}`)), tool(t, "h", "get_env", props(`"a":{}`))))
	ids := func(doc map[string]any) map[string]string {
		got := map[string]string{}
		for path, item := range doc["paths"].(map[string]any) {
			got[path] = item.(map[string]any)["post"].(map[string]any)["operationId"].(string)
		}
		return got
	}
	want := map[string]string{"/get-env": "tool_get_env_post", "/get_env": longHash("h", "get_env")}
	if diff := cmp.Diff(want, ids(checkDocument(t, d.Handle(v, "h")))); diff != "" {
		t.Errorf("of the server (-want +got):\n%s", diff)
	}
	want = map[string]string{"/tools/h/get-env": "h__get-env", "/tools/h/get_env": "h__get_env"}
	if diff := cmp.Diff(want, ids(checkDocument(t, d.Whole(v)))); diff != "" {
		t.Errorf("of all (-want +got):\n%s", diff)
	}
}
