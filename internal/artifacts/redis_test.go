package artifacts

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// large returns documents of up to 50 MB, each with pointers to short fields in it.
func large() map[string]struct {
	doc      string
	pointers map[string]string
} {
	const size = 50 << 20
	const less = 12 << 20
	type doc = struct {
		doc      string
		pointers map[string]string
	}
	var items, members strings.Builder
	n := 0
	for ; items.Len() < size; n++ {
		if n > 0 {
			items.WriteByte(',')
		}
		i := strconv.Itoa(n)
		s := `{"id":` + i + `,"name":"n` + i + `","text":"` + words(450) + `"}`
		items.WriteString(s)
		if members.Len() < less {
			members.WriteString(`"key ` + i + `":` + s + ",")
		}
	}
	last := fmt.Sprint(n - 1)
	deep := strings.Repeat(`{"a":`, 900) + `{"text":"` + words(less) + `","x":5}` + strings.Repeat("}", 900)
	return map[string]doc{
		"text":   {`{"title":"t","full":"` + strings.Repeat("0123456789", size/10) + `","end":7}`, map[string]string{"/title": `"t"`, "/end": "7"}},
		"array":  {`{"title":"t","items":[` + items.String() + `],"end":7}`, map[string]string{"/title": `"t"`, "/end": "7", "/items/40000/name": `"n40000"`, "/items/" + last + "/id": last}},
		"object": {`{"title":"t","items":{` + members.String() + `"last":9},"end":7}`, map[string]string{"/title": `"t"`, "/end": "7", "/items/key 20000/name": `"n20000"`, "/items/last": "9"}},
		"deep":   {deep, map[string]string{strings.Repeat("/a", 900) + "/x": "5"}},
	}
}

func TestShortFieldOfALargeArtifactMovesLittle(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	for name, d := range large() {
		t.Run(name, func(t *testing.T) {
			k := New(Options{Store: openRedis(t, p.url())})
			kept := keep(t, k, ann, structured(t, d.doc))
			for pointer, want := range d.pointers {
				sent, got, trips := p.sent.Load(), p.got.Load(), p.trips.Load()
				start := time.Now()
				if got := at(t, open(t, k, ann, kept.Ref), pointer); got != want {
					t.Errorf("%.60q = %.100s, want %s", pointer, got, want)
				}
				took := time.Since(start)
				moved := p.sent.Load() - sent + p.got.Load() - got
				if moved > 64<<10 {
					t.Errorf("%.60q moved %d bytes", pointer, moved)
				}
				t.Logf("%.60q: %d bytes, %d exchanges, %v", pointer, moved, p.trips.Load()-trips, took)
			}
			if name == "text" {
				checkPartsOfLargeText(t, k, kept.Ref, p)
			}
			a := open(t, k, ann, kept.Ref)
			v, err := a.Data("")
			if err != nil {
				t.Fatal(err)
			}
			whole := &comparer{want: d.doc}
			if n, err := v.WriteTo(whole); err != nil || n != int64(len(d.doc)) || whole.differs {
				t.Errorf("the whole: %d bytes, %v, differs: %v", n, err, whole.differs)
			}
			if err := k.Delete(t.Context(), ann, kept.Ref); err != nil {
				t.Fatal(err)
			}
			if left := clientOf(t, server).DBSize(t.Context()).Val(); left != 0 {
				t.Errorf("%d keys are left", left)
			}
		})
	}
}

// checkPartsOfLargeText finds that a slice in the middle of it is as cheap, and so is its summary.
func checkPartsOfLargeText(t *testing.T, k *Keeper, ref string, p *proxy) {
	t.Helper()
	before := p.got.Load()
	a := open(t, k, ann, ref)
	v, err := a.Data("/full")
	if err != nil {
		t.Fatal(err)
	}
	s, err := v.Slice(40_000_001, 5)
	if err != nil || jsonOf(t, s.Value) != `"12345"` || s.Total != 50<<20 || s.Next != 40_000_006 {
		t.Errorf("the slice is %s of %d, next %d, %v", jsonOf(t, s.Value), s.Total, s.Next, err)
	}
	if moved := p.got.Load() - before; moved > 64<<10 {
		t.Errorf("a slice moved %d bytes", moved)
	}
	before = p.got.Load()
	want := `{"title":"t","full":"[SUMMARY: 52428800 chars] ` + strings.Repeat("0123456789", 50) + `...","end":7}`
	if got := summary(t, open(t, k, ann, ref), ""); got != want {
		t.Errorf("the summary is %.700s", got)
	}
	if moved := p.got.Load() - before; moved > 64<<10 {
		t.Errorf("the summary moved %d bytes", moved)
	}
}

// comparer is a writer that compares.
type comparer struct {
	want    string
	differs bool
}

func (c *comparer) Write(b []byte) (int, error) {
	if c.differs = c.differs || !strings.HasPrefix(c.want, string(b)); !c.differs {
		c.want = c.want[len(b):]
	}
	return len(b), nil
}

