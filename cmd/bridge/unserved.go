package main

import (
	"fmt"
	"io"
	"log/slog"
	"reflect"

	"mcpbridge/internal/config"
)

// The configuration file already takes the keys of features that are still to
// come. A key that has no effect must say so, and one that was to keep somebody
// out must not be passed over at all.

// checkServed refuses a configuration that asks for protection which this version
// does not give, and warns about keys without effect.
func checkServed(w io.Writer, cfg *config.Config) error {
	if len(cfg.Bridge.Auth.Keys) > 0 || len(cfg.Bridge.Auth.JWT) > 0 {
		return fmt.Errorf("bridge.auth.keys and bridge.auth.jwt are not served by this version: it takes every caller as anonymous; remove them, and listen on loopback only%w", errConfig)
	}
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
