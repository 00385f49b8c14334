package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"
	"time"
)

func TestDurationsAreMilliseconds(t *testing.T) {
	var b bytes.Buffer
	log := NewLog(&b, slog.LevelInfo)
	log.Debug("not shown")
	log.Info("shown", "took", 1500*time.Microsecond+499*time.Nanosecond, "n", 3)
	var line map[string]any
	if err := json.Unmarshal(b.Bytes(), &line); err != nil {
		t.Fatalf("%v: %s", err, b.Bytes())
	}
	if line["took_ms"] != 1.5 || line["n"] != 3.0 || line["took"] != nil || line["msg"] != "shown" {
		t.Errorf("line = %v", line)
	}
}
