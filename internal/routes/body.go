package routes

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"mcpbridge/internal/bridge"
)

// firstBuffer is how much room a body gets before any of it has arrived: its
// announced length is only a claim.
const firstBuffer = 64 << 10

// readBody returns the request's body, which the caller owns. It is refused when
// it is over the limit or not declared to be JSON.
func (x *exchange) readBody(r *http.Request) ([]byte, error) {
	if err := checkEncoding(x, r); err != nil {
		return nil, err
	}
	limit := x.s.RequestBytes
	if r.ContentLength > limit {
		return nil, tooLarge(limit) // and the server closes the connection rather than read it all
	}
	var body []byte
	if r.ContentLength != 0 {
		var err error
		if body, err = x.readAll(r, limit); err != nil {
			if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
				return nil, tooLarge(limit)
			}
			if r.Context().Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, &bridge.Error{Kind: bridge.Canceled, Op: "routes.readBody", Msg: "The caller went away.", Err: err}
			}
			return nil, &bridge.Error{Kind: bridge.Malformed, Op: "routes.readBody", Msg: "The body did not arrive whole, or not in time.", Err: err}
		}
	}
	x.in = len(body)
	return body, checkType(r, len(body))
}

func tooLarge(limit int64) error {
	return &bridge.Error{Kind: TooLarge, Op: "routes.readBody", Msg: fmt.Sprintf("The body is larger than the limit of %d bytes.", limit)}
}

func (x *exchange) readAll(r *http.Request, limit int64) ([]byte, error) {
	x.read = true
	// net/http takes the deadline off at the body's end, over HTTP/1, which is all that is served. After an error it stays: the server
	// tries to read the rest of the body, and must not wait for it.
	_ = http.NewResponseController(x.ResponseWriter).SetReadDeadline(time.Now().Add(x.s.BodyTimeout)) // a recorder in a test has none
	body := io.Reader(r.Body)
	if r.ContentLength < 0 {
		body = http.MaxBytesReader(x.ResponseWriter, r.Body, limit) // closes the connection if there is more
	}
	return readUpTo(body, r.ContentLength)
}

// readUpTo reads all there is, which is announced to be n bytes, or unknown if negative.
func readUpTo(rd io.Reader, n int64) ([]byte, error) {
	if n > 0 && n <= firstBuffer {
		body := make([]byte, n)
		_, err := io.ReadFull(rd, body)
		return body, err
	}
	var buf bytes.Buffer
	_, err := buf.ReadFrom(rd)
	return buf.Bytes(), err
}

func checkEncoding(x *exchange, r *http.Request) error {
	for _, v := range r.Header["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			x.Header().Set("Accept-Encoding", "identity") // RFC 9110 section 12.5.3
			return &bridge.Error{Kind: UnsupportedMediaType, Op: "routes.readBody", Msg: "The body must not be compressed."}
		}
	}
	return nil
}

// checkType reports whether a body of n bytes is declared as JSON in UTF-8. Only
// one that is empty may go without a declaration: a page of another origin can send
// undeclared and plain bodies without asking the browser's leave.
func checkType(r *http.Request, n int) error {
	values := r.Header["Content-Type"]
	if len(values) == 1 && values[0] == "application/json" || len(values) == 0 && n == 0 {
		return nil
	}
	if len(values) == 1 {
		mediaType, params, err := mime.ParseMediaType(values[0])
		charset := params["charset"]
		isJSON := mediaType == "application/json" || strings.HasPrefix(mediaType, "application/") && strings.HasSuffix(mediaType, "+json")
		if err == nil && isJSON && (charset == "" || strings.EqualFold(charset, "utf-8")) {
			return nil
		}
	}
	return &bridge.Error{
		Kind: UnsupportedMediaType, Op: "routes.readBody",
		Msg: "The arguments must be sent as JSON in UTF-8, with Content-Type: application/json.",
	}
}
