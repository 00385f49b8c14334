package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"

	"mcpbridge/internal/config"
	"mcpbridge/internal/telemetry"
)

// newDebug serves profiles where the configuration says, or returns nil if it says nothing.
func newDebug(ctx context.Context, b *config.Bridge, log *slog.Logger) (*telemetry.Debug, error) {
	at := b.Telemetry.DebugListen
	if at == "" {
		return nil, nil //nolint:nilnil // as the comment says
	}
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, fmt.Errorf("bridge.telemetry.debugListen: cannot listen: %w; is the port that of bridge.listen, or another program's?", err)
	}
	if !isLoopback(ln.Addr()) { // as far as a name says, which may lead elsewhere
		return nil, errors.Join(fmt.Errorf("bridge.telemetry.debugListen: %s is not on loopback", ln.Addr()), ln.Close())
	}
	d, err := telemetry.StartDebug(ln, log)
	if err != nil {
		return nil, fmt.Errorf("bridge.telemetry.debugListen: %w", err)
	}
	log.LogAttrs(ctx, slog.LevelInfo, "profiles are served to this machine", slog.String("addr", ln.Addr().String()))
	return d, nil
}
