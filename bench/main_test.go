package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestWrongCommandLines(t *testing.T) {
	noEnv := func(string) string { return "" }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-only", "nonsense"}, `no part "nonsense"; there are calls, profile,`},
		{[]string{"-only", "start,"}, `no part ""`},
		{[]string{"stray", "-short"}, `"stray"`},
		{[]string{"-be", "nobody"}, `cannot be "nobody"`},
		{[]string{"-peer", "x"}, "name=http"},
	} {
		if err := command(t.Context(), c.args, noEnv, io.Discard); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.args, err, c.want)
		}
	}
	if err := command(t.Context(), []string{"-help"}, noEnv, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-help: %v", err)
	}
}

// A part of the figures never takes the place of all of them.
func TestPartsAreNotWritten(t *testing.T) {
	results := t.TempDir()
	var out bytes.Buffer
	if err := command(t.Context(), []string{"-short", "-only", "profile", "-bridge", buildBridge(t), "-results", results}, os.Getenv, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "What a small call is made of, 1 connection\n") {
		t.Errorf("the output is %s", out.String())
	}
	if files, err := os.ReadDir(results); err != nil || len(files) > 0 {
		t.Errorf("written were %v, %v", files, err)
	}
}

// Who reads the output may go before its end: nothing stays behind.
func TestNobodyReads(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	tmp := t.TempDir()
	cmd := exec.CommandContext(t.Context(), buildProgram(t, "."), "-short", "-only", "start", "-bridge", buildBridge(t))
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.Stdout = w
	cmd.WaitDelay = 10 * time.Second
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	_ = w.Close()
	if files, err := os.ReadDir(tmp); err != nil || len(files) > 0 {
		t.Errorf("left behind were %v, %v", files, err)
	}
}
