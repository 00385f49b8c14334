package routes

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/bridge"
)

// A caller sees the rows of its own servers, and those of the whole pools.
func TestStatusShowsTheCallersServers(t *testing.T) {
	id := func(n byte, name string) bridge.EndpointID {
		return bridge.EndpointID{Sum: [32]byte{n}, Label: "mcp:" + name}
	}
	mine, others := id(1, "a"), id(2, "a") // a is a server that callers do not share
	b, d := id(3, "b"), id(4, "d")
	all := Status{
		Endpoints: []EndpointStatus{
			{ID: mine, Name: "mcp:a", Endpoint: "serve --api-key=x", Handles: []string{"a"}},
			{ID: others, Name: "others", Handles: []string{"a"}},
			{ID: b, Name: "mcp:b", Handles: []string{"b", "c"}},
			{ID: d, Name: "mcp:d", Handles: []string{"d"}},
		},
		Gates:     []GateStatus{{ID: mine, Name: "mcp:a"}, {ID: others, Name: "others"}, {ID: b, Name: "mcp:b"}, {ID: d, Name: "mcp:d"}, {Name: "mcp:http"}, {Name: "mcp:stdio"}},
		Artifacts: &ArtifactStatus{Store: "memory", Kept: 1},
	}
	got := all.visibleIn(bridge.NewSnapshot(1, true, []*bridge.Server{{Handle: "a", Endpoint: mine}, {Handle: "c", Endpoint: b}, {Handle: "idle"}}))
	var names []string
	for _, e := range got.Endpoints {
		names = append(names, e.Name)
		if len(e.Handles) != 1 || e.Handles[0] == "b" || e.Endpoint != "" {
			t.Errorf("%s shows the handles %q, and %q", e.Name, e.Handles, e.Endpoint)
		}
	}
	for _, g := range got.Gates {
		names = append(names, g.Name)
	}
	if diff := cmp.Diff([]string{"mcp:a", "mcp:b", "mcp:a", "mcp:b", "mcp:http", "mcp:stdio"}, names); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
	if got.Artifacts != nil {
		t.Errorf("it sees how many results all have: %+v", got.Artifacts)
	}
}

func TestStatusIsNeverCached(t *testing.T) {
	f := newFixture()
	w := httptest.NewRecorder()
	f.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/status", nil))
	var st Status
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil || w.Code != http.StatusOK || st.Endpoints == nil || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v, %s: %v", w.Code, w.Header(), w.Body, err)
	}
}
