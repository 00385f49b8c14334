package remote

import (
	"os"
	"testing"

	"mcpbridge/internal/mcptest"
)

func TestMain(m *testing.M) {
	mcptest.Main()
	os.Exit(m.Run())
}
