package remote

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// TLS is what a connection over https needs beyond the system's own settings.
// The files are read at each [Dial], so that renewed ones count.
type TLS struct {
	CA         string // path of PEM certificates to trust, in place of the system's
	Cert, Key  string // paths of our own PEM certificate and key; both or none
	ServerName string // the name to expect of the server, in place of the URL's
}

// config returns nil if nothing is set.
func (t TLS) config() (*tls.Config, error) {
	if t == (TLS{}) {
		return nil, nil
	}
	c := &tls.Config{ServerName: t.ServerName, MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("read the certificates to trust: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s holds no PEM certificate", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("a client certificate needs both its certificate and its key")
	}
	if t.Cert != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, fmt.Errorf("load the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// newTransport returns a transport of its own for one connection.
func newTransport(t TLS, proxy string) (*http.Transport, error) {
	conf, err := t.config()
	if err != nil {
		return nil, err
	}
	via, err := proxyFunc(proxy)
	if err != nil {
		return nil, err
	}
	return &http.Transport{
		Proxy:               via,
		TLSClientConfig:     conf,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second,
		ForceAttemptHTTP2:   true,
		// Without pings a call on a connection that has silently died waits for its whole time.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 15 * time.Second},
		MaxIdleConnsPerHost:    64, // the default of 2 makes a new connection for nearly every parallel call
		IdleConnTimeout:        60 * time.Second,
		MaxResponseHeaderBytes: 256 << 10,
	}, nil
}

func proxyFunc(proxy string) (func(*http.Request) (*url.URL, error), error) {
	switch proxy {
	case "":
		return http.ProxyFromEnvironment, nil
	case "none":
		return nil, nil
	}
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, errors.New("the URL of the proxy is not one of http, https or socks5 with a host")
	}
	return http.ProxyURL(u), nil
}

// fixedHeaders checks the headers that every request carries, and adds the
// credentials that stand in the URL.
func fixedHeaders(given http.Header, u *url.URL) (http.Header, error) {
	h := http.Header{}
	for name, values := range given {
		if !isToken(name) {
			return nil, fmt.Errorf("%q is no name for a header", name)
		}
		name = http.CanonicalHeaderKey(name)
		for _, v := range values {
			if v = strings.TrimSpace(v); strings.ContainsFunc(v, isControl) {
				return nil, fmt.Errorf("the value of header %s has characters that no header may have", name)
			}
			h[name] = append(h[name], v)
		}
	}
	if h.Get("Authorization") == "" && u.User != nil {
		password, _ := u.User.Password()
		h.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password)))
	}
	return h, nil
}

// isToken reports whether s may be the name of a header (RFC 9110 section 5.6.2).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// display returns what may be shown of a URL.
func display(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// sameOrigin reports whether two URLs lead to the same server (RFC 6454 section 4).
func sameOrigin(a, b *url.URL) bool {
	port := func(u *url.URL) string {
		switch p := u.Port(); {
		case p != "":
			return p
		case u.Scheme == "https":
			return "443"
		default:
			return "80"
		}
	}
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}
