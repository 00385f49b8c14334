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
	// The race detector makes every process wait a second at its end, for reports that nobody reads.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0"); err != nil {
		panic(err)
	}
	testscript.Main(m, map[string]func(){"bridge": main})
}

func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: os.Getenv("UPDATE") != ""})
}
