package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// viaSDK is what one writes in an afternoon: a handler around the CallTool of the
// official SDK's client, in front of the echo server as a process.
func viaSDK(ctx context.Context, tools int) (http.Handler, error) {
	client := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	cmd := exec.CommandContext(ctx, self(), "-be", "echo", "-tools", strconv.Itoa(tools)) //nolint:gosec // this very program
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	// The SDK's transport for commands is this one, but with a limit of 16 MiB for an answer.
	session, err := client.Connect(ctx, &mcp.IOTransport{Reader: out, Writer: in, MaxLineLength: -1}, nil)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /{tool}", func(w http.ResponseWriter, r *http.Request) {
		body, err := readAll(r)
		if err != nil || !json.Valid(body) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		res, err := session.CallTool(r.Context(), &mcp.CallToolParams{Name: r.PathValue("tool"), Arguments: json.RawMessage(body)})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		out, err := json.Marshal(res)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(out))}
		_, _ = w.Write(out)
	})
	return mux, nil
}
