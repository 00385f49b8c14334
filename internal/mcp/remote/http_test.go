package remote

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

func TestHeaders(t *testing.T) {
	s := sessionServer(t, answerJSON("{}"))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("me", "pass word")
	u.RawQuery = "key=1"
	c := dial(t, Options{URL: u.String(), Protocol: v20251125, Headers: http.Header{
		"x-key": {"a", " b "}, "User-Agent": {"mine"}, "Accept": {"nonsense"}, "Host": {"other.example"},
	}})
	if _, err := call1(t, c, `{}`); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"initialize", "notifications/initialized", "GET", "tools/call"} {
		m := s.await(t, name, 1)[0]
		if got := strings.Join(m.header["X-Key"], "|"); got != "a|b" {
			t.Errorf("%s: X-Key is %q", name, got)
		}
		if got := m.header.Get("Authorization"); got != "Basic bWU6cGFzcyB3b3Jk" {
			t.Errorf("%s: Authorization is %q", name, got)
		}
		if m.header.Get("User-Agent") != "mine" || m.header.Get("Accept") == "nonsense" {
			t.Errorf("%s: headers are %v", name, m.header)
		}
	}
	t.Run("Authorization wins over the URL", func(t *testing.T) {
		s := sessionServer(t, nil)
		dial(t, Options{URL: strings.Replace(s.URL, "://", "://me:pw@", 1), Protocol: v20251125, Headers: http.Header{"Authorization": {"Bearer x"}}})
		if got := s.got("initialize")[0].header.Get("Authorization"); got != "Bearer x" {
			t.Errorf("Authorization is %q", got)
		}
	})
}

