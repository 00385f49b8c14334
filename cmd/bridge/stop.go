package main

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"mcpbridge/internal/config"
)

// untilSignal returns a context that the first SIGINT or SIGTERM ends, with the
// signal as its cause. A second one ends the process as if we had never asked
// for signals, and the supervisor ends the servers.
func untilSignal(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ended by stop, at the end of the program
		defer signal.Stop(signals)
		select {
		case s := <-signals:
			signal.Stop(signals) // before anybody sees that ctx is done
			cancel(signalled{s})
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// signalled is why the program's context ended.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return s.String() + " signal received" }

// Is makes it a cancellation, whoever asks for the cause.
func (signalled) Is(target error) bool { return target == context.Canceled }

// drainDelay is how long requests are still taken once ctx is done. A person
// who presses Ctrl-C has no balancer that would have to notice, and does not wait.
func drainDelay(ctx context.Context, b *config.Bridge) time.Duration {
	if s, ok := errors.AsType[signalled](context.Cause(ctx)); ok && s.Signal == syscall.SIGTERM {
		return b.DrainDelay
	}
	return 0
}

// closing serves h, and once stopping is set has each connection closed after its
// answer, so that whoever keeps connections makes the next one to another bridge.
// Idle ones stay open: closing them could meet a request on its way.
func closing(stopping *atomic.Bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if stopping.Load() {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
