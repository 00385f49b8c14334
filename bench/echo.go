package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"mcpbridge/internal/raw"
)

// An echo is the MCP server that stands behind everything that is measured. It does
// as little as such a server can, so that what is measured is what stands in front of it.
type echo struct {
	tools int // in its list, all in all

	mu      sync.Mutex
	changes int            // how often its list has changed
	texts   map[int][]byte // :: size -> a JSON string
	records map[int][]byte // :: size -> an object
}

func newEcho(tools int) *echo {
	return &echo{tools: tools, texts: map[int][]byte{}, records: map[int][]byte{}}
}

// A reply is one message in pieces, so that a large one need not be copied together.
type reply struct {
	head, body, tail []byte
	more             []byte // a notification that goes with it
}

func (r *reply) size() int { return len(r.head) + len(r.body) + len(r.tail) }

func (r *reply) writeTo(w io.Writer) error {
	for _, piece := range [...][]byte{r.head, r.body, r.tail} {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

// silent is the tool that never answers.
const silent = "wait"

// answer answers one message. It returns nil for what has no answer: notifications, and calls of silent.
func (e *echo) answer(line []byte) (*reply, error) {
	f, err := raw.ParseFrame(line)
	if err != nil {
		return nil, err
	}
	if f.ID == nil {
		return nil, nil
	}
	head := append(append([]byte(`{"jsonrpc":"2.0","id":`), f.ID...), `,"result":`...)
	switch method := raw.Unquote(f.Method); method {
	case "tools/call":
		args := raw.Get(f.Params, "arguments")
		switch name := raw.GetString(f.Params, "name"); name {
		case silent:
			return nil, nil
		case "text":
			size, _ := strconv.Atoi(string(raw.Get(args, "size")))
			return textReply(head, e.text(size)), nil
		case "records":
			size, _ := strconv.Atoi(string(raw.Get(args, "size")))
			return &reply{head: append(head, `{"content":[],"structuredContent":`...), body: e.record(size), tail: []byte("}}")}, nil
		case "change":
			e.mu.Lock()
			e.changes++
			e.mu.Unlock()
			r := textReply(head, []byte(`"changed"`))
			r.more = []byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
			return r, nil
		default:
			return textReply(head, raw.Get(args, "text")), nil
		}
	case "tools/list":
		return &reply{head: head, body: e.list(), tail: []byte("}")}, nil
	case "initialize":
		version := raw.AppendQuote(nil, raw.GetString(f.Params, "protocolVersion"))
		head = append(append(head, `{"protocolVersion":`...), version...)
		return &reply{head: append(head, `,"capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"echo","version":"1"}}}`...)}, nil
	case "ping":
		return &reply{head: append(head, "{}}"...)}, nil
	default:
		head = append(append([]byte(`{"jsonrpc":"2.0","id":`), f.ID...), `,"error":{"code":-32601,"message":"unknown method"}}`...)
		return &reply{head: head}, nil
	}
}

func textReply(head, quoted []byte) *reply {
	if quoted == nil {
		quoted = []byte(`""`)
	}
	return &reply{head: append(head, `{"content":[{"type":"text","text":`...), body: quoted, tail: []byte("}]}}")}
}

// text returns a JSON string of that many characters, made once.
func (e *echo) text(size int) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.texts[size]
	if t == nil {
		t = quotedText(size)
		e.texts[size] = t
	}
	return t
}

func quotedText(size int) []byte {
	const words = "The quick brown fox jumps over the lazy dog, and nobody minds. "
	t := append([]byte{'"'}, bytes.Repeat([]byte(words), size/len(words)+1)[:size]...)
	return append(t, '"')
}

// record returns an object of about that many bytes: a few fields, and a long list of small objects.
func (e *echo) record(size int) []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.records[size]
	if r == nil {
		r = append(make([]byte, 0, size+1024), `{"title":"A long list","items":[`...)
		text := quotedText(400)
		for i := 0; len(r) < size; i++ {
			if i > 0 {
				r = append(r, ',')
			}
			r = append(fmt.Appendf(r, `{"id":%d,"name":"item %d","tags":["a","b"],"text":`, i, i), text...)
			r = append(r, '}')
		}
		r = append(r, `],"last":"a short field at the end"}`...)
		e.records[size] = r
	}
	return r
}

