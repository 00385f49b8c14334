package jobs

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// A claim is what bridges know of a call with a key: which of them has it and, in
// the end, what came of it. It is kept as one line of JSON, followed by the bytes
// of the result.
type claim struct {
	Print   []byte    `json:"print"` // of what was called
	Node    string    `json:"node"`
	Job     string    `json:"job"`
	Created time.Time `json:"created"`

	Done     bool             `json:"done,omitempty"`
	Problem  *Problem         `json:"problem,omitempty"`
	Artifact *bridge.Artifact `json:"artifact,omitempty"`
	Breach   string           `json:"breach,omitempty"`

	Raw   int  `json:"raw,omitempty"`  // bytes of the whole result, which is that of the problem if there is one
	Data  int  `json:"data,omitempty"` // bytes of its data, where that is not found in the result
	Flate bool `json:"flate,omitempty"`
}

const (
	maxKept   = 8 << 20 // bytes of a result that is kept for a call with a key
	flateFrom = 4 << 10 // bytes from which on they are compressed
)

// encode returns the claim as it is kept.
func (c *claim) encode(body []byte) ([]byte, error) {
	if c.Flate = len(body) >= flateFrom; c.Flate {
		var b bytes.Buffer
		w, err := flate.NewWriter(&b, flate.BestSpeed)
		if err != nil {
			return nil, err
		}
		_, err = w.Write(body)
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
		body = b.Bytes()
	}
	head, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	return append(append(head, '\n'), body...), nil
}

// decodeClaim returns a claim and the bytes of its result.
func decodeClaim(b []byte) (*claim, []byte, error) {
	head, body, _ := bytes.Cut(b, []byte("\n"))
	c := &claim{}
	if err := json.Unmarshal(head, c); err != nil {
		return nil, nil, err
	}
	if c.Raw < 0 || c.Data < 0 || c.Raw > maxKept || c.Data > maxKept {
		return nil, nil, errors.New("the sizes are wrong")
	}
	if c.Flate {
		r := flate.NewReader(bytes.NewReader(body))
		body = make([]byte, c.Raw+c.Data)
		if _, err := io.ReadFull(r, body); err != nil {
			return nil, nil, err
		}
	}
	if len(body) != c.Raw+c.Data {
		return nil, nil, errors.New("the result is not as long as it should be")
	}
	return c, body, nil
}

// settled returns the claim with what came of the call.
func (c claim) settled(a *bridge.Answer, err error) ([]byte, error) {
	c.Done = true
	var result *bridge.Result
	if err != nil {
		c.Problem = problemOf(err)
		if e, ok := errors.AsType[*bridge.Error](err); ok {
			result = e.Result
		}
	} else {
		c.Artifact, c.Breach, result = a.Artifact, a.Breach, a.Result
	}
	if result == nil {
		return c.encode(nil)
	}
	raw, data := []byte(result.Raw), bytes.Join(result.Data(), nil)
	if again, err := bridge.ParseResult(raw); err == nil && bytes.Equal(bytes.Join(again.Data(), nil), data) {
		data = nil
	}
	if len(raw)+len(data) > maxKept {
		c.Artifact, c.Breach = nil, ""
		c.Problem = &Problem{Kind: bridge.OutcomeUnknown, Msg: fmt.Sprintf("The tool ran, and its answer of %d bytes was given to the first call under this Idempotency-Key; it was too large to be kept for another one.", len(raw))}
		return c.encode(nil)
	}
	c.Raw, c.Data = len(raw), len(data)
	return c.encode(append(slices.Clip(raw), data...))
}

// outcome returns what came of the call.
func (c *claim) outcome(body []byte) (*bridge.Answer, error) {
	var result *bridge.Result
	if c.Raw > 0 {
		r, err := bridge.ParseResult(body[:c.Raw:c.Raw])
		if err != nil {
			return nil, unreachable(fmt.Errorf("a stored answer cannot be read: %w", err))
		}
		if result = r; c.Data > 0 {
			result.SetData(body[c.Raw:])
		}
	}
	if c.Problem != nil {
		return nil, &bridge.Error{Kind: c.Problem.Kind, Op: "jobs.Once", Msg: c.Problem.Msg, RetryAfter: c.Problem.RetryAfter, Members: c.Problem.Members, Result: result}
	}
	if result == nil {
		return nil, unreachable(errors.New("a stored answer is not there"))
	}
	return &bridge.Answer{Result: result, Artifact: c.Artifact, Breach: c.Breach}, nil
}
