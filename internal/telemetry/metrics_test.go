package telemetry

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func scrape(m *Metrics) (int, string) {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Code, w.Body.String()
}

func TestMetrics(t *testing.T) {
	n := 1.0
	m := NewMetrics("1.2.3", func() []Sample {
		n++
		return []Sample{
			{Name: "reloads_total", Help: "Reloads.", Counter: true, Value: n, Labels: []string{"result", "ok"}},
			{Name: "reloads_total", Help: "Reloads.", Counter: true, Value: 0, Labels: []string{"result", "failed"}},
			{Name: "processes", Help: "Processes.", Value: 7},
		}
	})
	m.Call("files", "", 3*time.Millisecond)
	m.Call("files", "tool-error", time.Minute)
	m.Call("", "not-found", 0)
	status, text := scrape(m)
	if status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		`mcp_bridge_build_info{version="1.2.3"} 1`,
		`mcp_bridge_calls_total{code="",server="files"} 1`,
		`mcp_bridge_calls_total{code="tool-error",server="files"} 1`,
		`mcp_bridge_calls_total{code="not-found",server=""} 1`,
		`mcp_bridge_call_duration_seconds_bucket{server="files",le="0.005"} 1`,
		`mcp_bridge_call_duration_seconds_count{server="files"} 2`,
		`# TYPE mcp_bridge_reloads_total counter`,
		`mcp_bridge_reloads_total{result="ok"} 2`,
		`mcp_bridge_reloads_total{result="failed"} 0`,
		`# TYPE mcp_bridge_processes gauge`,
		`mcp_bridge_processes 7`,
		`go_goroutines `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if _, text = scrape(m); !strings.Contains(text, `mcp_bridge_reloads_total{result="ok"} 3`) {
		t.Error("the second scrape shows what the first did")
	}
}

// Samples that cannot be are a failed scrape, not a crash.
func TestBadSamples(t *testing.T) {
	m := NewMetrics("1", func() []Sample { return []Sample{{Name: "x", Help: "x"}, {Name: "x", Help: "x"}} })
	if status, text := scrape(m); status != 500 {
		t.Errorf("%d %s", status, text)
	}
}
