//go:build pin

// Package pin holds planned dependencies in go.mod until their packages exist.
package pin

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/danielgtaylor/huma/v2"
	_ "github.com/danielgtaylor/huma/v2/adapters/humachi"
	_ "github.com/dlclark/regexp2/v2"
	_ "github.com/go-chi/chi/v5"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/pb33f/libopenapi"
	_ "github.com/pb33f/libopenapi-validator"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/tailscale/hujson"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/text/encoding"
)
