package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The suite tells the command that it runs which scenario it is, and what that has to know.
const (
	envScenario = "MCP_CONFORMANCE_SCENARIO"
	envContext  = "MCP_CONFORMANCE_CONTEXT"
	envVersion  = "MCP_CONFORMANCE_PROTOCOL_VERSION"
	envBridge   = "CONFORMANCE_BRIDGE" // set by ourselves: the program under test,
	envTurns    = "CONFORMANCE_TURNS"  // and a folder for files that are locked
)

// defaults is the scenario in which somebody is asked something with proposals.
const defaults = "elicitation-sep1034-client-defaults"

// A scenario is what the suite gives its command.
type scenario struct {
	name, server string
	version      string
	given        struct {
		ClientID   string `json:"client_id"`
		Secret     string `json:"client_secret"`
		PrivateKey string `json:"private_key_pem"`
		Algorithm  string `json:"signing_algorithm"`
		ToolCalls  []struct {
			Name      string
			Arguments json.RawMessage
		}
	}
}

// client is the command that the suite runs against a server of its own: a bridge with that
// server in its configuration, and what an application or a person would do with it.
func client(ctx context.Context, server string) error {
	s := scenario{name: os.Getenv(envScenario), version: os.Getenv(envVersion), server: server}
	if text := os.Getenv(envContext); text != "" {
		if err := json.Unmarshal([]byte(text), &s.given); err != nil {
			return fmt.Errorf("%s: %w", envContext, err)
		}
	}
	// The suite starts all scenarios at once; a few of them at a time end sooner, and in time.
	turn, err := wait(os.Getenv(envTurns))
	if err != nil {
		return err
	}
	defer turn.Close()
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	config, err := s.config(dir)
	if err != nil {
		return err
	}
	if s.name == defaults {
		return s.person(ctx, config)
	}
	b, err := startBridge(ctx, os.Getenv(envBridge), config, os.Stderr)
	if err != nil {
		return err
	}
	defer b.stop()
	return s.application(ctx, b.url)
}

// turns is how many scenarios run at a time.
const turns = 3

