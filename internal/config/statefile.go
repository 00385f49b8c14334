package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

const maxStateBytes = 64 << 20

// A StateFile is a [Store] in a file of the bridge's own, which only its user can
// read: entries hold secrets. A write replaces the file as a whole, so that whoever reads
// it, or a machine that fails, has it as it was before or after.
type StateFile struct {
	path   string
	mu     sync.Mutex // one write at a time
	loaded loaded
}

var _ Store = (*StateFile)(nil)

// OpenStateFile returns the store in the file at path, which need not be there yet.
func OpenStateFile(path string) *StateFile {
	return &StateFile{path: path, loaded: loaded{paths: []string{path}}}
}

// Name implements [Store].
func (s *StateFile) Name() string { return "state file" }

// Path is where the file is.
func (s *StateFile) Path() string { return s.path }

// Close implements [Store].
func (s *StateFile) Close() error { return nil }

// A state is what the file holds.
type state struct {
	Entries []json.RawMessage `json:"entries"`
}

// Load implements [Store].
func (s *StateFile) Load(context.Context) ([]Entry, error) {
	s.loaded.reading()
	st, err := s.read()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(st.Entries))
	for _, data := range st.Entries {
		var r record
		if err := json.Unmarshal(data, &r); err != nil {
			entries = append(entries, Entry{Err: errors.New("it is no record of an entry")})
			continue
		}
		var data bytes.Buffer
		if len(r.Entry) > 0 {
			_ = json.Compact(&data, r.Entry) // it has just been parsed
			r.Entry = data.Bytes()
		}
		entries = append(entries, r.entry())
	}
	return entries, nil
}

func (s *StateFile) read() (state, error) {
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, fmt.Errorf("state file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStateBytes+1))
	switch {
	case err != nil:
		return state{}, fmt.Errorf("state file: %w", err)
	case len(data) > maxStateBytes:
		return state{}, fmt.Errorf("state file: %s is larger than 64 MiB", s.path)
	}
	var st state
	if err := json.Unmarshal(data, &st); err != nil {
		// The decoder's error may quote what is there.
		return state{}, fmt.Errorf("state file: %s is not what the bridge writes; mend it, or move it away to begin anew", s.path)
	}
	return st, nil
}

// Watch implements [Store]: the file may be changed by hand.
func (s *StateFile) Watch(ctx context.Context, changed func()) { s.loaded.watch(ctx, changed) }

// Write implements [Store].
func (s *StateFile) Write(_ context.Context, key EntryKey, data json.RawMessage, c Condition) (Entry, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, err := s.read()
	if err != nil {
		return Entry{}, false, err
	}
	have := ""
	at := slices.IndexFunc(st.Entries, func(raw json.RawMessage) bool {
		var r record
		if json.Unmarshal(raw, &r) != nil || r.key() != key {
			return false
		}
		have = r.Version
		return true
	})
	switch {
	case !c.holds(have):
		return Entry{}, false, &VersionError{Current: have}
	case data == nil && at < 0:
		return Entry{}, false, ErrNoEntry
	}
	if at >= 0 {
		st.Entries = slices.Delete(st.Entries, at, at+1)
	}
	e := Entry{Key: key}
	if data != nil {
		e.Version, e.Data = newVersion(), data
		var raw bytes.Buffer
		if err := encoder(&raw).Encode(newRecord(key, e.Version, data)); err != nil {
			return Entry{}, false, fmt.Errorf("state file: %w", err)
		}
		st.Entries = append(st.Entries, raw.Bytes())
	}
	if err := s.replace(st); err != nil {
		return Entry{}, false, fmt.Errorf("state file: %w", err)
	}
	return e, at >= 0, nil
}

// replace writes the whole file beside the old one, and puts it in its place when
// it is on the disk.
func (s *StateFile) replace(st state) (err error) {
	if st.Entries == nil {
		st.Entries = []json.RawMessage{}
	}
	var buf bytes.Buffer
	enc := encoder(&buf)
	enc.SetIndent("", "  ")
	if err := enc.Encode(st); err != nil {
		return err
	}
	dir := filepath.Dir(s.path)
	f, err := os.CreateTemp(dir, filepath.Base(s.path)+".*.tmp") // readable by its owner only
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(buf.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), s.path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	// A file system that cannot do this has still replaced the file.
	_ = d.Sync()
	return d.Close()
}

// encoder leaves text as it is.
func encoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}
