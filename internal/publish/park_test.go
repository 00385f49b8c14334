package publish

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
)

// A pausing server asks in the middle of its calls, as those with sessions do, and says how that went.
type pausing struct {
	*fixture
	ended chan error // of each call that was asked nothing any more
}

func newPausing(t *testing.T, change func(*Options)) *pausing {
	f := &pausing{newFixture(t, asks()), make(chan error, 10)}
	f.client = func(ctx context.Context, r bridge.Request) (*bridge.Result, error) {
		if r.Progress != nil {
			r.Progress([]byte(`{"progress":1}`))
		}
		replies, err := r.Ask(ctx, []bridge.Question{
			{ID: "1", Mode: "form", Message: "A number?", Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)},
		})
		if err != nil {
			f.ended <- err
			return nil, err
		}
		if r.Progress != nil {
			r.Progress([]byte(`{"progress":2}`))
		}
		b, err := json.Marshal(replies)
		return newResult(fmt.Sprintf(`{"content":[],"structuredContent":%s}`, b)), err
	}
	if change != nil {
		change(&f.opts)
	}
	f.serve()
	return f
}

// last returns the message that ends an answer.
func last(r response) []byte {
	at := strings.LastIndex(r.body, "data: ")
	return []byte(strings.TrimPrefix(r.body[max(at, 0):], "data: "))
}

// asked makes the call, or goes on with it, and returns the state under which it waits.
func (f *pausing) asked(more string, header ...string) (state string) {
	f.t.Helper()
	r := f.add(more, header...)
	var got struct {
		Result struct {
			ResultType, RequestState string
			InputRequests            map[string]struct {
				Method string
				Params struct {
					Mode, Message   string
					RequestedSchema json.RawMessage
				}
			}
		}
	}
	if err := json.Unmarshal(last(r), &got); err != nil {
		f.t.Fatalf("%v: %s", err, r.body)
	}
	q := got.Result.InputRequests["1"]
	if r.status != http.StatusOK || got.Result.ResultType != "input_required" || len(got.Result.InputRequests) != 1 || q.Method != "elicitation/create" ||
		q.Params.Mode != "form" || q.Params.Message != "A number?" || string(q.Params.RequestedSchema) != `{"type":"object","properties":{"n":{"type":"integer"}}}` {
		f.t.Fatalf("asked %d %s", r.status, r.body)
	}
	return got.Result.RequestState
}

// add makes a call of add with more members of its params.
func (f *pausing) add(more string, header ...string) response {
	f.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add"%s,"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, more)
	return f.do("POST", body, append([]string{versionHeader, modern, "Mcp-Method", "tools/call", "Mcp-Name", "demo__add"}, header...)...)
}

func reply(state, response string) string {
	return fmt.Sprintf(`,"requestState":%q,"inputResponses":{"other":{},"1":%s}`, state, response)
}

const accepted = `{"action":"accept","content":{"n":9007199254740993}}`

// A client without a session is asked by an answer, and the call goes on with its reply: to the byte, and once.
func TestHeld(t *testing.T) {
	f := newPausing(t, nil)
	state := f.asked("")
	r := f.add(reply(state, accepted))
	if !strings.Contains(r.message(), "progress") || !strings.Contains(r.body, `"structuredContent":{"1":{"action":"accept","content":{"n":9007199254740993}}}`) || !strings.Contains(r.body, `"progress":2`) {
		t.Errorf("the answer: %d %s", r.status, r.body)
	}
	if r = f.add(reply(state, accepted)); r.status != http.StatusBadRequest || !strings.Contains(r.body, `"code":-32602`) {
		t.Errorf("a state for the second time: %d %s", r.status, r.body)
	}
	if r = f.add(reply(f.asked(""), `{"action":"decline"}`)); !strings.Contains(r.body, `{"1":{"action":"decline"}}`) {
		t.Errorf("declined: %s", r.body)
	}
}

// What is no reply does not end a call, nor does what somebody else says.
func TestHeldBadReplies(t *testing.T) {
	f := newPausing(t, nil)
	state := f.asked("")
	for name, r := range map[string]response{
		"another user":   f.add(reply(state, accepted), "User", "bob"),
		"another state":  f.add(reply(state+"x", accepted)),
		"another tool":   f.modernly("tools/call", "demo__other", `"name":"demo__other"`+reply(state, accepted), `{"elicitation":{}}`),
		"of no elicitor": f.modernly("tools/call", "demo__add", `"name":"demo__nothing"`+reply(state, accepted), `{}`),
	} {
		if r.status != http.StatusBadRequest || !strings.Contains(r.body, `"error"`) {
			t.Errorf("%s: %d %s", name, r.status, r.body)
		}
	}
	again := f.asked(fmt.Sprintf(`,"requestState":%q,"inputResponses":{"other":{"action":"accept"}}`, state))
	if again == state {
		t.Error("the state is the same")
	}
	for _, wrong := range []string{`{"action":"perhaps"}`, `{"action":"accept","content":[]}`} {
		r := f.add(reply(again, wrong))
		var got struct {
			Error struct {
				Code int
				Data struct{ RequestState string }
			}
		}
		if err := json.Unmarshal(last(r), &got); err != nil || got.Error.Code != -32602 || got.Error.Data.RequestState == "" {
			t.Fatalf("%s: %d %s, %v", wrong, r.status, r.body, err)
		}
		again = got.Error.Data.RequestState
	}
	if r := f.add(reply(again, accepted)); !strings.Contains(r.body, `"structuredContent"`) {
		t.Errorf("the call was ended: %s", r.body)
	}
}

