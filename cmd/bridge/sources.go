package main

import (
	"context"
	"fmt"
	"log/slog"

	"mcpbridge/internal/config"
)

// openStore returns where the administration keeps its entries, nil if nowhere, and
// the entries there are now. A store that cannot be read keeps the bridge from nothing: it is watched.
func openStore(ctx context.Context, b *config.Bridge, log *slog.Logger) (config.Store, []config.Entry, error) {
	var store config.Store
	switch url := b.Sources.Redis; {
	case !url.IsZero():
		r, err := config.OpenRedis(url.Text(), log)
		if err != nil {
			return nil, nil, fmt.Errorf("bridge.sources.redis: %w%w", err, errConfig)
		}
		store = r
	case b.Admin.StateFile != "":
		store = config.OpenStateFile(b.Admin.StateFile)
	default:
		return nil, nil, nil
	}
	entries, err := store.Load(ctx)
	if err != nil {
		log.LogAttrs(ctx, slog.LevelWarn, "starting without the administration's servers", slog.Any("error", err))
	}
	return store, entries, nil
}

// storeName says where the administration keeps its entries.
func storeName(b *config.Bridge) string {
	if !b.Sources.Redis.IsZero() {
		return "redis"
	}
	return "state file"
}
