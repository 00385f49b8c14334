package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The load comes from goroutines of this program, which is a process of its own beside
// all that is measured. Each has a connection, writes the same bytes again
// and again, and reads answers with as little work as can be, so that on few cores little is taken
// from what is measured.

// A request is what one connection sends.
type request struct {
	addr string
	data []byte
	// Where data has a key of 16 digits that is to be another in each request; 0 if it has none.
	key int
}

// keyDigits is where the digits of a key stand in a header.
const keyDigits = "0000000000000000"

// post returns a request that calls something, and get one that fetches something.
func post(addr, path, header string, body string) request {
	data := fmt.Appendf(nil, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n%s", path, addr, header, len(body), body)
	return request{addr: addr, data: data, key: max(0, bytes.Index(data, []byte(keyDigits)))}
}

func get(addr, path, header string) request {
	return request{addr: addr, data: fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n", path, addr, header)}
}

// A run is what came of sending a request again and again.
type run struct {
	calls     int
	took      time.Duration
	latencies []time.Duration // sorted
	bytes     int64           // of one answer's body
	failed    error           // the first failure
}

func (r *run) rate() float64 { return float64(r.calls) / r.took.Seconds() }

// at returns the latency that a part of the calls stayed below.
func (r *run) at(part float64) time.Duration {
	if len(r.latencies) == 0 {
		return 0
	}
	return r.latencies[min(len(r.latencies)-1, int(part*float64(len(r.latencies))))]
}

// repeat sends a request over so many connections at once for a time. An answer that
// is no success ends it.
func repeat(ctx context.Context, req request, conns int, d time.Duration) *run {
	return drive(ctx, req, conns, func(began time.Time, _ int) bool { return time.Since(began) < d })
}

// times sends a request so many times over each connection.
func times(ctx context.Context, req request, conns, n int) *run {
	return drive(ctx, req, conns, func(_ time.Time, done int) bool { return done < n })
}

func drive(ctx context.Context, req request, conns int, more func(began time.Time, done int) bool) *run {
	clients := make([]*client, 0, conns)
	defer func() {
		for _, c := range clients {
			c.close()
		}
	}()
	for range conns {
		c, err := dial(ctx, req.addr)
		if err != nil {
			return &run{failed: err}
		}
		clients = append(clients, c)
	}
	out := &run{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	began := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			data := slices.Clone(req.data)
			var latencies []time.Duration
			var size int64
			var err error
			for err == nil && more(began, len(latencies)) {
				if req.key > 0 {
					copy(data[req.key:], fmt.Sprintf("%04d%012d", i, began.UnixMicro()%1e6*1e6+int64(len(latencies))))
				}
				sent := time.Now()
				var a answer
				if a, err = c.exchange(data, nil); err == nil {
					err = a.success()
				}
				latencies = append(latencies, time.Since(sent))
				size = a.size
			}
			mu.Lock()
			defer mu.Unlock()
			out.latencies = append(out.latencies, latencies...)
			out.bytes = size
			if out.failed == nil {
				out.failed = err
			}
		})
	}
	wg.Wait()
	out.took, out.calls = time.Since(began), len(out.latencies)
	slices.Sort(out.latencies)
	return out
}

// A client is one connection.
type client struct {
	conn net.Conn
	in   *bufio.Reader
	stop func() bool

	scratch []byte // for the rest of bodies that are larger than what in holds
}

func dial(ctx context.Context, addr string) (*client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &client{conn: conn, in: bufio.NewReaderSize(conn, 16<<10), stop: stop}, nil
}

func (c *client) close() {
	c.stop()
	_ = c.conn.Close()
}

// An answer is what is looked at of an HTTP response.
type answer struct {
	status int
	size   int64 // of the body
	etag   string
	ref    string // of the artifact
}

func (a answer) success() error {
	if a.status < 200 || a.status > 399 {
		return fmt.Errorf("the answer was HTTP %d", a.status)
	}
	return nil
}

// exchange sends a request and reads the answer. The body goes to keep if that is not nil.
func (c *client) exchange(data []byte, keep *bytes.Buffer) (a answer, err error) {
	if _, err = c.conn.Write(data); err != nil {
		return a, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	if len(line) < len("HTTP/1.1 200") {
		return a, errors.New("the answer is not HTTP")
	}
	a.status, _ = strconv.Atoi(string(line[9:12]))
	length, chunked := int64(0), false
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return a, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		switch i := bytes.IndexByte(line, ':'); {
		case is(line, i, "content-length"):
			length, err = strconv.ParseInt(string(line[i+2:]), 10, 64)
		case is(line, i, "transfer-encoding"):
			chunked = true
		case is(line, i, "etag"):
			a.etag = string(line[i+2:])
		case is(line, i, "artifact-ref"):
			a.ref = string(line[i+2:])
		}
		if err != nil {
			return a, err
		}
	}
	if !chunked {
		a.size = length
		return a, c.body(length, keep)
	}
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return a, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return a, err
		}
		a.size += n
		if err := c.body(n, keep); err != nil {
			return a, err
		}
		if _, err := c.in.ReadSlice('\n'); err != nil || n == 0 {
			return a, err
		}
	}
}

// is reports whether the line begins with a header's name, in lower case, before its colon.
func is(line []byte, colon int, name string) bool {
	return colon == len(name) && bytes.EqualFold(line[:colon], []byte(name))
}

func (c *client) body(n int64, keep *bytes.Buffer) error {
	if keep != nil {
		_, err := keep.ReadFrom(io.LimitReader(c.in, n))
		return err
	}
	k, err := c.in.Discard(int(min(n, int64(c.in.Buffered()))))
	if n -= int64(k); err != nil || n == 0 {
		return err
	}
	if c.scratch == nil {
		c.scratch = make([]byte, 128<<10)
	}
	for n > 0 {
		k, err := c.conn.Read(c.scratch[:min(n, int64(len(c.scratch)))])
		if n -= int64(k); err != nil && n > 0 {
			return err
		}
	}
	return nil
}

// once sends one request and returns the answer and its body.
func once(ctx context.Context, req request) (answer, []byte, error) {
	c, err := dial(ctx, req.addr)
	if err != nil {
		return answer{}, nil, err
	}
	defer c.close()
	var body bytes.Buffer
	a, err := c.exchange(req.data, &body)
	return a, body.Bytes(), err
}

func (r *run) sort() { slices.Sort(r.latencies) }
