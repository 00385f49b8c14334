package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// changes returns how another bridge's job is, its events, and a channel that is closed when there is more.
func (s *shared) changes(ctx context.Context, o bridge.Owner, id string, after uint64) (Record, []Event, <-chan struct{}, error) {
	tag := hashOf(o, id)
	more := s.watch(ctx, tag)
	rec, events, err := s.read(ctx, o, tag, after)
	if err == nil {
		s.watchedOn(tag, rec.Node)
	}
	return rec, events, more, err
}

// watchedOn notes which bridge is waited for.
func (s *shared) watchedOn(tag, node string) {
	s.watchMu.Lock()
	defer s.watchMu.Unlock()
	if w := s.all[tag]; w != nil {
		w.node = node
	}
}

// read returns how another bridge's job is, and its events. A job whose bridge is dead has failed.
func (s *shared) read(ctx context.Context, o bridge.Owner, tag string, after uint64) (Record, []Event, error) {
	for {
		var text, data []byte
		var events []Event
		err := s.do(ctx, maxInline+maxEventBytes, func(ctx context.Context) (err error) {
			text, data, events, err = s.r.read(ctx, tag, after)
			return err
		})
		if err != nil {
			return Record{}, nil, err
		}
		if text == nil {
			return Record{}, nil, s.unknown()
		}
		rec, err := decodeRecord(o, text)
		if err != nil {
			return Record{}, nil, err
		}
		if rec.State == Done {
			rec.Data = data
		}
		if rec.State.Final() {
			return rec.Record, events, nil
		}
		dead, err := s.dead(ctx, rec.Node)
		if err != nil {
			return Record{}, nil, err
		}
		if len(dead) == 0 {
			return rec.Record, events, nil
		}
		if err := s.bury(ctx, tag, text, rec); err != nil {
			return Record{}, nil, err
		}
	}
}

// unknown is the error of who names a job that is not there. A Redis that has lost its
// data soon gets that of the bridges again.
func (s *shared) unknown() error {
	s.stateMu.Lock()
	defer s.stateMu.Unlock()
	if !s.lost.IsZero() && time.Since(s.lost) < s.lease {
		return unreachable(errors.New("it has lost its data a moment ago"))
	}
	return ErrUnknown
}

func decodeRecord(o bridge.Owner, text []byte) (rec storedRecord, err error) {
	if err := json.Unmarshal(text, &rec); err != nil {
		return rec, unreachable(errors.Join(errors.New("a stored job cannot be read"), err))
	}
	rec.Owner = o
	return rec, nil
}

// errDied is what came of a call whose bridge died.
var errDied = &bridge.Error{
	Kind: bridge.OutcomeUnknown, Op: "jobs.bury",
	Msg: "The bridge that ran the call is gone. The tool may have run or not, and what came of it is lost.",
}

// bury notes the end of a job whose bridge died. If it turns out that it did not, it will say so itself.
func (s *shared) bury(ctx context.Context, tag string, old []byte, rec storedRecord) error {
	now := time.Now()
	rec.Changed, rec.Expires, rec.Asked = now, now.Add(s.m.o.TTL), nil
	rec.Version++
	rec.Last++
	rec.failure(errDied)
	text, err := json.Marshal(rec)
	if err != nil {
		return unreachable(err)
	}
	return s.do(ctx, 0, func(ctx context.Context) error {
		_, err := s.r.seal(ctx, tag, old, text, rec.Last, s.m.o.TTL)
		return err
	})
}

// list returns the owner's jobs on all bridges, newest first, without the results that they hold themselves.
func (s *shared) list(ctx context.Context, o bridge.Owner) ([]Record, error) {
	var texts [][]byte
	err := s.do(ctx, 0, func(ctx context.Context) (err error) {
		texts, err = s.r.list(ctx, hashOf(o, ""), func(id string) string { return hashOf(o, id) })
		return err
	})
	if err != nil {
		return nil, err
	}
	all := make([]Record, 0, len(texts))
	var nodes []string
	for _, text := range texts {
		rec, err := decodeRecord(o, text)
		if err != nil {
			return nil, err
		}
		all = append(all, rec.Record)
		if !rec.State.Final() && !slices.Contains(nodes, rec.Node) {
			nodes = append(nodes, rec.Node)
		}
	}
	dead, err := s.dead(ctx, nodes...)
	if err != nil {
		return nil, err
	}
	for i, rec := range all {
		if !rec.State.Final() && slices.Contains(dead, rec.Node) {
			if all[i], _, err = s.read(ctx, o, hashOf(o, rec.ID), 0); err != nil && bridge.KindOf(err) != bridge.NotFound {
				return nil, err
			}
		}
	}
	return slices.DeleteFunc(all, func(r Record) bool { return r.ID == "" }), nil
}