// wait waits for one of the turns, which ends when the file is closed.
func wait(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("turn-%d", os.Getpid()%turns)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// config writes the configuration of a bridge with the scenario's server.
func (s *scenario) config(dir string) (path string, err error) {
	entry := map[string]any{"url": s.server, "elicitation": true}
	if s.name == defaults {
		// Its server asks on another stream than the call's, which can be answered where there is one call at a time.
		entry["sharing"], entry["maxConcurrent"] = "user", 1
	}
	if strings.HasPrefix(s.name, "auth/") {
		credential := map[string]any{"clientId": "conformance-test-client", "clientSecret": "conformance-test-secret"}
		if s.given.ClientID != "" {
			credential["clientId"] = s.given.ClientID
		}
		if s.given.Secret != "" {
			credential["clientSecret"] = s.given.Secret
		}
		if s.given.PrivateKey != "" {
			key := filepath.Join(dir, "key.pem")
			if err := os.WriteFile(key, []byte(s.given.PrivateKey), 0o600); err != nil {
				return "", err
			}
			delete(credential, "clientSecret")
			credential["privateKey"], credential["algorithm"] = "${file:"+key+"}", s.given.Algorithm
		}
		entry["credential"] = credential
	}
	return writeConfig(dir, map[string]any{handle: entry})
}

// person calls a tool in a terminal, and takes whatever is proposed for what it asks.
func (s *scenario) person(ctx context.Context, config string) error {
	call := fmt.Sprintf("'%s' call --config '%s' --stream %s test_client_elicitation_defaults", os.Getenv(envBridge), config, handle)
	cmd := exec.CommandContext(ctx, "script", "-q", "-e", "-c", call, os.DevNull) // which makes a terminal
	cmd.Stdin = strings.NewReader(strings.Repeat("\n", 20))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

// application does over HTTP what the scenario wants to see: it calls the tools that it is
// told, or all that there are, and reads the first resource and prompt.
func (s *scenario) application(ctx context.Context, bridge string) error {
	a := api{ctx: ctx, base: bridge}
	var catalogue struct {
		State     string
		LastError string `json:"last_error"`
		Tools     []struct {
			Name  string
			Input json.RawMessage `json:"input_schema"`
		}
	}
	for {
		if err := a.get("/tools/"+handle, &catalogue); err != nil {
			return err
		}
		if catalogue.State != "connecting" {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if catalogue.State != "ready" {
		return fmt.Errorf("the server is %s: %s", catalogue.State, catalogue.LastError)
	}
	if s.given.ToolCalls != nil {
		for _, c := range s.given.ToolCalls {
			a.call(c.Name, c.Arguments)
		}
		return a.failed()
	}
	for _, t := range catalogue.Tools {
		args := json.RawMessage(`{}`)
		switch t.Name {
		case "valid_tool":
			args = json.RawMessage(`{"region":"us-west1"}`)
		case "add_numbers":
			args = json.RawMessage(`{"a":5,"b":3}`)
		case "json_schema_echo":
			for _, other := range catalogue.Tools {
				if other.Name == "json_schema_2020_12_tool" {
					args = encode(map[string]any{"schema": other.Input})
				}
			}
		}
		a.call(t.Name, args)
	}
	a.first("resources", func(r map[string]any) {
		a.do("GET", fmt.Sprintf("/resources/%s/content?uri=%s", handle, url.QueryEscape(fmt.Sprint(r["uri"]))), nil)
	})
	a.first("prompts", func(p map[string]any) {
		a.do("POST", fmt.Sprintf("/prompts/%s/%s", handle, url.PathEscape(fmt.Sprint(p["name"]))), []byte(`{}`))
	})
	return nil
}

// An api is a running bridge as an application sees it.
type api struct {
	ctx  context.Context
	base string
	errs []error
}

func (a *api) failed() error { return errors.Join(a.errs...) }

// call calls a tool. What it asks is confirmed.
func (a *api) call(tool string, args []byte) {
	got := a.do("POST", fmt.Sprintf("/tools/%s/%s", handle, url.PathEscape(tool)), args)
	if got.status != http.StatusAccepted {
		return
	}
	var job struct{ ID, State string }
	for {
		if json.Unmarshal(got.body, &job) != nil || job.ID == "" {
			a.errs = append(a.errs, fmt.Errorf("the job of %s is %.300s", tool, got.body))
			return
		}
		switch job.State {
		case "input_required":
			a.do("POST", "/jobs/"+job.ID+"/input", []byte(`{"action":"accept","content":{"confirmed":true}}`))
		case "queued", "running":
		default:
			fmt.Printf("%s: %.300s\n", tool, got.body)
			return
		}
		got = a.do("GET", "/jobs/"+job.ID, nil, "Prefer", "wait=5")
	}
}

// first does something with the first entry of a list of the server's, if there is one.
func (a *api) first(list string, do func(map[string]any)) {
	var all map[string]json.RawMessage
	if err := a.get("/"+list+"/"+handle, &all); err != nil {
		a.errs = append(a.errs, err)
		return
	}
	var entries []map[string]any
	if json.Unmarshal(all[list], &entries) == nil && len(entries) > 0 {
		do(entries[0])
	}
}

func (a *api) get(path string, v any) error {
	got := a.do("GET", path, nil)
	if got.status == 0 {
		return a.failed()
	}
	if err := json.Unmarshal(got.body, v); err != nil {
		return fmt.Errorf("%s: %w: %.300s", path, err, got.body)
	}
	return nil
}

// An answer is what a request brought; without a status there was none.
type answer struct {
	status int
	body   []byte
}

// do makes a request, and prints how it was answered.
func (a *api) do(method, path string, body []byte, header ...string) answer {
	req, err := http.NewRequestWithContext(a.ctx, method, a.base+path, bytes.NewReader(body))
	if err == nil {
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		for i := 0; i < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		var res *http.Response
		if res, err = http.DefaultClient.Do(req); err == nil {
			defer res.Body.Close()
			var got []byte
			if got, err = io.ReadAll(res.Body); err == nil {
				if method != "GET" {
					fmt.Printf("%s %s: %d %.300s\n", method, path, res.StatusCode, got)
				}
				return answer{res.StatusCode, got}
			}
		}
	}
	a.errs = append(a.errs, err)
	return answer{}
}
