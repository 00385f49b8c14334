package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// While both replicas behind a balancer are restarted, one after the other and
// twice over, none of the calls that clients make all the time fails, and
// the balancer has to make none of them a second time.
func TestRollingRestart(t *testing.T) {
	c := startComposed(t, "drainDelay: 5s", "drainDelay: 1500ms")
	crowd := startCrowd(t, 8, "http://"+c.balancer)
	ref := crowd.wait(20)
	for range 2 {
		for i := range c.bridges {
			c.bridges[i].stop(syscall.SIGTERM)
			crowd.wait(20) // with one bridge alone
			c.bridges[i] = startArgs(t, c.commands[i]...)
			c.up(i)
			crowd.wait(20)
		}
	}
	answered, failed := crowd.stop()
	if len(failed) > 0 {
		t.Errorf("%d of %d calls failed, the first: %s", len(failed), answered+len(failed), failed[0])
	}
	t.Logf("%d calls were answered", answered)
	for i := range c.bridges {
		s := c.server(i)
		for _, name := range []string{"econ", "eresp", "wretr", "wredis", "srv_abrt", "hrsp_5xx"} {
			if s[name] != "0" {
				t.Errorf("bridge %d: the balancer counts %s %s; it was not told in time", i+1, s[name], name)
			}
		}
		if s["chkdown"] != "2" {
			t.Errorf("bridge %d: the balancer saw it stop %s times, want 2", i+1, s["chkdown"])
		}
	}
	// What the first processes kept is still there.
	p := &process{t: t, base: "http://" + c.balancer}
	if got := p.get("/artifacts/" + ref); got.StatusCode != http.StatusOK {
		t.Errorf("the first artifact: %d %s", got.StatusCode, got.body)
	}
	c.interrupt()
}

// A crowd makes calls, quick ones and such of 300 ms by turns, until it is stopped.
type crowd struct {
	t     *testing.T
	ended sync.WaitGroup
	end   chan struct{}

	mu       sync.Mutex
	answered int      // guarded by mu
	failed   []string // why, guarded by mu
	ref      string   // the first result's, guarded by mu
}

func startCrowd(t *testing.T, n int, base string) *crowd {
	c := &crowd{t: t, end: make(chan struct{})}
	for range n {
		transport := &http.Transport{MaxIdleConnsPerHost: 1} // each keeps its connection
		c.ended.Go(func() {
			defer transport.CloseIdleConnections()
			for i := 0; ; i++ {
				select {
				case <-c.end:
					return
				default:
				}
				path, args, want := "/tools/demo/add", `{"a":40,"b":2}`, `{"sum":42}`
				if i%2 == 1 {
					path, args, want = "/tools/demo/countdown", `{"from":1,"pause":0.3}`, "Lift-off!"
				}
				ref, err := callThrough(transport, base+path, args, want)
				c.mu.Lock()
				if err != nil {
					c.failed = append(c.failed, path+": "+err.Error())
				} else {
					c.answered++
				}
				if c.ref == "" {
					c.ref = ref
				}
				c.mu.Unlock()
			}
		})
	}
	t.Cleanup(func() { c.stop() })
	return c
}

// callThrough makes one call and returns the reference of its result.
func callThrough(transport http.RoundTripper, url, args, want string) (ref string, err error) {
	res, err := (&http.Client{Transport: transport}).Post(url, "application/json", strings.NewReader(args))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
		return "", fmt.Errorf("%s: %.300s", res.Status, body)
	}
	return res.Header.Get("Artifact-Ref"), nil
}

// wait waits for n more calls, and returns the reference of the first.
func (c *crowd) wait(n int) (ref string) {
	c.t.Helper()
	count := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.answered + len(c.failed)
	}
	enough := count() + n
	until(c.t, "the callers are answered", func() bool { return count() >= enough })
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ref
}

// stop ends the callers and returns how many of their calls were answered, and why others were not.
func (c *crowd) stop() (answered int, failed []string) {
	select {
	case <-c.end:
	default:
		close(c.end)
	}
	c.ended.Wait()
	return c.answered, c.failed
}
