package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"mcpbridge/internal/artifacts"
	"mcpbridge/internal/bridge"
	"mcpbridge/internal/config"
	"mcpbridge/internal/identity"
	"mcpbridge/internal/openapi"
)

// newKeeper makes the keeper of results and its store, which is to be closed when
// nobody uses the keeper any more. Nothing is connected yet.
func newKeeper(a config.Artifacts, log *slog.Logger) (*artifacts.Keeper, artifacts.Store, error) {
	types, err := artifactTypes(a.Types, log)
	if err != nil {
		return nil, nil, err
	}
	var store artifacts.Store = artifacts.NewMemory(a.Bytes)
	if url := a.Store.Text(); url != "memory" {
		if store, err = artifacts.OpenRedis(url); err != nil {
			return nil, nil, fmt.Errorf("bridge.artifacts.store: %w%w", err, errConfig)
		}
	}
	return artifacts.New(artifacts.Options{
		Store: store, TTL: a.TTL, PromoteBytes: int(a.PromoteBytes),
		SummaryAfter: a.SummaryAfter, SummaryChars: a.SummaryChars, Summaries: a.Summaries,
		Types: types, Allows: identity.Rules{}.Allows, Log: log,
	}), store, nil
}

// checkParts refuses a configuration whose collector of traces, store or types of results cannot be.
func checkParts(cfg *config.Config) error {
	if err := checkTracing(&cfg.Bridge); err != nil {
		return err
	}
	_, store, err := newKeeper(cfg.Bridge.Artifacts, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return store.Close() // it has not connected yet
}

// artifactTypes makes a check of each configured type. A type's schema is like
// that of a tool's result, so it is compiled as one.
func artifactTypes(schemas map[string]json.RawMessage, log *slog.Logger) (map[string]func([]byte) error, error) {
	compiler := openapi.NewSchemas(log)
	types := make(map[string]func([]byte) error, len(schemas))
	var errs []error
	for name, schema := range schemas {
		t := &bridge.Tool{Handle: "types", Name: name, Input: json.RawMessage(`{"type":"object"}`), Output: schema}
		err := compiler.Compile(t)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("bridge.artifacts.types.%s: %w", name, err))
		case t.Unchecked != "":
			errs = append(errs, fmt.Errorf("bridge.artifacts.types.%s: %s", name, t.Unchecked))
		case t.Result == nil:
			types[name] = nil // any JSON will do
		default:
			types[name] = func(doc []byte) error {
				_, err := t.Result.Check(doc)
				return err
			}
		}
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("%w%w", errors.Join(errs...), errConfig)
	}
	return types, nil
}
