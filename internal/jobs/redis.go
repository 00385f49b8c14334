package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Redis is where several bridges keep their jobs, so that each answers for all
// of them. The keys of a job share a hash tag, so that they lie on one node of a
// cluster. Callers, jobs and keys appear in them as hashes.
type Redis struct{ c redis.UniversalClient }

// NewRedis returns the one that a client reaches, which must be of version 6.2 or
// later; whoever made the client closes it.
func NewRedis(c redis.UniversalClient) *Redis { return &Redis{c} }

const keyPrefix = "mcpbridge:job:"

func recordKey(tag string) string { return keyPrefix + "{" + tag + "}" }
func dataKey(tag string) string   { return keyPrefix + "{" + tag + "}:data" }
func eventsKey(tag string) string { return keyPrefix + "{" + tag + "}:events" }
func claimKey(tag string) string  { return keyPrefix + "key:{" + tag + "}" }
func listKey(owner string) string { return keyPrefix + "list:{" + owner + "}" }
func runsKey(owner string) string { return keyPrefix + "runs:{" + owner + "}" }
func nodeKey(node string) string  { return keyPrefix + "node:" + node }

// A channel of messages has the name of the key that it is about.
func jobOf(channel string) (tag string, ok bool) {
	tag, ok = strings.CutPrefix(channel, keyPrefix+"{")
	return strings.TrimSuffix(tag, "}"), ok
}

// An update is what is to be written of one job.
type update struct {
	tag     string
	rec     []byte        // nil if nobody is to find the job
	data    []byte        // an inline result; nil if there is none
	events  []Event       // behind those that were written before
	first   uint64        // the oldest event that is kept
	ttl     time.Duration // of all of it
	whole   bool          // nothing that was written before counts
	version uint64        // of the record

	list    string // of the owner; empty if the job is in it
	listTTL time.Duration
	runsTTL time.Duration
	id      string    // the member of the list
	created time.Time // its order
	keep    int       // the list's length at the most

	// Beside the list there is how many of the owner's jobs run on each bridge.
	node    string
	running int
	count   *redis.MapStringStringCmd // of all bridges
}

func (u *update) size() int {
	n := len(u.rec) + len(u.data)
	for _, e := range u.events {
		n += len(e.Data)
	}
	return n
}

// write writes updates and tells who waits for them. The record comes behind what it
// promises. Of an update that is not whole it reports whether it found what was
// written before.
func (r *Redis) write(ctx context.Context, us []update) (found []bool, err error) {
	before := make([]*redis.StatusCmd, len(us))
	cmds, _ := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range us {
			before[i] = queue(ctx, p, &us[i])
		}
		return nil
	})
	if err := failure(cmds); err != nil {
		return nil, err
	}
	found = make([]bool, len(us))
	for i, c := range before {
		found[i] = c == nil || us[i].whole || c.Err() == nil
	}
	return found, nil
}

// failure returns the first error of commands that is not just that something is not there.
func failure(cmds []redis.Cmder) error {
	for _, c := range cmds {
		if err := ignoreNil(c.Err()); err != nil {
			return err
		}
	}
	return nil
}

func queue(ctx context.Context, p redis.Pipeliner, u *update) (before *redis.StatusCmd) {
	if u.rec != nil {
		stream := eventsKey(u.tag)
		if u.whole {
			p.Unlink(ctx, stream)
		}
		for _, e := range u.events {
			p.XAdd(ctx, &redis.XAddArgs{Stream: stream, ID: eventID(e.ID), Values: []any{"t", e.Type, "d", []byte(e.Data)}})
		}
		if len(u.events) > 0 {
			p.XTrimMinID(ctx, stream, eventID(u.first))
		}
		p.PExpire(ctx, stream, u.ttl)
		if u.data != nil {
			p.Set(ctx, dataKey(u.tag), u.data, u.ttl)
		}
		before = p.SetArgs(ctx, recordKey(u.tag), u.rec, redis.SetArgs{TTL: u.ttl, Get: true})
		if u.list != "" {
			list := listKey(u.list)
			p.ZAdd(ctx, list, redis.Z{Score: float64(u.created.UnixMicro()), Member: u.id})
			p.ZRemRangeByRank(ctx, list, 0, int64(-u.keep-1))
			p.PExpire(ctx, list, u.listTTL)
			runs := runsKey(u.list)
			p.HSet(ctx, runs, u.node, fmt.Sprintf("%d %d", u.running, time.Now().Add(u.runsTTL).UnixMilli()))
			u.count = p.HGetAll(ctx, runs)
			p.PExpire(ctx, runs, u.runsTTL)
		}
	}
	p.Publish(ctx, recordKey(u.tag), "")
	return before
}

