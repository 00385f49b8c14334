package remote

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"mcpbridge/internal/mcp/rpc"
	"mcpbridge/internal/raw"
)

// modernHeaders are what a request of 2026-07-28 repeats of its body, so that
// what stands between can route by it (SEP-2243).
func (c *Conn) modernHeaders(r *rpc.Request) http.Header {
	h := http.Header{headerMethod: {r.Method}}
	if r.Name != "" {
		if name := encodeHeader(r.Name); c.rawNames.Load() && !strings.ContainsFunc(r.Name, isControl) {
			h[headerName] = []string{r.Name}
		} else {
			h[headerName] = []string{name}
		}
	}
	// A schema without the word has no such parameters; most have none.
	if bytes.Contains(r.Input, []byte("x-mcp-header")) {
		paramHeaders(h, r.Input, r.Args)
	}
	return h
}

// paramHeaders sets the headers of all arguments, at any depth, whose schema asks for one.
func paramHeaders(h http.Header, schema, args []byte) {
	for m := range raw.Members(raw.Get(schema, "properties")) {
		arg := raw.Get(args, m.Name())
		if arg == nil {
			continue
		}
		if name := raw.GetString(m.Val, "x-mcp-header"); isToken(name) {
			if v, ok := primitive(arg); ok {
				h[http.CanonicalHeaderKey(headerParam+name)] = []string{encodeHeader(v)}
			}
		}
		paramHeaders(h, m.Val, arg)
	}
}

// CheckParamHeaders reports what is wrong with the headers that a tool's input
// schema asks for. Since 2026-07-28 a client over Streamable HTTP must leave out a tool whose
// x-mcp-header is no name, stands twice, or belongs to a value that fits no header.
func CheckParamHeaders(schema json.RawMessage) error {
	if !bytes.Contains(schema, []byte("x-mcp-header")) {
		return nil
	}
	return checkParamHeaders(schema, map[string]bool{})
}

func checkParamHeaders(schema []byte, seen map[string]bool) error {
	for m := range raw.Members(raw.Get(schema, "properties")) {
		if asked := raw.Get(m.Val, "x-mcp-header"); asked != nil {
			name := raw.GetString(m.Val, "x-mcp-header")
			if !isToken(name) {
				return fmt.Errorf("the x-mcp-header of %q is no name for a header", m.Name())
			}
			lower := strings.ToLower(name)
			if seen[lower] {
				return fmt.Errorf("the x-mcp-header %q stands twice", name)
			}
			seen[lower] = true
			switch raw.GetString(m.Val, "type") {
			case "string", "integer", "boolean":
			default:
				return fmt.Errorf("the x-mcp-header of %q is on neither a string, an integer nor a boolean", m.Name())
			}
		}
		if err := checkParamHeaders(m.Val, seen); err != nil {
			return err
		}
	}
	return nil
}

// primitive returns the text of a string, a boolean, or an integer that every
// reader of JSON holds exactly. Nothing else may stand in a header.
func primitive(v []byte) (string, bool) {
	switch raw.KindOf(v) {
	case raw.String:
		return raw.Unquote(v), true
	case raw.Bool:
		return string(bytes.TrimSpace(v)), true
	case raw.Number:
		const safe = 1<<53 - 1
		var f float64
		if json.Unmarshal(v, &f) != nil || f != math.Trunc(f) || math.Abs(f) > safe {
			return "", false
		}
		return strconv.FormatInt(int64(f), 10), true
	default:
		return "", false
	}
}

const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// encodeHeader makes a text fit for a header: as it is if it is visible ASCII
// without space around it and does not look encoded, else in base64.
func encodeHeader(s string) string {
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) &&
		s == strings.TrimSpace(s) &&
		!(strings.HasPrefix(s, encodedPrefix) && strings.HasSuffix(s, encodedSuffix))
	if plain {
		return s
	}
	return encodedPrefix + base64.StdEncoding.EncodeToString([]byte(s)) + encodedSuffix
}

// clientMeta returns the members that every request's _meta has since 2026-07-28.
func clientMeta(o rpc.Options) string {
	name, version := clientInfo(o)
	b := []byte(`"io.modelcontextprotocol/protocolVersion":"` + v20260728 + `","io.modelcontextprotocol/clientInfo":{"name":`)
	b = raw.AppendQuote(b, name)
	b = raw.AppendQuote(append(b, `,"version":`...), version)
	offers := `{}`
	if o.Elicitation { // as rpc.NewClient has it
		offers = `{"elicitation":{"form":{},"url":{}}}`
	}
	return string(append(append(b, `},"io.modelcontextprotocol/clientCapabilities":`...), offers...))
}