// TestSecretsStaySecret: a server that shows the whole request in its error page
// does not get it into our errors or logs.
func TestSecretsStaySecret(t *testing.T) {
	secret := []string{"tok-12345", "key-67890", "querysecret", "pass%2Fword", "pass/word", "another value"}
	echo := func(code int, contentType string) handler {
		return func(w http.ResponseWriter, r *http.Request, m *seen) {
			w.Header().Set("Content-Type", contentType)
			w.Header().Set("Location", "http://elsewhere.example/x/querysecret?token=querysecret")
			w.WriteHeader(code)
			_, password, _ := r.BasicAuth()
			if contentType == "application/json" {
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"%s %s"}}`, m.id, r.RequestURI, m.header.Get("X-Key"))
				return
			}
			_, _ = fmt.Fprintf(w, "uri=%s headers=%v password=%s", r.RequestURI, m.header, password)
		}
	}
	var logs logged
	check := func(t *testing.T, err error) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		for _, s := range secret {
			if strings.Contains(err.Error(), s) {
				t.Errorf("%q is in the error %q", s, err)
			}
			if strings.Contains(logs.String(), s) {
				t.Errorf("%q is in the log %q", s, logs.String())
			}
		}
	}
	for _, code := range []int{200, 302, 307, 400, 401, 404, 405, 500, 502} {
		for _, basic := range []bool{false, true} {
			s := newServer(t, map[string]handler{"server/discover": echo(code, "text/html"), "initialize": echo(code, "application/json"), "GET": echo(code, "text/html")})
			o := Options{
				URL:     s.URL + "/path?key=querysecret&x=another+value",
				Headers: http.Header{"Authorization": {"Bearer tok-12345"}, "X-Key": {"key-67890"}},
			}
			if basic {
				o.Headers.Del("Authorization")
				o.URL = strings.Replace(o.URL, "://", "://me:pass%2Fword@", 1)
			}
			o.Log = logs.logger()
			for _, o.Protocol = range []string{Auto, v20260728, v20251125, SSE} {
				_, err := Dial(t.Context(), o)
				check(t, err)
			}
			s.close()
			_, err := Dial(t.Context(), o)
			check(t, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	redirect := func(to string, code int) handler {
		return func(w http.ResponseWriter, r *http.Request, _ *seen) {
			if to == "" {
				w.WriteHeader(code)
				return
			}
			http.Redirect(w, r, to, code)
		}
	}
	// serve makes a server that redirects everything from /mcp.
	serve := func(t *testing.T, to string, code int) *server {
		s := sessionServer(t, answerJSON("{}"))
		for name, h := range s.on {
			s.on[name] = func(w http.ResponseWriter, r *http.Request, m *seen) {
				if r.URL.Path == "/mcp" {
					redirect(to, code)(w, r, m)
				} else {
					h(w, r, m)
				}
			}
		}
		return s
	}
	for _, code := range []int{307, 308} {
		s := serve(t, "/mcp/", code)
		c := dial(t, pinned(s))
		if _, err := call1(t, c, odd); err != nil {
			t.Errorf("%d within the origin: %v", code, err)
		}
		if m := s.got("tools/call"); len(m) != 2 || string(m[0].body) != string(m[1].body) {
			t.Errorf("the call was sent %d times, want it redirected once with its body", len(m))
		}
	}
	other := sessionServer(t, nil)
	for _, test := range []struct {
		name    string
		to      string
		code    int
		headers http.Header
		want    string
	}{
		{"with credentials", "/mcp/?token=x", 307, http.Header{"X-Key": {"secret"}}, "/mcp/, which is not followed"},
		{"another origin", other.URL + "/mcp?token=x", 307, nil, other.URL + "/mcp, which"},
		{"by GET", "/mcp/", 302, nil, "/mcp/, which is not followed"},
		{"for ever", "/mcp", 307, nil, "/mcp, which is not followed"},
		{"nowhere", "", 307, nil, "redirects to nowhere"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := serve(t, test.to, test.code)
			o := pinned(s)
			o.Headers = test.headers
			_, err := Dial(t.Context(), o)
			f := failed(t, err, rpc.Protocol)
			if !strings.Contains(f.Msg, "redirects to") || !strings.Contains(f.Msg, test.want) || strings.Contains(f.Msg, "token") {
				t.Errorf("failure is %q, want %q", f.Msg, test.want)
			}
			if n := len(s.got("")); n > 1+maxHops {
				t.Errorf("%d requests came", n)
			}
		})
	}
	if got := other.got(""); len(got) > 0 {
		t.Errorf("another origin got %d requests", len(got))
	}
}

// TestDeadConnections: a request of which nothing was written to a connection
// that turned out to be dead is sent again, once; one that may have arrived is not.
func TestDeadConnections(t *testing.T) {
	leakFree(t)
	for _, test := range []struct {
		name          string
		dead          int // connections, one after the other
		written       bool
		reason        rpc.Reason
		wantSent      int // of the call
		wantRoundTrip int
	}{
		{"one", 1, false, "", 1, 2},
		{"two", 2, false, rpc.NotSent, 0, 2},
		{"written", 1, true, rpc.Lost, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := sessionServer(t, answerJSON("{}"))
			base := &http.Transport{}
			t.Cleanup(base.CloseIdleConnections)
			var dead, trips atomic.Int32
			o := pinned(s)
			o.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method != http.MethodPost {
					return base.RoundTrip(r)
				}
				trips.Add(1)
				if dead.Add(-1) < 0 {
					return base.RoundTrip(r)
				}
				trace := httptrace.ContextClientTrace(r.Context())
				trace.GotConn(httptrace.GotConnInfo{Reused: true})
				err := errors.New("it is dead")
				if test.written {
					trace.WroteRequest(httptrace.WroteRequestInfo{})
				} else {
					trace.WroteRequest(httptrace.WroteRequestInfo{Err: err})
				}
				return nil, err
			})
			c := dial(t, o)
			dead.Store(int32(test.dead))
			trips.Store(0)
			_, err := call1(t, c, `{}`)
			if test.reason != "" {
				failed(t, err, test.reason)
			} else if err != nil {
				t.Error(err)
			}
			if n := len(s.got("tools/call")); n != test.wantSent || int(trips.Load()) != test.wantRoundTrip {
				t.Errorf("%d calls came in %d round trips, want %d in %d", n, trips.Load(), test.wantSent, test.wantRoundTrip)
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestConnectionsAreReused: answers are read so that their connections serve again.
func TestConnectionsAreReused(t *testing.T) {
	for name, h := range map[string]handler{
		"json": answerJSON(exact), "chunked": answerJSON(strings.Repeat(" ", 10_000) + "{}"),
		"events": events("data: {\"id\":%ID%,\"result\":{}}\n\n"),
		"events that end later": func(w http.ResponseWriter, _ *http.Request, m *seen) {
			stream(w)
			say(w, "data: {\"id\":%s,\"result\":{}}\n\n", m.id)
			time.Sleep(20 * time.Millisecond)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := sessionServer(t, h)
			var conns atomic.Int32
			tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conns.Add(1)
				return (&net.Dialer{}).DialContext(ctx, network, addr)
			}}
			t.Cleanup(tr.CloseIdleConnections)
			o := pinned(s)
			o.Transport = tr
			c := dial(t, o)
			s.await(t, "GET", 1)
			for range 10 {
				if _, err := call1(t, c, `{}`); err != nil {
					t.Fatal(err)
				}
				time.Sleep(40 * time.Millisecond) // for the stream's end
			}
			if n := conns.Load(); n > 3 {
				t.Errorf("%d connections were made", n)
			}
		})
	}
}

func TestTLS(t *testing.T) {
	leakFree(t)
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// A certificate that is its own authority, for the client.
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bridge"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(parsed)

	plain := sessionServer(t, answerJSON("{}"))
	for _, http2 := range []bool{false, true} {
		secure := httptest.NewUnstartedServer(plain.Config.Handler)
		secure.EnableHTTP2 = http2
		secure.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshakes that must fail
		secure.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}
		secure.StartTLS()
		t.Cleanup(secure.Close)
		ca := write("ca.pem", "CERTIFICATE", secure.Certificate().Raw)

		files := TLS{CA: ca, Cert: write("cert.pem", "CERTIFICATE", cert), Key: write("key.pem", "EC PRIVATE KEY", keyDER)}
		c, err := Dial(t.Context(), Options{URL: secure.URL, Protocol: v20251125, TLS: files})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := call1(t, c, odd); err != nil {
				t.Error(err)
			}
		}
		_ = c.Close()

		_, err = Dial(t.Context(), Options{URL: secure.URL, Protocol: v20251125})
		if f := failed(t, err, rpc.Start); !strings.Contains(f.Msg, "certificate signed by unknown authority") {
			t.Errorf("failure is %q", f.Msg)
		}
		files.ServerName = "somebody.else"
		_, err = Dial(t.Context(), Options{URL: secure.URL, Protocol: v20251125, TLS: files})
		if f := failed(t, err, rpc.Start); !strings.Contains(f.Msg, "somebody.else") {
			t.Errorf("failure is %q", f.Msg)
		}
		_, err = Dial(t.Context(), Options{URL: secure.URL, Protocol: v20251125, TLS: TLS{CA: ca}})
		failed(t, err, rpc.Start)
	}
}

func TestProxy(t *testing.T) {
	leakFree(t)
	s := sessionServer(t, answerJSON("{}"))
	asked := make(chan string, 64)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Host + " " + r.Header.Get("Proxy-Authorization")
		if !r.URL.IsAbs() {
			t.Errorf("the proxy was asked for %s", r.URL)
		}
		s.Config.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	o := Options{URL: "http://server.example/mcp", Protocol: v20251125, Proxy: strings.Replace(proxy.URL, "://", "://me:proxysecret@", 1)}
	c := dial(t, o)
	if _, err := call1(t, c, `{}`); err != nil {
		t.Error(err)
	}
	if got := <-asked; got != "server.example Basic bWU6cHJveHlzZWNyZXQ=" {
		t.Errorf("the proxy was asked %q", got)
	}
	_ = c.Close()
	proxy.Close()
	_, err := Dial(t.Context(), o)
	if f := failed(t, err, rpc.Start); strings.Contains(f.Error(), "proxysecret") {
		t.Errorf("failure is %q", f.Msg)
	}
	// No proxy at all: the name leads nowhere.
	t.Setenv("HTTP_PROXY", proxy.URL)
	via, err := proxyFunc("none")
	if via != nil || err != nil {
		t.Errorf("proxyFunc(none) = %p, %v", via, err)
	}
}

func TestSameOrigin(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"http://h/a", "http://H:80/b?c", true},
		{"https://h", "https://h:443/", true},
		{"http://[::1]:8/", "http://[::1]:8/x", true},
		{"http://h", "https://h", false},
		{"http://h:81", "http://h", false},
		{"https://h", "https://h.example", false},
	} {
		a, errA := url.Parse(test.a)
		b, errB := url.Parse(test.b)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if got := sameOrigin(a, b); got != test.want {
			t.Errorf("sameOrigin(%s, %s) = %t", a, b, got)
		}
	}
}

// TestDisplay: a URL that is secret as a whole is called something else.
func TestDisplay(t *testing.T) {
	s := newServer(t, map[string]handler{"server/discover": status(502)})
	_, err := Dial(t.Context(), Options{URL: s.URL + "/secretpath", Display: "mcp:x"})
	if f := failed(t, err, rpc.Start); !strings.HasPrefix(f.Msg, "mcp:x answered HTTP 502") {
		t.Errorf("failure is %q", f.Msg)
	}
	// Many servers name the path that they do not know.
	for _, path := range []string{"/a/b", "/s/secret%20path/mcp", "/s/secretpath/mcp?x=y"} {
		u, err := url.Parse(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		echo := newServer(t, map[string]handler{"server/discover": func(w http.ResponseWriter, _ *http.Request, _ *seen) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, "Cannot POST %s, nor %s; messages and %q neither", u.Path, u.EscapedPath(), strings.Split(u.EscapedPath(), "/")[2])
		}})
		_, err = Dial(t.Context(), Options{URL: echo.URL + path, Display: "mcp:x"})
		f := failed(t, err, rpc.Start)
		if !strings.Contains(f.Msg, "Cannot POST [secret], nor [secret]; messages and") || strings.Contains(f.Msg, "secret%20path") || strings.Contains(f.Msg, "secretpath") {
			t.Errorf("of %s it says %q", path, f.Msg)
		}
	}
}