// elsewhere returns how many of the owner's jobs run on other bridges.
func (u *update) elsewhere() (n int) {
	if u.count == nil {
		return 0
	}
	for node, text := range u.count.Val() {
		var running int
		var until int64
		if _, err := fmt.Sscanf(text, "%d %d", &running, &until); err == nil && node != u.node && until > time.Now().UnixMilli() {
			n += running
		}
	}
	return n
}

func eventID(id uint64) string { return strconv.FormatUint(id, 10) + "-0" }

// read returns a job's record, its inline result, and its events behind one. All are nil if there is no such job.
func (r *Redis) read(ctx context.Context, tag string, after uint64) (rec, data []byte, events []Event, err error) {
	var record, inline *redis.StringCmd
	var stream *redis.XMessageSliceCmd
	cmds, _ := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		record = p.Get(ctx, recordKey(tag))
		stream = p.XRange(ctx, eventsKey(tag), eventID(after+1), "+")
		inline = p.Get(ctx, dataKey(tag))
		return nil
	})
	if err := failure(cmds); err != nil || record.Err() != nil {
		return nil, nil, nil, err
	}
	for _, m := range stream.Val() {
		n, _, _ := strings.Cut(m.ID, "-")
		id, err := strconv.ParseUint(n, 10, 64)
		if err != nil {
			return nil, nil, nil, err
		}
		typ, _ := m.Values["t"].(string)
		text, _ := m.Values["d"].(string)
		e := Event{ID: id, Type: typ}
		if text != "" {
			e.Data = []byte(text)
		}
		events = append(events, e)
	}
	if text := inline.Val(); text != "" {
		data = []byte(text)
	}
	return []byte(record.Val()), data, events, nil
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// list returns the records, newest first, of those jobs of an owner's list that are still there.
func (r *Redis) list(ctx context.Context, owner string, tagOf func(id string) string) (recs [][]byte, err error) {
	ids, err := r.c.ZRevRange(ctx, listKey(owner), 0, -1).Result()
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	got := make([]*redis.StringCmd, len(ids))
	cmds, _ := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			got[i] = p.Get(ctx, recordKey(tagOf(id)))
		}
		return nil
	})
	if err := failure(cmds); err != nil {
		return nil, err
	}
	for _, g := range got {
		if g.Err() == nil { // the others have expired
			recs = append(recs, []byte(g.Val()))
		}
	}
	return recs, nil
}

