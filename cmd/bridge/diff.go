package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpbridge/internal/config"
	"mcpbridge/internal/routes"
)

// diff says what a running bridge would make of the file: of its servers, which it
// compares by fingerprint, so that no secret goes either way.
func (c *checkCmd) diff(ctx context.Context, streams streams, cfg *config.Config) error {
	base := c.URL
	if base == "" {
		base = "http://" + reachable(cfg.Bridge.Listen) + cfg.Bridge.BasePath
	}
	running, err := runningServers(ctx, strings.TrimRight(base, "/"), streams.getenv("BRIDGE_KEY"))
	if err != nil {
		return err
	}
	was, kept, put := map[string]string{}, 0, map[string]bool{}
	for _, s := range running {
		switch {
		case s.Source == "command line":
			return fmt.Errorf("the bridge at %s runs without a configuration file", line(base))
		case s.Source == "file":
			was[s.Handle] = s.Fingerprint
		case s.User == "" && !s.Shadowed:
			put[s.Handle] = true
		}
	}
	var changes []string
	for i := range cfg.Servers {
		s := &cfg.Servers[i]
		have, there := was[s.Handle]
		delete(was, s.Handle)
		switch {
		case there && have == s.Fingerprint():
			kept++
		case there:
			changes = append(changes, "~ "+line(s.Handle))
		case put[s.Handle]:
			changes = append(changes, "+ "+line(s.Handle)+"  (in place of the one that was put through the administration)")
		default:
			changes = append(changes, "+ "+line(s.Handle))
		}
	}
	for _, handle := range slices.Sorted(maps.Keys(was)) {
		changes = append(changes, "- "+line(handle))
	}
	slices.SortFunc(changes, func(a, b string) int { return cmp.Or(strings.Compare(a[2:], b[2:]), strings.Compare(a, b)) })
	for _, change := range changes {
		fmt.Fprintln(streams.stdout, change)
	}
	if len(changes) == 0 {
		fmt.Fprintf(streams.stdout, "Nothing would change: %s stay as they are.\n", count(kept, "server"))
		return nil
	}
	fmt.Fprintf(streams.stdout, "%s would change, %d stay as they are.\n", count(len(changes), "server"), kept)
	return nil
}

// reachable is an address that the bridge can be reached at if it listens at this one.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("127.0.0.1", port)
	}
	return listen
}

// maxListBytes bounds the list of a running bridge's servers.
const maxListBytes = 64 << 20

// runningServers asks a bridge for its servers.
func runningServers(ctx context.Context, base, key string) ([]routes.AdminServer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/admin/servers", nil)
	if err != nil {
		return nil, errors.New("--url is not the URL of a bridge")
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := (&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}).Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which may hold a password
		}
		return nil, fmt.Errorf("no running bridge can be asked: %w; --url says where it runs", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxListBytes))
	if err != nil {
		return nil, fmt.Errorf("the running bridge did not answer whole: %w", err)
	}
	if res.StatusCode == http.StatusUnauthorized && key == "" {
		return nil, errors.New("the running bridge asks for a key with the scope admin: put it into $BRIDGE_KEY")
	}
	if res.StatusCode != http.StatusOK {
		var p struct{ Detail string }
		_ = json.Unmarshal(body, &p) // it may be no bridge at all
		return nil, fmt.Errorf("the running bridge answers %d: %s", res.StatusCode, line(cmp.Or(p.Detail, "it gives no reason")))
	}
	var list routes.AdminList
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, errors.New("what runs there is no bridge: its answer is no list of servers")
	}
	return list.Servers, nil
}
