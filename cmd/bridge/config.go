package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"mcpbridge/internal/config"
)

// configFlags say where the servers come from.
type configFlags struct {
	Config string `short:"c" type:"path" placeholder:"FILE" help:"Configuration file; else $$BRIDGE_CONFIG, or bridge.yaml, bridge.json or mcp-servers-config.json in the working directory."`
	Demo   bool   `help:"Use the built-in demo server and no configuration file."`
}

// errConfig is in the tree of an error of the configuration. It adds nothing to the message.
var errConfig = errors.New("")

// load reads the configuration and prints its warnings.
func (f configFlags) load(io streams) (*config.Config, error) {
	cfg, _, err := f.loadFile(io)
	return cfg, err
}

// loadFile does the same, and returns the file, or nil if the configuration is not from one.
func (f configFlags) loadFile(io streams) (*config.Config, *config.File, error) {
	cfg, err := f.withoutFile(io)
	if cfg != nil || err != nil {
		return cfg, nil, err
	}
	path := f.Config
	if path == "" {
		path = io.getenv("BRIDGE_CONFIG")
	}
	if path == "" {
		found, err := config.Find(".")
		if err != nil {
			return nil, nil, fmt.Errorf("%w; or try the built-in server with --demo%w", err, errConfig)
		}
		path = found
	}
	file := config.NewFile(path, io.getenv)
	cfg, warnings, err := file.Load()
	printWarnings(io.stderr, path, warnings)
	if err != nil {
		if list, ok := errors.AsType[*config.Error](err); ok {
			return nil, nil, fmt.Errorf("%s: %s:\n%w%w", path, count(len(list.Problems), "problem"), err, errConfig)
		}
		return nil, nil, fmt.Errorf("%w%w", err, errConfig)
	}
	return cfg, file, checkParts(cfg)
}

// withoutFile returns the configuration that the command line is, or nil if it is none.
func (f configFlags) withoutFile(io streams) (*config.Config, error) {
	switch command := io.command; {
	case len(command) > 0 && (f.Demo || f.Config != ""), f.Demo && f.Config != "":
		return nil, fmt.Errorf("use one of --config, --demo and a command behind --; %w", errUsage)
	case len(command) == 1 && (strings.HasPrefix(command[0], "http://") || strings.HasPrefix(command[0], "https://")):
		return config.FromURL(command[0])
	case len(command) > 0:
		return config.FromCommand(command)
	case f.Demo:
		return demoConfig()
	}
	return nil, nil //nolint:nilnil // as the comment says
}

func printWarnings(w io.Writer, path string, warnings []config.Problem) {
	for _, p := range warnings {
		fmt.Fprintf(w, "bridge: warning: %s: %s\n", path, p)
	}
}

// demoConfig is the configuration of one server, which is this very program.
func demoConfig() (*config.Config, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg, err := config.FromCommand([]string{self, "demo"})
	if err != nil {
		return nil, err
	}
	cfg.Servers[0].Handle, cfg.Servers[0].Name = "demo", "demo"
	return cfg, nil
}
