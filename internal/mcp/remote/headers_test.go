package remote

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpbridge/internal/mcp/rpc"
)

func TestEncodeHeader(t *testing.T) {
	for in, want := range map[string]string{
		"us-west1": "us-west1", "": "", "a b": "a b",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"\tx":                "=?base64?CXg=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"=?base64?open":      "=?base64?open",
		"\x7f":               "=?base64?fw==?=",
	} {
		if got := encodeHeader(in); got != want {
			t.Errorf("encodeHeader(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestParamHeaders(t *testing.T) {
	schema := `{"type":"object","properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"n":{"type":"integer","x-mcp-header":"n"},
		"yes":{"type":"boolean","x-mcp-header":"Yes"},
		"deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Deeper"}}},
		"null":{"type":"string","x-mcp-header":"Null"},
		"missing":{"type":"string","x-mcp-header":"Missing"},
		"float":{"type":"number","x-mcp-header":"Float"},
		"big":{"type":"integer","x-mcp-header":"Big"},
		"object":{"type":"object","x-mcp-header":"Object"},
		"bad":{"type":"string","x-mcp-header":"Bad Name\r\nX"},
		"odd":{"type":"string","x-mcp-header":5},
		"plain":{"type":"string"}
	}}`
	args := `{"region":"wörld","n":4.2e1,"yes":true,"deep":{"er":"x\ny"},"null":null,"float":1.5,"big":9007199254740993,"object":{},"bad":"v","odd":"v","plain":"v"}`
	h := http.Header{}
	paramHeaders(h, []byte(schema), []byte(args))
	want := http.Header{
		"Mcp-Param-Region": {"=?base64?d8O2cmxk?="}, "Mcp-Param-N": {"42"}, "Mcp-Param-Yes": {"true"},
		"Mcp-Param-Deeper": {"=?base64?eAp5?="},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

func TestModernHeadersOnTheWire(t *testing.T) {
	s := modernServer(t, answerJSON("{}"))
	c := dial(t, Options{URL: s.URL})
	r := request1(`{"q":"x"}`)
	r.Input = []byte(`{"properties":{"q":{"type":"string","x-mcp-header":"Q"}}}`)
	if _, err := c.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if got := s.got("tools/call")[0].header.Get("Mcp-Param-Q"); got != "x" {
		t.Errorf("Mcp-Param-Q is %q", got)
	}
}

// TestNamesThatNeedEncoding: as the specification has it first, and as it stands
// for servers that compare it so; which of them is remembered.
func TestNamesThatNeedEncoding(t *testing.T) {
	encoded := encodeHeader("tööl")
	for name, accept := range map[string]string{"by the specification": encoded, "as it stands": "tööl"} {
		t.Run(name, func(t *testing.T) {
			s := modernServer(t, nil)
			s.set("tools/call", func(w http.ResponseWriter, r *http.Request, m *seen) {
				if m.header.Get("Mcp-Name") != accept {
					rpcErr(400, "-32020", "")(w, r, m)
					return
				}
				answerJSON("{}")(w, r, m)
			})
			c := dial(t, Options{URL: s.URL})
			for range 3 {
				r := request1("{}")
				r.Name = "tööl"
				if _, err := c.Do(t.Context(), r); err != nil {
					t.Fatal(err)
				}
			}
			want := 3
			if accept != encoded {
				want = 4
			}
			if n := len(s.got("tools/call")); n != want {
				t.Errorf("%d requests came, want %d", n, want)
			}
		})
	}
	t.Run("refused either way", func(t *testing.T) {
		s := modernServer(t, rpcErr(400, "-32020", ""))
		c := dial(t, Options{URL: s.URL})
		r := request1("{}")
		r.Name = "tööl"
		_, err := c.Do(t.Context(), r)
		if diff := cmp.Diff(&rpc.Error{Code: codeHeaderMismatch, Message: "m"}, err); diff != "" {
			t.Errorf("error (-want +got):\n%s", diff)
		}
		if n := len(s.got("tools/call")); n != 2 {
			t.Errorf("%d requests came, want 2", n)
		}
	})
}

func TestCheckParamHeaders(t *testing.T) {
	for schema, want := range map[string]string{
		`{"type":"object"}`: "",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"integer","x-mcp-header":"C"}}}}}`: "",
		`{"properties":{"x-mcp-header":{"type":"number"}}}`:                                                                        "",
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                 `of "a" is no name`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"A b"}}}`:                                                              `of "a" is no name`,
		`{"properties":{"a":{"type":"string","x-mcp-header":5}}}`:                                                                  `of "a" is no name`,
		`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                                                                "neither a string",
		`{"properties":{"a":{"x-mcp-header":"A"}}}`:                                                                                "neither a string",
		`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"properties":{"c":{"type":"string","x-mcp-header":"a"}}}}}`:  "stands twice",
	} {
		err := CheckParamHeaders([]byte(schema))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("CheckParamHeaders(%s) = %v, want %q", schema, err, want)
		}
	}
}