// replaceScript replaces a value unless it has changed.
var replaceScript = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
if ARGV[2] == '' then redis.call('UNLINK', KEYS[1]) else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
if KEYS[2] then
	pcall(redis.call, 'XADD', KEYS[2], ARGV[4], 't', ARGV[5], 'd', '')
	redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return 1`)

// seal puts a job's last record in place of the one that was read, and its last event behind the others.
func (r *Redis) seal(ctx context.Context, tag string, old, rec []byte, last uint64, ttl time.Duration) (bool, error) {
	done, err := replaceScript.Run(ctx, r.c, []string{recordKey(tag), eventsKey(tag)}, old, rec, ttl.Milliseconds(), eventID(last), EventEnd).Bool()
	if err == nil && done {
		err = r.c.Publish(ctx, recordKey(tag), "").Err()
	}
	return done, err
}

// beat says that a node is alive for the time of ttl, and reports whether that was known.
func (r *Redis) beat(ctx context.Context, node string, ttl time.Duration) (known bool, err error) {
	err = r.c.SetArgs(ctx, nodeKey(node), "", redis.SetArgs{TTL: ttl, Get: true}).Err()
	return err == nil, ignoreNil(err)
}

// leave says that a node is gone.
func (r *Redis) leave(ctx context.Context, node string) error {
	return r.c.Unlink(ctx, nodeKey(node)).Err()
}

// alive reports which nodes are.
func (r *Redis) alive(ctx context.Context, nodes ...string) (map[string]bool, error) {
	got := make([]*redis.IntCmd, len(nodes))
	_, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, n := range nodes {
			got[i] = p.Exists(ctx, nodeKey(n))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]bool, len(nodes))
	for i, n := range nodes {
		all[n] = got[i].Val() > 0
	}
	return all, nil
}

// claim writes a claim unless there is one, which it returns.
func (r *Redis) claim(ctx context.Context, tag string, claim []byte, ttl time.Duration) (held []byte, err error) {
	var won *redis.BoolCmd
	var there *redis.StringCmd
	_, err = r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		won = p.SetNX(ctx, claimKey(tag), claim, ttl)
		there = p.Get(ctx, claimKey(tag))
		return nil
	})
	if err != nil || won.Val() {
		return nil, err
	}
	return []byte(there.Val()), nil
}

// held returns a claim, or nil if there is none.
func (r *Redis) held(ctx context.Context, tag string) ([]byte, error) {
	b, err := r.c.Get(ctx, claimKey(tag)).Bytes()
	return b, ignoreNil(err)
}

// settle puts what came of calls in place of their claims.
func (r *Redis) settle(ctx context.Context, all []settlement) error {
	cmds, _ := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, one := range all {
			switch {
			case one.text != nil:
				p.Set(ctx, claimKey(one.tag), one.text, one.ttl)
			case one.lost:
				p.SetNX(ctx, claimKey(one.tag), one.mine, one.ttl)
			default:
				replaceScript.Eval(ctx, p, []string{claimKey(one.tag)}, one.mine, "", 0)
			}
		}
		return nil
	})
	return failure(cmds)
}

// replaceClaim puts another claim in place of one unless that has changed.
func (r *Redis) replaceClaim(ctx context.Context, tag string, old, claim []byte, ttl time.Duration) (bool, error) {
	return replaceScript.Run(ctx, r.c, []string{claimKey(tag)}, old, claim, ttl.Milliseconds()).Bool()
}

// tell sends a message to a node, which may get it or not.
func (r *Redis) tell(ctx context.Context, node string, message []byte) error {
	return r.c.Publish(ctx, nodeKey(node), message).Err()
}

// A subscription hears of jobs, and what a node is told, over one connection.
type subscription struct{ ps *redis.PubSub }

// subscribe begins to listen on a channel. It does not wait for an answer: of each
// channel that is heard from then on, next tells once.
func (r *Redis) subscribe(ctx context.Context, channel string) (*subscription, error) {
	s := &subscription{r.c.Subscribe(ctx)}
	if err := s.add(ctx, channel); err != nil {
		_ = s.ps.Close()
		return nil, err
	}
	return s, nil
}

func (s *subscription) add(ctx context.Context, channels ...string) error {
	return s.ps.Subscribe(ctx, channels...)
}

func (s *subscription) drop(ctx context.Context, channels ...string) error {
	return s.ps.Unsubscribe(ctx, channels...)
}

func (s *subscription) close() { _ = s.ps.Close() }

// next returns the next message, which is empty for a channel that is heard from now on.
// The channel is empty if there was none for quiet.
func (s *subscription) next(ctx context.Context, quiet time.Duration) (channel, message string, err error) {
	asked := false
	for {
		got, err := s.ps.ReceiveTimeout(ctx, quiet)
		switch {
		case err == nil:
		case ctx.Err() == nil && isTimeout(err) && !asked:
			asked = true
			if err := s.ps.Ping(ctx); err != nil {
				return "", "", err
			}
			continue
		default:
			return "", "", err
		}
		asked = false
		switch m := got.(type) {
		case *redis.Message:
			return m.Channel, m.Payload, nil
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				return m.Channel, "", nil
			}
		}
	}
}

func isTimeout(err error) bool {
	t, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && t.Timeout()
}

// answered reports whether an error is the server's answer, and not that it cannot serve now.
func answered(err error) bool {
	if errors.Is(err, redis.Nil) {
		return true
	}
	if _, ok := errors.AsType[redis.Error](err); !ok {
		return false
	}
	for _, code := range [...]string{"LOADING", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "TRYAGAIN", "NOREPLICAS", "ERR max number", "NOAUTH", "WRONGPASS", "NOPERM"} {
		if strings.HasPrefix(err.Error(), code) {
			return false
		}
	}
	return true
}
