package mcp

import (
	"errors"
	"fmt"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/mcp/rpc"
)

// refused gives the errors of what is no tool the kinds that they have for callers: the
// protocol says by its codes what a server does not know.
func refused(err error, r *bridge.Request) error {
	e, ok := errors.AsType[*bridge.Error](err)
	if !ok {
		return err
	}
	if e.Kind == bridge.OutcomeUnknown { // nothing was to be done, so nothing is unknown
		e.Kind, e.Msg = bridge.Unavailable, fmt.Sprintf("The connection to the server %q was lost before it answered; try again.", r.Tool.Handle)
	}
	answer, ok := errors.AsType[*rpc.Error](err)
	if !ok {
		return e
	}
	switch answer.Code {
	case rpc.ResourceNotFound, rpc.MethodNotFound:
		e.Kind = bridge.NotFound
	case rpc.InvalidParams:
		e.Kind = bridge.InvalidArguments
		if r.Method == bridge.ReadResource { // the URI is all there is, and since 2026-07-28 that is its code
			e.Kind = bridge.NotFound
		}
	}
	return e
}
