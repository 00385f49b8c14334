// Package config reads the configuration file: one file, YAML or JSON, that
// holds the MCP servers in the form people already have (mcpServers) and the
// settings of the bridge itself.
//
// [Load] and [Read] decode strictly over the defaults and report every problem
// at once, each with its line. Text in the file may refer to the environment
// and to files (${NAME}, ${NAME:-default}, ${file:path}); what such references
// stand for is taken as secret and never appears in a message.
//
// The package is a leaf: it imports no other package of this program, and only
// cmd/bridge turns a [Config] into the options of the others.
package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxFileBytes bounds the configuration file itself.
const maxFileBytes = 4 << 20

// Config is what a configuration file says, with every default filled in.
type Config struct {
	Name    string   // where it came from, for messages: a path, or "" without a file
	Dir     string   // what relative paths in the file are relative to
	Servers []Server // in the order of the file, disabled ones included
	Bridge  Bridge
}

// Server returns the server of that handle.
func (c *Config) Server(handle string) (*Server, bool) {
	for i := range c.Servers {
		if c.Servers[i].Handle == handle {
			return &c.Servers[i], true
		}
	}
	return nil, false
}

// Default is the configuration of an empty file: no servers, all defaults.
func Default() *Config {
	return &Config{Bridge: DefaultBridge()}
}

// Load reads the file at path. See [Read].
func Load(path string, getenv func(string) string) (*Config, []Problem, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	return Read(f, path, getenv)
}

// Read decodes a configuration. The name is the file's path: it is shown in
// messages, and relative paths in the file are relative to its directory.
//
// References to the environment are looked up with getenv; a variable that is
// empty counts as unset. With a nil getenv nothing is expanded, neither from the
// environment nor from files, and such text stays as it is written.
//
// The warnings are about things that have no effect; they are returned also
// beside an error. The error is an [*Error] with every problem of the file,
// unless reading itself failed. Neither ever holds an expanded value, nor a
// value of a server's env or headers.
func Read(r io.Reader, name string, getenv func(string) string) (*Config, []Problem, error) {
	return decode(r, &decoder{name: name, dir: filepath.Dir(name), getenv: getenv})
}

func decode(r io.Reader, d *decoder) (*Config, []Problem, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, nil, fmt.Errorf("configuration: %w", err)
	}
	if len(data) > maxFileBytes {
		d.problem(0, "", "the file is larger than 4 MiB")
		return nil, nil, d.err()
	}
	root, err := parse(data)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok {
			e.Name = d.name
		}
		return nil, nil, err
	}
	cfg := d.file(root)
	if err := d.err(); err != nil {
		return nil, d.sortedWarnings(), err
	}
	return cfg, d.sortedWarnings(), nil
}

// defaultNames are the files [Find] looks for, in this order. The last is the
// name that other gateways use.
var defaultNames = []string{"bridge.yaml", "bridge.json", "mcp-servers-config.json"}

// ErrNoFile is in the tree of [Find]'s error when there is no file to use.
var ErrNoFile = errors.New("no configuration file")

// Find returns the path of the configuration file in dir: bridge.yaml,
// bridge.json or mcp-servers-config.json, the first that exists.
func Find(dir string) (string, error) {
	for _, name := range defaultNames {
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("configuration: %w", err)
		}
		if info.IsDir() {
			continue
		}
		return path, nil
	}
	return "", fmt.Errorf("%w: looked for bridge.yaml, bridge.json and mcp-servers-config.json in %s; "+
		"name a file with --config, or a server with: bridge serve -- command args", ErrNoFile, dir)
}
