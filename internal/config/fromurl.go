package config

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// FromURL returns the configuration of one server behind a URL. Its handle
// comes from the URL, see [URLHandle].
func FromURL(rawURL string) (*Config, error) {
	if err := checkURL(rawURL, false, "http", "https"); err != nil {
		return nil, fmt.Errorf("the URL of the server %w", err)
	}
	cfg := Default()
	s := newServer(URLHandle(rawURL), &cfg.Bridge)
	s.Transport = HTTP
	s.URL = Plain(rawURL)
	cfg.Servers = []Server{s}
	return cfg, nil
}

// genericLabels and genericSegments are in many servers' URLs.
var (
	genericLabels   = []string{"mcp", "api", "www", "server", "app", "remote"}
	genericSegments = []string{"mcp", "sse", "api", "server", "servers", "message", "messages", "http", "stream", "v1", "v2", "v3"}
)

// URLHandle makes a handle from a URL: from its host, or where that says
// nothing, from its path.
//
//	https://mcp.example.com/mcp       example
//	http://localhost:3000/weather/mcp weather
func URLHandle(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil {
		return fallbackHandle
	}
	host := strings.ToLower(u.Hostname())
	_, notIP := netip.ParseAddr(host)
	if notIP != nil && host != "localhost" {
		labels := strings.Split(host, ".")
		for len(labels) > 2 && slices.Contains(genericLabels, labels[0]) {
			labels = labels[1:]
		}
		if h := cleanHandle(labels[0]); h != "" && h != "bridge" {
			return h
		}
	}
	for _, segment := range slices.Backward(strings.Split(u.Path, "/")) {
		if slices.Contains(genericSegments, strings.ToLower(segment)) {
			continue
		}
		if h := cleanHandle(segment); h != "" && h != "bridge" {
			return h
		}
	}
	return fallbackHandle
}
