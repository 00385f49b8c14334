package artifacts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// What one bridge stores, another one on the same Redis reads, lists and deletes.
func TestReplicasShareARedis(t *testing.T) {
	for name, url := range map[string]string{"redis": sharedRedis(t), "cluster": sharedCluster(t)} {
		t.Run(name, func(t *testing.T) {
			one, two := New(Options{Store: openRedis(t, url)}), New(Options{Store: openRedis(t, url)})
			c := bridge.Caller{User: mint()}
			ref := keep(t, one, c, structured(t, `{"a":{"k":"`+words(3000)+`"}}`)).Ref
			a, b := open(t, one, c, ref+".1"), open(t, two, c, ref+".1")
			if at(t, a, "/k") != at(t, b, "/k") || a.ETag("data") != b.ETag("data") || a.Meta() != b.Meta() {
				t.Errorf("%+v and %+v differ", a.Meta(), b.Meta())
			}
			if p, err := two.List(t.Context(), c, "", 10); err != nil || len(slicesOf(p, ref)) != 1 {
				t.Errorf("List = %+v, %v", p, err)
			}
			if err := two.Delete(t.Context(), c, ref); err != nil {
				t.Fatal(err)
			}
			if _, err := one.Open(t.Context(), c, ref); kindOf(err) != bridge.NotFound {
				t.Errorf("after the other one deleted it: %v", err)
			}
		})
	}
}

func TestManyAtOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, store Store) {
		k := New(Options{Store: store, Summaries: 50})
		foreign := "link~" + mint()[4:]
		c := bridge.Caller{User: mint()}
		var wg sync.WaitGroup
		refs := make(chan string, 1000)
		for g := range 8 {
			wg.Go(func() {
				for i := range 20 {
					doc := fmt.Sprintf(`{"g":%d,"i":%d,"s":"%s"}`, g, i, words(1500))
					a := k.Keep(t.Context(), c, tool, structured(t, doc), &bridge.Timing{})
					if a == nil {
						t.Error("it was not kept")
						continue
					}
					refs <- a.Ref
					read, err := k.Open(t.Context(), c, a.Ref)
					if err != nil {
						t.Error(err)
						continue
					}
					v, err := read.Data("")
					if err != nil {
						t.Error(err)
						continue
					}
					var b bytes.Buffer
					if err := v.Summarize(&b); err != nil || !strings.HasPrefix(b.String(), fmt.Sprintf(`{"g":%d,"i":%d,`, g, i)) {
						t.Errorf("the summary is %.100s, %v", b.String(), err)
					}
					// All claim the same reference with data of their own; one gets it.
					f := k.Keep(t.Context(), c, tool, structured(t, fmt.Sprintf(`{"artifact_ref":"%s","url":"%d"}`, foreign, g)), &bridge.Timing{})
					if f == nil {
						t.Error("it was not kept")
					}
				}
			})
		}
		wg.Wait()
		close(refs)
		for ref := range refs {
			if err := k.Delete(t.Context(), c, ref); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
		p, err := k.List(t.Context(), c, "", 1000)
		if err != nil || len(slicesOf(p, foreign)) != 1 {
			t.Fatalf("List has %d, %v", len(p.Artifacts), err)
		}
		at(t, open(t, k, c, foreign), "/url")
	})
}

// Addresses where nobody is, of every kind: a call waits a bounded time for them.
func TestNobodyThere(t *testing.T) {
	dead := fmt.Sprintf("127.0.0.1:%d", redistest.FreePort(t))
	for _, url := range []string{"redis://" + dead, "redis://" + dead + "?addr=" + dead, "redis://" + dead + "?master_name=m", "rediss://" + dead} {
		var log bytes.Buffer
		k := New(Options{Store: openRedis(t, url), Log: slog.New(slog.NewTextHandler(&log, nil))})
		start := time.Now()
		if a := k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); a != nil {
			t.Errorf("%s: it was kept", url)
		}
		if _, err := k.Open(t.Context(), ann, mint()); kindOf(err) != bridge.StoreUnavailable {
			t.Errorf("%s: Open = %v", url, err)
		} else if e, _ := errors.AsType[*bridge.Error](err); e.RetryAfter <= 0 {
			t.Errorf("%s: no time after which to try again", url)
		}
		if took := time.Since(start); took > 5*redisTimeout {
			t.Errorf("%s: it took %v", url, took)
		}
		if s := log.String(); !strings.Contains(s, "not kept") || !strings.Contains(s, "tool=echo") {
			t.Errorf("%s: the log says %s", url, s)
		}
	}
}

func TestTooMuchWaitsToBeStored(t *testing.T) {
	s := openRedis(t, sharedRedis(t))
	k := New(Options{Store: s})
	s.inFlight.Store(maxInFlight)
	if a := k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); a != nil {
		t.Error("it was kept")
	}
	if n := s.inFlight.Load(); n != maxInFlight {
		t.Errorf("%d bytes wait", n)
	}
	s.inFlight.Store(0)
	keep(t, k, ann, structured(t, `{}`))
	if n := s.inFlight.Load(); n != 0 || k.Stats().Store.Down {
		t.Errorf("%d bytes wait, %+v", n, k.Stats())
	}
}

