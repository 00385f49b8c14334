package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// leave has a running bridge make the call as a job, and prints where that is.
func (c *callCmd) leave(ctx context.Context, s streams, args []byte) error {
	at := cmp.Or(c.URL, s.getenv("BRIDGE_URL"))
	if at == "" {
		return fmt.Errorf("--async leaves the call to a running bridge, which --url or $BRIDGE_URL has to name; --stream shows a call's progress without one; %w", errUsage)
	}
	base, err := bridgeURL(at)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base.String()+"/tools/"+url.PathEscape(c.Handle)+"/"+url.PathEscape(c.Tool), bytes.NewReader(args))
	if err != nil {
		return err
	}
	req.Header.Set("Prefer", "respond-async")
	req.Header.Set("Content-Type", "application/json")
	if key := s.getenv("BRIDGE_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{
		Timeout:       30 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key is for this bridge alone
	}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the bridge cannot be reached: %w", err)
	}
	defer res.Body.Close()
	const most = 1 << 20 // of a problem
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if res.StatusCode != http.StatusAccepted {
		return refused(res.Status, body)
	}
	job, err := res.Location()
	if err != nil {
		return fmt.Errorf("the answer does not say where the job is: %w", err)
	}
	_, err = fmt.Fprintln(s.stdout, job.Redacted())
	return err
}

// refused says what a bridge answered in place of a job.
func refused(status string, body []byte) error {
	var p struct {
		Code, Detail string
		Errors       json.RawMessage
	}
	if json.Unmarshal(body, &p) != nil || p.Code == "" {
		return fmt.Errorf("what answers there is no bridge: HTTP %s", line(status))
	}
	var more bytes.Buffer
	if len(p.Errors) > 0 && json.Indent(&more, p.Errors, "", "  ") == nil {
		return fmt.Errorf("%s: %s\n%s", line(p.Code), line(p.Detail), &more)
	}
	return fmt.Errorf("%s: %s", line(p.Code), line(p.Detail))
}