func TestEveryKeyExpires(t *testing.T) {
	server := redistest.Start(t)
	k := New(Options{Store: openRedis(t, server.URL()), TTL: time.Minute})
	keep(t, k, ann, structured(t, `"`+words(9<<20)+`"`)) // more than one chunk
	keep(t, k, ann, structured(t, `{"artifact_ref":"list~x","iterands":[{"artifact_ref":"link~y","url":"u"}]}`))
	c := clientOf(t, server)
	keys := c.Keys(t.Context(), "*").Val()
	if len(keys) != 4+4+1 {
		t.Errorf("there are %d keys: %q", len(keys), keys)
	}
	for _, key := range keys {
		if ttl := c.PTTL(t.Context(), key).Val(); ttl <= 0 || ttl > time.Minute {
			t.Errorf("%s lives for %v", key, ttl)
		}
		if strings.Contains(key, "ann") || strings.Contains(key, "acme") {
			t.Errorf("%s names its owner", key)
		}
	}
}

// storeOf returns a keeper on a server of its own, and that server.
func storeOf(t *testing.T, args ...string) (*Keeper, *redistest.Server) {
	s := redistest.Start(t, args...)
	return New(Options{Store: openRedis(t, s.URL())}), s
}

func TestRedisDown(t *testing.T) {
	k, server := storeOf(t)
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	server.Kill()
	start := time.Now()
	for i := range 1000 {
		if a := k.Keep(t.Context(), ann, tool, structured(t, `{"a":1}`), &bridge.Timing{}); a != nil {
			t.Fatalf("the %d. was kept", i)
		}
	}
	if took := time.Since(start); took > 10*redisTimeout {
		t.Errorf("1000 results took %v", took)
	}
	if s := k.Stats(); s.Failed != 1000 || !s.Store.Down || s.Store.Kind != "redis" {
		t.Errorf("Stats = %+v", s)
	}
	for range 100 {
		_, err := k.Open(t.Context(), ann, ref)
		if kindOf(err) != bridge.StoreUnavailable {
			t.Fatalf("Open = %v", err)
		}
		if _, err := k.List(t.Context(), ann, "", 10); kindOf(err) != bridge.StoreUnavailable {
			t.Fatalf("List = %v", err)
		}
		if err := k.Delete(t.Context(), ann, ref); kindOf(err) != bridge.StoreUnavailable {
			t.Fatalf("Delete = %v", err)
		}
	}
	server.Restart(t)
	var kept *bridge.Artifact
	if !waitFor(2*lastPause+5*time.Second, func() bool {
		kept = k.Keep(t.Context(), ann, tool, structured(t, `{"a":2}`), &bridge.Timing{})
		return kept != nil
	}) {
		t.Fatal("it does not recover")
	}
	if got := at(t, open(t, k, ann, kept.Ref), "/a"); got != "2" {
		t.Errorf("/a = %s", got)
	}
	if k.Stats().Store.Down {
		t.Error("it says that it is down")
	}
}

// A restart between two calls costs none of them its reference.
func TestRedisRestartsWhileConnectionsAreIdle(t *testing.T) {
	k, server := storeOf(t)
	for range 5 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}) })
		}
		wg.Wait()
		server.Kill()
		server.Restart(t)
		keep(t, k, ann, structured(t, `{}`))
	}
}

// What is stored is kept, also where the connection ends before the server has said so: the
// library asks once more, and finds the reference taken.
func TestAnswerOfTheStoreIsLost(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	k := New(Options{Store: openRedis(t, p.url())})
	keep(t, k, ann, structured(t, `{}`)) // there is a connection
	items := `[{"artifact_ref":"link~one","url":"u"}]`
	for name, doc := range map[string]string{
		"ours":    `{"a":1}`,
		"foreign": `{"a":1,"artifact_ref":"link~ours","url":"u"}`,
		"list":    `{"a":1,"artifact_ref":"list~ours","iterands":` + items + `}`,
	} {
		p.mute.Store(true)
		kept := keep(t, k, ann, structured(t, doc))
		if p.mute.Load() {
			t.Fatal("no answer was lost")
		}
		if name != "ours" && kept.Ref[4:] != "~ours" {
			t.Errorf("%s: it is kept as %s", name, kept.Ref)
		}
		if got := at(t, open(t, k, ann, kept.Ref), "/a"); got != "1" {
			t.Errorf("%s: /a = %s", name, got)
		}
	}
	if got := at(t, open(t, k, ann, "link~one"), "/url"); got != `"u"` {
		t.Errorf("the item's /url = %s", got)
	}
}

