package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

type healthCmd struct {
	URL string `placeholder:"URL" help:"The running bridge; else $$BRIDGE_URL, else http://127.0.0.1:8080."`
}

// Run asks a running bridge whether it is ready; an image without a shell has
// nothing else that could.
func (c *healthCmd) Run(ctx context.Context, s streams) error {
	base, err := bridgeURL(cmp.Or(c.URL, s.getenv("BRIDGE_URL"), "http://127.0.0.1:8080"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, healthTimeout, errNoAnswer)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.String()+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	// Without proxies and redirects: it is the bridge itself that is asked.
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("the bridge cannot be reached: %w", cmp.Or(context.Cause(ctx), err))
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the bridge is not ready: HTTP %s", line(res.Status))
	}
	return nil
}

// healthTimeout is less than those who ask regularly use to wait.
const healthTimeout = 5 * time.Second

var errNoAnswer = fmt.Errorf("no answer within %v", healthTimeout)

// bridgeURL reads the URL of a running bridge, without a slash at its end.
func bridgeURL(text string) (*url.URL, error) {
	base, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("the URL of the bridge must start with http:// or https:// and name a host; %w", errUsage)
	}
	return base, nil
}
