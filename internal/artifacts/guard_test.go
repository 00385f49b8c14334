package artifacts

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var g guard
		for range 3 {
			if !g.allow() {
				t.Fatal("it holds back what works")
			}
		}
		g.done(unknown) // says nothing
		if g.down() || !g.allow() {
			t.Fatal("a caller that went away shut it")
		}
		g.done(broke)
		g.done(broke) // together with the one before
		g.done(broke)
		pause := firstPause
		for range 10 {
			if g.allow() || !g.down() {
				t.Fatalf("it lets through at once, at a pause of %v", pause)
			}
			time.Sleep(pause - 1)
			if g.allow() {
				t.Fatalf("it lets through too early, at a pause of %v", pause)
			}
			time.Sleep(time.Nanosecond)
			if !g.allow() {
				t.Fatalf("it lets nobody find out, after a pause of %v", pause)
			}
			if g.allow() {
				t.Fatal("it lets two find out")
			}
			g.done(broke)
			pause = min(2*pause, lastPause)
		}
		time.Sleep(lastPause)
		if !g.allow() {
			t.Fatal("it lets nobody find out")
		}
		g.done(unknown)
		if !g.allow() {
			t.Fatal("nobody finds out after one that went away")
		}
		g.done(worked)
		if g.down() || !g.allow() || !g.allow() {
			t.Error("it stays shut")
		}
	})
}

func TestMemoryExpiresOnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(1 << 20)
		k := New(Options{Store: m})
		ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
		time.Sleep(time.Hour - 1)
		open(t, k, ann, ref)
		time.Sleep(time.Nanosecond)
		if _, err := k.Open(t.Context(), ann, ref); err == nil {
			t.Error("it is there after an hour")
		}
		if s := m.stats(); s.Bytes != 0 || s.Artifacts != 0 || s.Evicted != 0 {
			t.Errorf("stats = %+v", s)
		}
	})
}