func TestRedisSlow(t *testing.T) {
	server := redistest.Start(t)
	p := startProxy(t, server.Addr())
	k := New(Options{Store: openRedis(t, p.url())})
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	p.stuck.Store(true)
	start := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if a := k.Keep(t.Context(), ann, tool, structured(t, `{"a":1}`), &bridge.Timing{}); a != nil {
				t.Error("it was kept")
			}
		})
	}
	wg.Wait()
	// One after the other they would take 50 time-outs, and the next 20 as many again.
	if took := time.Since(start); took > 10*redisTimeout {
		t.Errorf("50 results at once took %v", took)
	}
	start = time.Now()
	for range 20 {
		if a := k.Keep(t.Context(), ann, tool, structured(t, `{"a":1}`), &bridge.Timing{}); a != nil {
			t.Error("one of the next was kept")
		}
	}
	if took := time.Since(start); took > 10*redisTimeout {
		t.Errorf("the next 20 took %v, though nobody is to wait for a store that is known to be slow", took)
	}
	if _, err := k.Open(t.Context(), ann, ref); kindOf(err) != bridge.StoreUnavailable {
		t.Errorf("Open = %v", err)
	}
	p.stuck.Store(false)
	p.cut()
	if !waitFor(2*lastPause+5*time.Second, func() bool {
		_, err := k.Open(t.Context(), ann, ref)
		return err == nil
	}) {
		t.Fatal("it does not recover")
	}
}

func TestRedisFull(t *testing.T) {
	k, server := storeOf(t, "--maxmemory", "20mb", "--maxmemory-policy", "noeviction")
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	big := `"` + words(12<<20) + `"`
	for range 3 {
		k.Keep(t.Context(), ann, tool, structured(t, big), &bridge.Timing{})
	}
	if s := k.Stats(); s.Failed == 0 || !s.Store.Down {
		t.Fatalf("Stats = %+v", s)
	}
	if got := at(t, open(t, k, ann, ref), "/a"); got != "1" { // reading goes on
		t.Errorf("/a = %s", got)
	}
	p, err := k.List(t.Context(), ann, "", 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range p.Artifacts { // what is listed is there, whole
		v, err := open(t, k, ann, m.Ref).Data("")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.WriteTo(io.Discard); err != nil {
			t.Errorf("%s: %v", m.Ref, err)
		}
	}
	if err := clientOf(t, server).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if !waitFor(2*lastPause+5*time.Second, func() bool {
		return k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}) != nil
	}) {
		t.Fatal("it does not recover")
	}
}

func TestArtifactDeletedWhileItIsRead(t *testing.T) {
	k, _ := storeOf(t)
	ref := keep(t, k, ann, structured(t, `{"a":"`+words(1<<20)+`"}`)).Ref
	a := open(t, k, ann, ref)
	if err := k.Delete(t.Context(), ann, ref); err != nil {
		t.Fatal(err)
	}
	v, err := a.Data("")
	if err == nil {
		_, err = v.WriteTo(io.Discard)
	}
	if kindOf(err) != bridge.NotFound {
		t.Errorf("reading on: %v", err)
	}
}

func TestCallerGoesAwayWhileReading(t *testing.T) {
	k, _ := storeOf(t)
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Open(ctx, ann, ref); kindOf(err) != bridge.Canceled {
		t.Errorf("Open = %v", err)
	}
	if k.Stats().Store.Down { // which says nothing about the store
		t.Error("the store counts as down")
	}
}

func TestRedisTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key := certificate(t, dir)
	tlsPort := fmt.Sprint(redistest.FreePort(t))
	s := redistest.Start(t, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no", "--requirepass", "geheim", "--tls-port", tlsPort)
	url := "rediss://:geheim@127.0.0.1:" + tlsPort + "/0"
	k := New(Options{Store: openRedis(t, url+"?skip_verify=true")})
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	if got := at(t, open(t, k, ann, ref), "/a"); got != "1" {
		t.Errorf("/a = %s", got)
	}
	for _, bad := range []string{url, strings.Replace(url, "geheim", "falsch", 1) + "?skip_verify=true", "redis://127.0.0.1:" + fmt.Sprint(s.Port())} {
		var log bytes.Buffer
		k := New(Options{Store: openRedis(t, bad)})
		if a := k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); a != nil {
			t.Errorf("%s keeps", bad)
		}
		_, err := k.Open(t.Context(), ann, ref)
		if kindOf(err) != bridge.StoreUnavailable || strings.Contains(fmt.Sprint(err, log.String()), "geheim") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// certificate writes a certificate for loopback that nobody trusts.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, b := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestRedisURLs(t *testing.T) {
	for _, bad := range []string{"", "memory", "http://h", "redis://h:x", "redis://h/a/b", "redis://user:geheim@h/?nonsense=1", "redis://u:geheim@h?addr=%zz", "redis://u:geheim@h?addr=x", "redis://u:geheim@h?master_name=m&addr=x", "://geheim"} {
		s, err := OpenRedis(bad)
		if err == nil {
			s.Close()
			t.Errorf("%q opens", bad)
		} else if strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	s := openRedis(t, "redis://u:p@127.0.0.1:1/3")
	for range 2 {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
}
