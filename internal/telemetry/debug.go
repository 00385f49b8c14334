package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"runtime/trace"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	flightAge   = 10 * time.Second // that the recorder keeps, more or less
	flightBytes = 32 << 20         // that it keeps at most, more or less
	flightWrite = 30 * time.Second // for who fetches it to take it
)

var (
	errTaking  = errors.New("another one is being taken")
	errStopped = errors.New("nothing is recorded any more")
)

// A Debug serves profiles of the process and the last seconds of its execution trace to
// people on this machine: /debug/pprof/… and /debug/flight.
type Debug struct {
	recorder *trace.FlightRecorder
	server   *http.Server
	served   chan struct{} // closed when the listener is
	taking   sync.Mutex    // held while a snapshot is taken
}

// StartDebug serves on ln, which it closes at the end. It must be closed. One in a process can record at a time.
func StartDebug(ln net.Listener, log *slog.Logger) (*Debug, error) {
	d := &Debug{
		recorder: trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: flightAge, MaxBytes: flightBytes}),
		served:   make(chan struct{}),
	}
	if err := d.recorder.Start(); err != nil {
		_ = ln.Close() // err says more
		return nil, fmt.Errorf("flight recorder: %w", err)
	}
	d.server = &http.Server{
		Handler: d, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go func() { // ended by Close
		defer close(d.served)
		if err := d.server.Serve(ln); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.LogAttrs(context.Background(), slog.LevelWarn, "profiles are no longer served", slog.String("error", err.Error()))
		}
	}()
	return d, nil
}

// Close ends what is being fetched, and the recording. A nil Debug has none.
func (d *Debug) Close() error {
	if d == nil {
		return nil
	}
	err := d.server.Close()
	<-d.served
	d.taking.Lock() // a snapshot under way reads what Stop takes away
	defer d.taking.Unlock()
	d.recorder.Stop()
	return err
}

// ServeHTTP refuses what a browser sends for a page, and finds the rest.
func (d *Debug) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	switch {
	case !nearby(r):
		http.Error(w, "Only people on this machine may look, and no page of another origin: use http://127.0.0.1 or http://localhost.", http.StatusForbidden)
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead && (r.Method != http.MethodPost || r.URL.Path != "/debug/pprof/symbol"):
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "There is only GET here.", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/debug/flight":
		d.flight(w, r)
	case "/debug/pprof/profile":
		pprof.Profile(w, r)
	case "/debug/pprof/trace":
		pprof.Trace(w, r)
	case "/debug/pprof/symbol":
		pprof.Symbol(w, r)
	case "/debug/pprof/cmdline": // it may have secrets behind --
		http.NotFound(w, r)
	default:
		if !strings.HasPrefix(r.URL.Path, "/debug/pprof/") {
			http.NotFound(w, r)
			return
		}
		pprof.Index(w, r) // and the profiles by name
	}
}

// nearby reports whether a request came by a name of this machine, and from no page of somebody else.
// A page whose own name was made to lead here (DNS rebinding) has that name in Host; one that
// only asks for an address of ours has its own origin, of which browsers tell.
func nearby(r *http.Request) bool {
	name := r.Host
	if h, _, err := net.SplitHostPort(name); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if a, err := netip.ParseAddr(name); name != "localhost" && (err != nil || !a.Unmap().IsLoopback()) {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return false
	}
	origin := r.Header.Get("Origin")
	return origin == "" || origin == "http://"+r.Host
}

// flight answers the last seconds of the execution trace, for go tool trace. It takes one
// snapshot at a time, whole, so that nobody who reads slowly holds the recorder.
func (d *Debug) flight(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "application/octet-stream")
		return
	}
	var b bytes.Buffer
	err := d.snapshot(&b)
	if err != nil {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "There is no snapshot just now: "+err.Error()+".", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", `attachment; filename="flight.trace"`)
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(flightWrite)) // a recorder in a test has none
	_, _ = b.WriteTo(w)                                                             // who has gone needs no answer
}

func (d *Debug) snapshot(b *bytes.Buffer) error {
	if !d.taking.TryLock() {
		return errTaking
	}
	defer d.taking.Unlock()
	if !d.recorder.Enabled() {
		return errStopped
	}
	_, err := d.recorder.WriteTo(b)
	return err
}
