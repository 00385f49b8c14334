package jobs

import (
	"context"
	"slices"
	"time"

	"mcpbridge/internal/bridge"
)

// find returns the owner's published job of that ID, or nil.
func (m *Manager) find(o bridge.Owner, id string) *Job {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.jobs[o] {
		if j.ID() == id && !j.expired(time.Now()) {
			return j
		}
	}
	return nil
}

// noEvents is behind every event of a job: who reads from there wants the record alone.
const noEvents = 1 << 62

// mayUse refuses a job of a tool that the caller may not call.
func (m *Manager) mayUse(c bridge.Caller, rec *Record) error {
	if m.o.Allows(c, rec.Handle, rec.Tool) {
		return nil
	}
	return ErrUnknown
}

// ErrUnknown is the error of whoever names a job that it does not have.
var ErrUnknown error = &bridge.Error{Kind: bridge.NotFound, Op: "jobs.find", Msg: "You have no such job; GET /jobs lists those that you have. A job is forgotten some time after its end."}

// Read returns how the caller's job is, and its events behind the given one as far as they are still kept.
func (m *Manager) Read(ctx context.Context, c bridge.Caller, id string, after uint64) (rec Record, events []Event, err error) {
	o := c.Owner()
	switch j := m.find(o, id); {
	case j != nil:
		rec, events, _ = j.Changes(after)
	case m.shared != nil:
		if rec, events, err = m.shared.read(ctx, o, hashOf(o, id), after); err != nil {
			return Record{}, nil, err
		}
	default:
		return Record{}, nil, ErrUnknown
	}
	if err := m.mayUse(c, &rec); err != nil {
		return Record{}, nil, err
	}
	return rec, events, nil
}

// Changes is like Read, and returns a channel besides that is closed when there may
// be more, unless ctx ends before.
func (m *Manager) Changes(ctx context.Context, c bridge.Caller, id string, after uint64) (rec Record, events []Event, more <-chan struct{}, err error) {
	o := c.Owner()
	switch j := m.find(o, id); {
	case j != nil:
		rec, events, more = j.Changes(after)
	case m.shared != nil:
		if rec, events, more, err = m.shared.changes(ctx, o, id, after); err != nil {
			return Record{}, nil, more, err // it may be written yet
		}
	default:
		return Record{}, nil, nil, ErrUnknown
	}
	if err := m.mayUse(c, &rec); err != nil {
		return Record{}, nil, nil, err
	}
	return rec, events, more, nil
}

// List returns the caller's jobs, newest first, without the results that they hold themselves.
func (m *Manager) List(ctx context.Context, c bridge.Caller) ([]Record, error) {
	all, err := m.listAll(ctx, c)
	return slices.DeleteFunc(all, func(r Record) bool { return m.mayUse(c, &r) != nil }), err
}

func (m *Manager) listAll(ctx context.Context, c bridge.Caller) ([]Record, error) {
	own := m.list(c.Owner())
	if m.shared == nil {
		return own, nil
	}
	all, err := m.shared.list(ctx, c.Owner())
	if err != nil {
		return nil, err
	}
	// Of its own jobs this bridge knows more.
	here := make(map[string]bool, len(own))
	for _, rec := range own {
		here[rec.ID] = true
	}
	all = slices.DeleteFunc(all, func(r Record) bool { return here[r.ID] })
	all = append(all, own...)
	slices.SortStableFunc(all, func(a, b Record) int { return b.Created.Compare(a.Created) })
	return all, nil
}

func (m *Manager) list(o bridge.Owner) (all []Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range slices.Backward(m.jobs[o]) {
		if !j.expired(time.Now()) {
			rec := j.Record()
			rec.Data = nil
			all = append(all, rec)
		}
	}
	return all
}

// Cancel ends the caller's job, which stays readable. One that has ended is left as it is.
func (m *Manager) Cancel(ctx context.Context, c bridge.Caller, id string) error {
	if _, _, err := m.Read(ctx, c, id, noEvents); err != nil {
		return err
	}
	switch j := m.find(c.Owner(), id); {
	case j != nil:
		j.cancel(errByCaller)
		return nil
	case m.shared != nil:
		return m.shared.cancel(ctx, c.Owner(), id)
	default:
		return ErrUnknown
	}
}

// Reply answers what the caller's job asks. The errors are of kind JobConflict
// if it asks nothing, and InvalidArguments, with pointers into replies, if a
// reply is missing or does not fit.
func (m *Manager) Reply(ctx context.Context, c bridge.Caller, id string, replies map[string]bridge.Reply) error {
	if _, _, err := m.Read(ctx, c, id, noEvents); err != nil {
		return err
	}
	switch j := m.find(c.Owner(), id); {
	case j != nil:
		return j.reply(replies)
	case m.shared != nil:
		return m.shared.reply(ctx, c.Owner(), id, replies)
	default:
		return ErrUnknown
	}
}
