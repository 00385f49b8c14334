package publish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpbridge/internal/bridge"
)

// Servers of a caller's own are connected when it lists, and when it calls.
func TestAttach(t *testing.T) {
	for _, name := range []string{"own__x", "own__a_b_da5faa84"} {
		f := newFixture(t, newServer("demo", newTool("demo", "add", "")), &bridge.Server{Handle: "own", State: bridge.Idle})
		first := make(chan struct{})
		f.attach = func(handle string) (<-chan struct{}, error) {
			if handle != "own" {
				t.Errorf("%q was attached", handle)
			}
			go func() {
				f.set(true, newServer("demo", newTool("demo", "add", "")), newServer("own", newTool("own", "x", ""), newTool("own", "a b", "")))
				close(first)
			}()
			return first, nil
		}
		f.publish()
		if name != "own__x" {
			name = f.published("own", "a b")
		}
		tool, err := f.server.find(t.Context(), request{}, name)
		if err != nil || tool.Handle != "own" {
			t.Errorf("%s: %v, %v", name, tool, err)
		}
	}
}

// published returns a tool's name here.
func (f *fixture) published(handle, tool string) string {
	name, _, _ := strings.Cut(string(appendEntry(nil, newTool(handle, tool, ""), true))[len(`{"name":"`):], `"`)
	return name
}

func TestAttachIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, newServer("demo", newTool("demo", "add", "")), &bridge.Server{Handle: "own", State: bridge.Idle}, &bridge.Server{Handle: "refused", State: bridge.Idle})
		f.attach = func(handle string) (<-chan struct{}, error) {
			if handle == "refused" {
				return nil, &bridge.Error{Kind: bridge.Forbidden}
			}
			return make(chan struct{}), nil // never
		}
		f.publish()
		start := time.Now()
		view, err := f.server.settled(t.Context(), request{})
		if err != nil || time.Since(start) != patience || view.Server("demo") == nil {
			t.Errorf("after %v: %v, %v", time.Since(start), view, err)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errEnded)
		defer cancel()
		if _, err := f.server.settled(ctx, request{}); !errors.Is(err, errEnded) {
			t.Errorf("with a context that ends: %v", err)
		}
		// Those that it does not ask for are left alone.
		start = time.Now()
		if _, err := f.server.settled(t.Context(), request{handles: handles{"demo": true}}); err != nil || time.Since(start) != 0 {
			t.Errorf("narrowed: %v after %v", err, time.Since(start))
		}
	})
}
