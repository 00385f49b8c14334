package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
)

// outside returns the way to wherever tokens are to be had. Requests to the server's own
// origin go as all others do; our certificate for the server is for nobody else.
func (c *Conn) outside() (*http.Client, error) {
	w := &ways{c: c, out: c.o.Transport}
	if w.out == nil {
		out, err := newTransport(TLS{}, c.o.Proxy)
		if err != nil {
			return nil, err
		}
		if out.TLSClientConfig, err = trusting(c.o.TLS.CA); err != nil {
			return nil, err
		}
		w.out, w.close = out, out.CloseIdleConnections
	}
	return &http.Client{Transport: w, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// trusting trusts what the system does, and the certificates of a file besides.
func trusting(ca string) (*tls.Config, error) {
	if ca == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(ca)
	if err != nil {
		return nil, fmt.Errorf("read the certificates to trust: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil { // the system has none
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(pem) // that there are some was seen when the connection was made
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// ways is the transport of an errand.
type ways struct {
	c     *Conn
	out   http.RoundTripper
	close func() // nil for one that is not ours
}

// RoundTrip implements [http.RoundTripper].
func (w *ways) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("User-Agent", w.c.agent) // the configured one is for the server
	if sameOrigin(r.URL, w.c.url) {
		return w.c.rt.RoundTrip(r)
	}
	return w.out.RoundTrip(r)
}

// CloseIdleConnections is what [http.Client.CloseIdleConnections] calls.
func (w *ways) CloseIdleConnections() {
	if w.close != nil {
		w.close()
	}
}
