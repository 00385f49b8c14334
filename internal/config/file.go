package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A File is a configuration file that is read again when it changes. It is never written.
type File struct {
	Path   string
	getenv func(string) string

	loaded loaded
}

// NewFile returns the file at path. References to the environment are looked up with getenv; see [Read].
func NewFile(path string, getenv func(string) string) *File {
	return &File{Path: path, getenv: getenv, loaded: loaded{paths: []string{path}}}
}

// Load reads the file as it is now. See [Read].
func (f *File) Load() (*Config, []Problem, error) {
	f.loaded.reading()
	r, err := os.Open(f.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	defer r.Close()
	d := &decoder{name: f.Path, dir: filepath.Dir(f.Path), getenv: f.getenv}
	cfg, warnings, err := decode(r, d)
	if err == nil || len(d.files) > 0 {
		// Else it could not even be parsed, and refers to what it referred to before.
		slices.Sort(d.files)
		f.loaded.read(append([]string{f.Path}, slices.Compact(d.files)...))
	}
	return cfg, warnings, err
}

// Watch calls changed after the file, or one that it takes a ${file:…} from, has
// come to hold something else than was loaded, until ctx ends. What is called is to load it.
func (f *File) Watch(ctx context.Context, changed func()) { f.loaded.watch(ctx, changed) }
