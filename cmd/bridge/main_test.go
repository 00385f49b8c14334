package main

import (
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"mcpbridge/internal/mcp/stdio"
	"mcpbridge/internal/mcptest"
)

// TestMain makes the test binary the bridge itself, for the scripts and for the
// end-to-end tests, and each of the misbehaving servers.
func TestMain(m *testing.M) {
	stdio.Main()
	mcptest.Main()
	testscript.Main(m, map[string]func(){"bridge": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE") != ""})
}
