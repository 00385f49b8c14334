package artifacts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpbridge/internal/bridge"
	"mcpbridge/internal/redistest"
)

// A sentinel finds the master, and the next one when that is gone: nobody starts anything again.
func TestRedisSentinel(t *testing.T) {
	master := redistest.Start(t)
	replica := redistest.Start(t, "--replicaof", "127.0.0.1", fmt.Sprint(master.Port()))
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	if err := os.WriteFile(conf, fmt.Appendf(nil, "sentinel monitor first 127.0.0.1 %d 1\nsentinel down-after-milliseconds first 500\nsentinel failover-timeout first 2000\n", master.Port()), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := redistest.StartSentinel(t, conf)
	k := New(Options{Store: openRedis(t, fmt.Sprintf("redis://%s?master_name=first&addr=%s", sentinel.Addr(), sentinel.Addr()))})
	ref := keep(t, k, ann, structured(t, `{"a":1}`)).Ref
	if got := at(t, open(t, k, ann, ref), "/a"); got != "1" {
		t.Errorf("/a = %s", got)
	}
	if n := clientOf(t, master).DBSize(t.Context()).Val(); n == 0 {
		t.Fatal("the master holds nothing")
	}
	size, to := clientOf(t, master).DBSize(t.Context()).Val(), clientOf(t, replica)
	if !waitFor(20*time.Second, func() bool {
		seen := clientOf(t, sentinel).Do(t.Context(), "SENTINEL", "REPLICAS", "first").String()
		return to.DBSize(t.Context()).Val() == size && strings.Contains(seen, fmt.Sprint(replica.Port())) && strings.Contains(seen, "master-link-status:ok")
	}) {
		t.Fatal("the replica does not follow")
	}

	master.Kill()
	if a := k.Keep(t.Context(), ann, tool, structured(t, `{}`), &bridge.Timing{}); a != nil {
		t.Errorf("it was kept by nobody: %+v", a)
	}
	began := time.Now()
	var kept *bridge.Artifact
	if !waitFor(time.Minute, func() bool {
		kept = k.Keep(t.Context(), ann, tool, structured(t, `{"a":2}`), &bridge.Timing{})
		return kept != nil
	}) {
		t.Fatalf("nothing is kept again: %s", sentinel.Output())
	}
	t.Logf("results are kept again after %v", time.Since(began).Round(time.Millisecond))
	if info := to.Info(t.Context(), "replication").Val(); !strings.Contains(info, "role:master") {
		t.Errorf("the replica says %s", info)
	}
	for ref, want := range map[string]string{ref: "1", kept.Ref: "2"} {
		if got := at(t, open(t, k, ann, ref), "/a"); got != want {
			t.Errorf("/a of %s = %s, want %s", ref, got, want)
		}
	}
}
