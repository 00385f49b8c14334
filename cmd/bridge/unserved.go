package main

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"

	"mcpbridge/internal/config"
)

// checkServed refuses a configuration whose store or types of results cannot be, and
// warns about keys of features that are still to come: one without effect must say so.
func checkServed(w io.Writer, cfg *config.Config) error {
	_, store, err := newKeeper(cfg.Bridge.Artifacts, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err := store.Close(); err != nil { // it has not connected yet
		return err
	}
	for _, key := range unserved(cfg) {
		fmt.Fprintf(w, "bridge: warning: %s has no effect in this version\n", key)
	}
	return nil
}

// unserved names the keys that are set to something else than their default and have no effect.
func unserved(cfg *config.Config) []string {
	b, d := cfg.Bridge, config.DefaultBridge()
	keys := []struct {
		name     string
		got, def any
	}{
		{"bridge.telemetry.otlp", b.Telemetry.OTLP, d.Telemetry.OTLP},
		{"bridge.telemetry.debugListen", b.Telemetry.DebugListen, d.Telemetry.DebugListen},
	}
	var names []string
	for _, k := range keys {
		if !reflect.DeepEqual(k.got, k.def) {
			names = append(names, k.name)
		}
	}
	return names
}
