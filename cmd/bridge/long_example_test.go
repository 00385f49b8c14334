package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// The script that shows long calls to a person does what it says.
func TestLongExample(t *testing.T) {
	p := start(t, map[string]server{"everything": with(with(npm("everything"), "elicitation", true), "sharing", "user")}, nil)
	p.ready()
	cmd := exec.CommandContext(t.Context(), "bash", "../../examples/long.sh", p.base, "1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for want, times := range map[string]int{
		"Long running operation completed. Duration: 1 seconds, Steps: 24.": 4, // plain, streamed, as the job's result, and in its events
		"event: progress":              48,
		"event: result":                2,
		`"state":"input_required"`:     1,
		`"pointer":"/content/integer"`: 1,
		"- Name: Ada\n":                1,
		"- Favorite Integer: 7":        1,
		`"state":"cancelled"`:          1,
		"\n204\n":                      2,
	} {
		if n := bytes.Count(out, []byte(want)); n != times {
			t.Errorf("the script shows %q %d times, want %d:\n%s", want, n, times, out)
		}
	}
	if strings.Contains(string(out), "artifact_ref\":\"\"") {
		t.Errorf("a result is not kept:\n%s", out)
	}
}