// A failure in the middle of reading comes out of every way of reading.
func TestFailuresWhileReading(t *testing.T) {
	doc := `{"l":[` + strings.Repeat(`{"k":"`+words(300)+`"},`, 300) + `1],"s":"` + words(100_000) + `","o":{"n":{"m":"` + words(9000) + `"}},"type":"image","data":"` + strings.Repeat("QUJD", 30_000) + `"}`
	for _, r := range []*bridge.Result{structured(t, doc), result(t, `{"_meta":{},"content":[`+doc+`]}`)} {
		flaky := &flakyStore{Store: pieces{NewMemory(1 << 30)}}
		k := New(Options{Store: flaky})
		ref := keep(t, k, ann, r).Ref
		prefix := ""
		if r.Structured == nil {
			prefix = "/content/0"
		}
		for name, read := range map[string]func(*Artifact) error{
			"pointer":  func(a *Artifact) error { _, err := a.Data(prefix + "/o/n/m"); return err },
			"item":     func(a *Artifact) error { _, err := a.Data(prefix + "/l/250/k"); return err },
			"lost key": func(a *Artifact) error { _, err := a.Data(prefix + "/x"); return unlost(err) },
			"lost item": func(a *Artifact) error {
				_, err := a.Data(prefix + "/l/9999")
				return unlost(err)
			},
			"whole":   with(prefix, func(v *Value) error { _, err := v.WriteTo(&bytes.Buffer{}); return err }),
			"summary": with(prefix, func(v *Value) error { return v.Summarize(&bytes.Buffer{}) }),
			"all":     with("", func(v *Value) error { return v.Summarize(&bytes.Buffer{}) }),
			"search":  with(prefix, func(v *Value) error { _, _, err := v.Search(Search{Text: "nowhere"}); return err }),
			"matches": with(prefix, func(v *Value) error { _, _, err := v.Search(Search{Text: "word7"}); return err }),
			"total":   with(prefix+"/l", func(v *Value) error { _, err := v.Total(); return err }),
			"slice":   with(prefix+"/l", func(v *Value) error { _, err := v.Slice(100, 150); return err }),
			"chars":   with(prefix+"/s", func(v *Value) error { _, err := v.Slice(50_000, 10); return err }),
			"text":    with(prefix+"/s", func(v *Value) error { return v.Text(&bytes.Buffer{}) }),
			"binary":  with(prefix, func(v *Value) error { _, _, err := bytesOf(v); return err }),
			"bytes":   with(prefix+"/data", func(v *Value) error { _, _, err := bytesOf(v); return err }),
			"result": func(a *Artifact) error {
				v, err := a.Result("")
				if err != nil {
					return err
				}
				_, err = v.WriteTo(&bytes.Buffer{})
				return err
			},
			"excerpt": func(*Artifact) error {
				_, _, err := k.ReadText(t.Context(), ann, ref, prefix+"/l", 50_000, 10)
				return err
			},
			"character": func(*Artifact) error {
				_, _, err := k.ReadText(t.Context(), ann, ref, prefix+"/s", 50_000, 10)
				return err
			},
			"found": func(*Artifact) error {
				_, err := k.SearchText(t.Context(), ann, ref, "word7", func(string, int, string) {})
				return err
			},
			"nested": func(*Artifact) error { _, err := k.Open(t.Context(), ann, ref+".1"); return err },
		} {
			for n := 0; ; n++ {
				flaky.left = 1 << 30
				a := open(t, k, ann, ref)
				flaky.left = n
				err := read(a)
				if flaky.left >= 0 { // it did without
					if err != nil {
						t.Errorf("%s without a failure: %v", name, err)
					}
					break
				}
				if !errors.Is(err, errFlaky) {
					t.Errorf("%s, the %d. read failing: %v", name, n, err)
				}
			}
		}
	}
}

// unlost forgets the error of a pointer that leads nowhere.
func unlost(err error) error {
	if kindOf(err) == bridge.NotFound {
		return nil
	}
	return err
}

func with(pointer string, f func(*Value) error) func(*Artifact) error {
	return func(a *Artifact) error {
		v, err := a.Data(pointer)
		if err != nil {
			return err
		}
		return f(v)
	}
}

var errFlaky = errors.New("flaky")

// A flakyStore fails to read when nothing is left.
type flakyStore struct {
	Store
	left int
}

func (f *flakyStore) get(ctx context.Context, o owner, ref string) (*record, source, error) {
	r, src, err := f.Store.get(ctx, o, ref)
	return r, flakySource{f, src}, err
}

type flakySource struct {
	f *flakyStore
	source
}

func (s flakySource) read(p part, from, to int) ([]byte, error) {
	if s.f.left--; s.f.left < 0 {
		return nil, unavailable(errFlaky)
	}
	return s.source.read(p, from, to)
}
