package stdio

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/mcp/rpc"
)

// mirror is a server that does nothing but answer: calls with their params, or
// with a text of so many bytes. It is faster than any real one.
func mirror(answer []byte) {
	buf := make([]byte, 0, 1<<20)
	var out []byte
	for {
		n, err := os.Stdin.Read(buf[len(buf):cap(buf)])
		if err != nil {
			return
		}
		buf = buf[:len(buf)+n]
		out = out[:0]
		for {
			i := bytes.IndexByte(buf, '\n')
			if i < 0 {
				break
			}
			line := buf[:i]
			_, id, ok := bytes.Cut(line, []byte(`"id":`))
			if ok {
				id, _, _ = bytes.Cut(id, []byte(","))
				id = bytes.TrimRight(id, "}")
				result := answer
				switch {
				case bytes.Contains(line, []byte(`"initialize"`)):
					result = []byte(`{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"m","version":"1"}}`)
				case answer == nil:
					_, result, _ = bytes.Cut(line, []byte(`"params":`))
					result = result[:len(result)-1]
				}
				out = append(out, `{"jsonrpc":"2.0","id":`...)
				out = append(out, id...)
				out = append(out, `,"result":`...)
				out = append(out, result...)
				out = append(out, "}\n"...)
			}
			buf = buf[:copy(buf, buf[i+1:])]
		}
		if _, err := os.Stdout.Write(out); err != nil {
			return
		}
	}
}

func mirrorText(n int) []byte {
	return fmt.Appendf(nil, `{"content":[{"type":"text","text":"%s"}]}`, strings.Repeat("lorem ipsum dolor sit amet ", n/27))
}

func benchConn(b *testing.B, size int) *Conn {
	o := fakeOptions(b, "mirror")
	o.Env = append(o.Env, fmt.Sprintf("SIZE=%d", size))
	c, err := Dial(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

func benchDo(b *testing.B, c *Conn) {
	r := &rpc.Request{Method: "tools/call", Params: []byte(`"name":"echo","arguments":`), Args: []byte(`{"message":"hello"}`), Idle: 20 * time.Second, Total: time.Minute}
	if _, err := c.Do(b.Context(), r); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCall(b *testing.B) {
	b.ReportAllocs()
	c := benchConn(b, 0)
	for b.Loop() {
		benchDo(b, c)
	}
}

func BenchmarkCall32(b *testing.B) {
	b.ReportAllocs()
	c := benchConn(b, 0)
	b.SetParallelism(32 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchDo(b, c)
		}
	})
}

func BenchmarkResult100KB(b *testing.B) {
	b.ReportAllocs()
	c := benchConn(b, 100_000)
	b.SetBytes(100_000)
	b.SetParallelism(32 / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			benchDo(b, c)
		}
	})
}

func BenchmarkResult50MB(b *testing.B) {
	b.ReportAllocs()
	c := benchConn(b, 50_000_000)
	b.SetBytes(50_000_000)
	for b.Loop() {
		benchDo(b, c)
	}
}
