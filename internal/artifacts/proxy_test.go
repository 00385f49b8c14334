package artifacts

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A proxy stands between a store and its server. It counts what the server sends, and
// can be slow or dead.
type proxy struct {
	l      net.Listener
	target string
	sent   atomic.Int64 // bytes towards the store
	got    atomic.Int64 // bytes from the store
	trips  atomic.Int64 // pieces from the store, about as many as exchanges
	stuck  atomic.Bool  // it takes everything and passes nothing on
	mute   atomic.Bool  // the next answer is lost, with its connection

	mu    sync.Mutex
	conns map[net.Conn]bool // guarded by mu
	wg    sync.WaitGroup
}

func startProxy(t testing.TB, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{l: l, target: target, conns: make(map[net.Conn]bool)}
	p.wg.Go(p.accept)
	t.Cleanup(func() {
		l.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) url() string { return "redis://" + p.l.Addr().String() + "/0" }

func (p *proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		up, err := net.Dial("tcp", p.target)
		if err != nil {
			c.Close()
			continue
		}
		p.mu.Lock()
		p.conns[c], p.conns[up] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.pipe(up, c, &p.got, &p.trips) })
		p.wg.Go(func() { p.pipe(c, up, &p.sent, nil) })
	}
}

func (p *proxy) pipe(to io.WriteCloser, from io.ReadCloser, n, trips *atomic.Int64) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 256<<10)
	for {
		k, err := from.Read(b)
		for p.stuck.Load() && err == nil {
			time.Sleep(time.Millisecond)
			p.mu.Lock()
			if len(p.conns) == 0 {
				err = io.EOF
			}
			p.mu.Unlock()
		}
		if err != nil || trips == nil && p.mute.CompareAndSwap(true, false) {
			return
		}
		n.Add(int64(k))
		if trips != nil {
			trips.Add(1)
		}
		if _, err := to.Write(b[:k]); err != nil {
			return
		}
	}
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}