// list returns the list of tools: those that do something, and the rest to make it long.
func (e *echo) list() []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	size := `{"type":"object","properties":{"size":{"type":"integer","minimum":0}},"required":["size"]}`
	tools := []string{
		tool("echo", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`, "Returns its text."),
		tool("text", size, "Returns a text of so many characters."),
		tool("records", size, "Returns an object of about so many bytes."),
		tool(silent, `{"type":"object"}`, "Never answers."),
		tool("change", `{"type":"object"}`, fmt.Sprintf("Changes the list, which it has done %d times.", e.changes)),
	}
	for i := len(tools); i < e.tools; i++ {
		tools = append(tools, tool(fmt.Sprintf("filler_%04d", i), fillerSchema, fmt.Sprintf("Tool %d. %s", i, strings.Repeat("It is there to be described. ", 5))))
	}
	return []byte(`{"tools":[` + strings.Join(tools, ",") + `]}`)
}

func tool(name, schema, description string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s}`, name, description, schema)
}

// fillerSchema is of the size and kind that servers in use have.
const fillerSchema = `{"type":"object","properties":{` +
	`"query":{"type":"string","minLength":1,"maxLength":500,"description":"What to look for, in the words of the one who asks."},` +
	`"limit":{"anyOf":[{"type":"integer","minimum":1,"maximum":100},{"type":"null"}],"default":null,"title":"Limit"},` +
	`"sort":{"type":"string","enum":["created","updated","comments"],"default":"created","description":"The order of what is found."},` +
	`"filter":{"type":"object","properties":{"state":{"type":"string","enum":["open","closed","all"]},` +
	`"labels":{"type":"array","items":{"type":"string","pattern":"^[a-z-]+$"},"maxItems":20},"owner":{"$ref":"#/$defs/Person"}},"additionalProperties":false},` +
	`"watchers":{"type":"array","items":{"$ref":"#/$defs/Person"}}},"required":["query"],` +
	`"$defs":{"Person":{"type":"object","properties":{"name":{"type":"string"},"email":{"type":"string","format":"email"}},"required":["name"]}}}`

// stdio serves lines. Answers to what came together leave together.
func (e *echo) stdio(in io.Reader, out io.Writer) error {
	r, w := bufio.NewReaderSize(in, 256<<10), bufio.NewWriterSize(out, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		a, err := e.answer(line)
		if err != nil {
			return err
		}
		if a != nil {
			err = errors.Join(a.writeTo(w), w.WriteByte('\n'))
			if a.more != nil {
				_, _ = w.Write(a.more)
			}
		}
		if r.Buffered() == 0 {
			err = errors.Join(err, w.Flush())
		}
		if err != nil {
			return err
		}
	}
}

// ServeHTTP is Streamable HTTP without sessions and streams, which a server need not have.
func (e *echo) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := readAll(r)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	a, err := e.answer(body)
	switch {
	case err != nil:
		w.WriteHeader(http.StatusBadRequest)
	case a == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(a.size())}
		_ = a.writeTo(w)
	}
}

// readAll reads a request's body, whose length is known of all that is sent here.
func readAll(r *http.Request) ([]byte, error) {
	if r.ContentLength < 0 || r.ContentLength > 64<<20 {
		return io.ReadAll(io.LimitReader(r.Body, 64<<20))
	}
	b := make([]byte, r.ContentLength)
	_, err := io.ReadFull(r.Body, b)
	return b, err
}

// bare is the handler that bounds what can be had with net/http: JSON in, JSON out, and nothing between.
func bare() http.Handler {
	e := newEcho(0)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /echo", func(w http.ResponseWriter, r *http.Request) {
		body, err := readAll(r)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(body)
	})
	mux.HandleFunc("POST /text", func(w http.ResponseWriter, r *http.Request) {
		var args struct{ Size int }
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		text := e.text(args.Size)
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
		_, _ = w.Write(text)
	})
	mux.HandleFunc("GET /static", func(w http.ResponseWriter, r *http.Request) {
		size, _ := strconv.Atoi(r.URL.Query().Get("size"))
		w.Header()["Content-Type"] = []string{"application/json"}
		w.Header()["Content-Length"] = []string{strconv.Itoa(size)}
		_, _ = w.Write(e.text(size)[:size])
	})
	return mux
}

// listenAndServe serves on an address until ctx is done.
func listenAndServe(ctx context.Context, addr string, h http.Handler) error {
	srv := &http.Server{Addr: addr, Handler: h} //nolint:gosec // only on loopback, for our own load
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
