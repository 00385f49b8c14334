// Package deps holds the arrows between the packages of this program: who may
// import whom, and who may use which library.
package deps

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const mod = "mcpbridge/internal/"

// may lists, for each package, the packages of this program it may import.
var may = map[string][]string{
	"raw":         {},
	"bridge":      {"raw"},
	"redisurl":    {},
	"config":      {"redisurl"},
	"telemetry":   {},
	"jobs":        {"bridge", "raw"},
	"deps":        {},
	"artifacts":   {"bridge", "raw", "redisurl"},
	"breaker":     {"bridge"},
	"gate":        {"bridge"},
	"identity":    {"bridge", "redisurl"},
	"local":       {"bridge", "raw"},
	"mcp/rpc":     {"raw"},
	"mcp/stdio":   {"mcp/rpc", "raw"},
	"mcp/remote":  {"mcp/rpc", "raw"},
	"mcp":         {"bridge", "raw", "mcp/rpc", "mcp/stdio", "mcp/remote"},
	"openapi":     {"bridge", "raw"},
	"web":         {},
	"web/webtest": {}, // for tests only
	"redistest":   {}, // for tests only
	// Reading an artifact goes through three types of its package, each with methods that
	// return the next; interfaces for them here would say it all a second time.
	"routes":  {"bridge", "raw", "jobs", "openapi", "identity", "web", "artifacts"},
	"publish": {"bridge", "raw", "openapi", "identity"},
	"mcptest": {"raw"},

	"openapi/openapitest": {"raw"}, // for tests only
	"telemetry/otlptest":  {},      // for tests only
}

// only lists libraries with the packages that may use them, and why.
var only = []struct {
	library string
	in      []string
	why     string
}{
	{"github.com/modelcontextprotocol/go-sdk", []string{"mcp/rpc", "mcp/stdio", "mcp/remote", "publish", "local", "mcptest"}, "the client side is mcp's, the server side is publish's, local's and the tests'"},
	{"github.com/danielgtaylor/huma", []string{"routes", "openapi"}, "only the HTTP surface knows the framework"},
	{"github.com/go-chi/chi", []string{"routes"}, "only the HTTP surface knows the router"},
	{"github.com/redis/go-redis", []string{"redisurl", "artifacts", "config", "identity", "jobs"}, "the rest knows stores, not Redis"},
	{"github.com/go-redis/redis_rate", []string{"identity"}, "only budgets have rates that are shared"},
	{"github.com/coreos/go-oidc", []string{"identity"}, "only it judges tokens"},
	{"github.com/fsnotify/fsnotify", []string{"config"}, "only the configuration is watched"},
	{"github.com/pb33f/libopenapi", []string{"openapi/openapitest"}, "it takes minutes to compile, and only tests need the schemas in it"},
	{"go.opentelemetry.io", []string{"telemetry", "telemetry/otlptest"}, "the rest has hooks for traces, not spans"},
	{"net/http", []string{"telemetry/otlptest", "routes", "web", "mcp/remote", "mcp/rpc", "mcp", "mcptest", "identity", "telemetry", "publish"}, "the rest knows no transport"},
}

func TestArrows(t *testing.T) {
	// Reading the files ourselves, rather than running "go list", lets go test
	// see what this test depends on, so that it never reuses a stale result.
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		allowed, ok := may[pkg]
		if !ok {
			t.Errorf("%s is not in the table; say what it may import", pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imp, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if dep, ok := strings.CutPrefix(imp, mod); ok && !slices.Contains(allowed, dep) {
				t.Errorf("%s: %s must not import %s", path, pkg, dep)
			}
			for _, o := range only {
				if (imp == o.library || strings.HasPrefix(imp, o.library+"/")) && !slices.Contains(o.in, pkg) {
					t.Errorf("%s must not import %s: %s", path, imp, o.why)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
