package mcptest

import (
	"strings"
	"testing"
)

func TestOffers(t *testing.T) {
	c := start(t, Offers)
	c.initialize()
	for _, tt := range []struct{ method, params, want string }{
		{"resources/list", `{}`, `{"result":{"resources":[{ "uri":"test:html","name":"a page","size":1e1 },{"uri":"test:png","name":7,"mimeType":[]}],"nextCursor":"2"}}`},
		{"resources/list", `{"cursor":"2"}`, `{"result":{"resources":[{"uri":"test:exact"},{"uri":"test:html"},5,{"name":"no uri"}]}}`},
		{"resources/read", `{"uri":"test:exact"}`, `{"result":` + ExactContents + `}`},
		{"resources/read", `{"uri":"test:huge/3"}`, `{"result":{"contents":[{"text":"xxx"}]}}`},
		{"resources/read", `{"uri":"test:none"}`, `{"error":{"code":-32002,"message":"Resource not found"}}`},
		{"resources/read", `5`, `{"error":{"code":-32002,"message":"Resource not found"}}`},
		{"prompts/get", `{"name":"exact"}`, `{"result":` + ExactPrompt + `}`},
		{"prompts/get", `{"name":"say it/loud","arguments":{"what":"x"}}`, `{"result":{"messages":[],"params":{"name":"say it/loud","arguments":{"what":"x"}}}}`},
		{"prompts/get", `{"name":"say it/loud"}`, `{"error":{"code":-32602,"message":"there is nothing to say"}}`},
		{"completion/complete", `{"x":1.0}`, `{"result":{"completion":{"values":["one"],"total":1.0},"params":{"x":1.0}}}`},
	} {
		f := c.ask(tt.method, tt.params)
		_, got, _ := strings.Cut(f.line, `,"id":`+string(f.ID)+`,`)
		if "{"+got != tt.want {
			t.Errorf("%s of %s: {%s, want %s", tt.method, tt.params, got, tt.want)
		}
	}
	id := c.request("resources/read", `{"uri":"test:change"}`)
	if f := c.next(); f.Method != "notifications/resources/list_changed" {
		t.Errorf("got %s, want that the list has changed", f.line)
	}
	if f := c.next(); string(f.ID) != id {
		t.Errorf("got %s, want the answer to %s", f.line, id)
	}
	if f := c.ask("resources/list", `{"cursor":"2"}`); !strings.Contains(f.line, "test:new/0") {
		t.Errorf("the list is now %s", f.line)
	}
}