func TestHeldEnds(t *testing.T) {
	t.Run("in time", func(t *testing.T) {
		f := newPausing(t, func(o *Options) { o.InputWait = time.Millisecond })
		state := f.asked("")
		if err := <-f.ended; !errors.Is(err, errTooLate) {
			t.Errorf("it ended with %v", err)
		}
		if r := f.add(reply(state, accepted)); !strings.Contains(r.body, `-32602`) {
			t.Errorf("a reply that is late: %d %s", r.status, r.body)
		}
	})
	t.Run("with the server", func(t *testing.T) {
		f := newPausing(t, nil)
		f.asked("")
		f.server.Close()
		if err := <-f.ended; !errors.Is(err, errEnded) {
			t.Errorf("it ended with %v", err)
		}
		if r := f.add(""); !strings.Contains(r.body, errClosed.Error()) {
			t.Errorf("a call of a server that was closed: %d %s", r.status, r.body)
		}
	})
	t.Run("when there are too many", func(t *testing.T) {
		f := newPausing(t, func(o *Options) { o.SessionsPerOwner = 2 })
		states := []string{f.asked(""), f.asked("")}
		if r := f.add(""); !strings.Contains(r.body, "too many calls wait") || !strings.Contains(r.body, "rate-limited") {
			t.Errorf("a third: %d %s", r.status, r.body)
		}
		f.asked("", "User", "bob")
		for _, s := range states {
			if r := f.add(reply(s, accepted)); !strings.Contains(r.body, `"structuredContent"`) {
				t.Errorf("one of the first: %s", r.body)
			}
		}
	})
	t.Run("with its caller", func(t *testing.T) {
		f := newPausing(t, nil)
		asked := make(chan struct{})
		f.client = func(ctx context.Context, _ bridge.Request) (*bridge.Result, error) {
			close(asked)
			<-ctx.Done()
			f.ended <- context.Cause(ctx)
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"demo__add","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`
		req, err := http.NewRequestWithContext(ctx, "POST", f.url, bufio.NewReader(strings.NewReader(body)))
		if err != nil {
			t.Fatal(err)
		}
		for name, v := range map[string]string{"Accept": "application/json, text/event-stream", "Content-Type": "application/json", versionHeader: modern, "Mcp-Method": "tools/call", "Mcp-Name": "demo__add"} {
			req.Header.Set(name, v)
		}
		go func() { // ends with ctx
			if res, err := http.DefaultClient.Do(req); err == nil {
				_ = res.Body.Close()
			}
		}()
		<-asked
		cancel()
		if err := <-f.ended; err == nil {
			t.Error("the call goes on")
		}
	})
	t.Run("by a fault of ours", func(t *testing.T) {
		f := newPausing(t, nil)
		f.client = func(context.Context, bridge.Request) (*bridge.Result, error) { panic("oh") }
		if r := f.add(""); !strings.Contains(r.body, errFault.Message) || !strings.Contains(f.logged(), `"panic"`) {
			t.Errorf("got %d %s", r.status, r.body)
		}
	})
}

// What waits for a client that does not read is bounded in number and in bytes; the latest stays.
func TestNoticesAreBounded(t *testing.T) {
	n := newNotices(t.Context(), nil, 1, true)
	n.sending = true // the client takes nothing
	for i := range 3 * maxNotices {
		n.progress(json.RawMessage(fmt.Sprintf(`{"progress":%d}`, i)))
	}
	if len(n.waiting) != maxNotices || !strings.Contains(string(n.waiting[maxNotices-1].params), fmt.Sprintf(`"progress":%d`, 3*maxNotices-1)) {
		t.Errorf("%d wait, the last is %s", len(n.waiting), n.waiting[len(n.waiting)-1].params)
	}
	for range 5 {
		n.message(json.RawMessage(`{"level":"info","data":"` + strings.Repeat("x", noticeBytes/3) + `"}`))
	}
	if len(n.waiting) != 2 || n.size > noticeBytes {
		t.Errorf("%d wait with %d bytes", len(n.waiting), n.size)
	}
	n.message(json.RawMessage(`{"level":"info","data":"` + strings.Repeat("x", 2*noticeBytes) + `"}`))
	if len(n.waiting) != 1 {
		t.Errorf("%d wait beside a large one", len(n.waiting))
	}
}
