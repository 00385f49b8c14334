package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// handle is the server's name in the bridge, and so a part of every name that the bridge publishes.
const handle = "conformance"

// newProxy returns what stands between the suite, which asks for a server's own names,
// and a bridge, which publishes them under others: it changes names, and nothing else.
func newProxy(bridge *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = bridge.Scheme, bridge.Host
			r.Out.Host = r.In.Host // which the bridge checks
			r.Out.Header["Accept-Encoding"] = nil
			if name := r.Out.Header.Get("Mcp-Name"); name != "" {
				r.Out.Header.Set("Mcp-Name", public(r.Out.Header.Get("Mcp-Method"), name))
			}
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				return // the connection is broken, and so is what goes on
			}
			body = rename(body)
			r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		},
		ModifyResponse: func(res *http.Response) error {
			res.Body = &lines{in: bufio.NewReader(res.Body), Closer: res.Body}
			res.Header.Del("Content-Length")
			res.ContentLength = -1
			return nil
		},
		FlushInterval: -1, // events at once
	}
}

// rename returns a request with what it names called as the bridge does. What is no
// such request, or not even JSON, stays as it is.
func rename(body []byte) []byte {
	var m, params map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil || json.Unmarshal(m["params"], &params) != nil {
		return body
	}
	var method string
	_ = json.Unmarshal(m["method"], &method) // another type names no method
	switch method {
	case "tools/call", "prompts/get":
		replace(params, "name", method)
	case "completion/complete":
		var ref map[string]json.RawMessage
		if json.Unmarshal(params["ref"], &ref) != nil {
			return body
		}
		replace(ref, "name", method)
		params["ref"] = encode(ref)
	default:
		return body // the bridge knows the servers' own URIs, where only one server has it
	}
	m["params"] = encode(params)
	return encode(m)
}

func replace(in map[string]json.RawMessage, member, method string) {
	var name string
	if json.Unmarshal(in[member], &name) == nil {
		in[member] = encode(public(method, name))
	}
}

// public returns what the bridge calls a tool or a prompt.
func public(method, name string) string {
	if strings.HasPrefix(method, "resources/") {
		return name
	}
	return handle + "__" + name
}

func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, and what came out of JSON
	}
	return b
}

// lines reads an answer line by line, in which names and URIs are the server's own again.
type lines struct {
	in   *bufio.Reader
	rest []byte
	io.Closer
}

func (l *lines) Read(b []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.in.ReadBytes('\n')
		if len(line) == 0 {
			return 0, err
		}
		line = bytes.ReplaceAll(line, []byte(`"`+handle+`__`), []byte(`"`))
		l.rest = bytes.ReplaceAll(line, []byte(`"bridge:`+handle+`:`), []byte(`"`))
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}
