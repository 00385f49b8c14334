package routes

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"mcpbridge/internal/bridge"
)

// Health is the answer of /healthz and of /readyz when it is good.
type Health struct {
	Status string `json:"status" enum:"ok"`
}

func (s *server) healthRoutes() {
	ok := func(x *exchange, r *http.Request) error {
		body, err := encode(Health{"ok"})
		if err != nil {
			return err
		}
		page{mediaType: "application/json", cache: "no-store", body: body}.write(x, r)
		return nil
	}
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/healthz", OperationID: "get-health", Tags: []string{"operations"},
		Summary:     "Is it alive?",
		Description: "Answers as long as the process can.",
		Responses:   s.answers(s.jsonAnswer("It is alive.", Health{})),
	}, ok)
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/readyz", OperationID: "get-readiness", Tags: []string{"operations"},
		Summary:     "Is it ready for requests?",
		Description: "Answers 200 once every server has answered or failed its first attempt, or was waited for long enough, and until the bridge is about to stop.",
		Responses:   s.answers(s.jsonAnswer("It is ready.", Health{}), bridge.NotReady),
	}, func(x *exchange, r *http.Request) error {
		if s.Ready() {
			return ok(x, r)
		}
		// Whoever asks again and again waits for just this answer: it is no failure to log.
		x.refuse(r, &bridge.Error{
			Kind: bridge.NotReady, Op: "routes.ready", RetryAfter: time.Second,
			Msg: "The bridge is still starting, or about to stop.",
		})
		return nil
	})
	s.register(huma.Operation{
		Method: http.MethodGet, Path: "/metrics", OperationID: "get-metrics", Tags: []string{"operations"},
		Summary:     "Metrics for Prometheus",
		Description: "In the text format of Prometheus, for callers with the scope metrics; where only this machine can connect, for all.",
		Responses: s.answers(&huma.Response{Description: "The metrics.", Content: map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}},
			Unauthenticated, bridge.Forbidden, bridge.NotFound),
	}, func(x *exchange, r *http.Request) error {
		if s.Metrics == nil {
			s.notFound(x, r)
			return nil
		}
		if _, err := x.requires(r, bridge.ScopeMetrics); err != nil {
			return err
		}
		s.Metrics.ServeHTTP(x, r)
		return nil
	})
}
