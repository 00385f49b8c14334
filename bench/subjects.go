package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// A subject is one of the programs that are measured, as it runs, with what stands behind it.
type subject struct {
	name   string
	addr   string
	path   string // in front of a tool's name
	header string // lines that all requests have
	own    *process
	others []*process // that work for it, besides its children
	redis  *redisServer
}

// A maker starts a subject.
type maker struct {
	name  string
	about string
	start func(ctx context.Context) (*subject, error)
	// foreign is a program that is not ours: the run goes on without it if it does not start.
	foreign bool
}

func (s *subject) call(tool, args string) request {
	return post(s.addr, s.path+tool, s.header, args)
}

func (s *subject) stop() {
	if s.own != nil {
		s.own.stop()
	}
	for _, p := range s.others {
		p.stop()
	}
}

// pids returns the subject's own process and those that work for it.
func (s *subject) pids() (own int, others []int) {
	if s.own == nil {
		return 0, nil
	}
	own = s.own.cmd.Process.Pid
	others = descendants(own)
	for _, p := range s.others {
		others = append(others, p.cmd.Process.Pid)
	}
	return own, others
}

// ready waits until the subject answers a call, and answers it rightly.
func (s *subject) ready(ctx context.Context) error {
	const text = "is anybody there"
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var last error
	for {
		a, body, err := once(ctx, s.call("echo", `{"text":"`+text+`"}`))
		if err == nil {
			err = a.success()
		}
		if err == nil && !bytes.Contains(body, []byte(text)) {
			err = fmt.Errorf("it answers %.200q", body)
		}
		if err == nil {
			return nil
		}
		last = err
		if s.own != nil {
			select {
			case <-s.own.done:
				said, _ := os.ReadFile(s.own.log)
				return fmt.Errorf("%s ended: %s", s.name, bytes.TrimSpace(said))
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w", s.name, last)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// begin waits for what a maker started, and stops it if it does not get ready.
func (s *subject) begin(ctx context.Context) (*subject, error) {
	if err := s.ready(ctx); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

const (
	nameN = "N: bare net/http"
	nameS = "S: net/http + SDK"
	nameM = "M: mcpo"
	nameB = "bridge"
)

func (b *bench) bare() maker {
	return maker{name: nameN, about: "a net/http handler that answers what it is sent; there is no MCP server behind it", start: func(ctx context.Context) (*subject, error) {
		return b.simple(ctx, nameN, self(), "-be", "bare", "-addr", "{addr}")
	}}
}

func (b *bench) sdk() maker {
	return maker{name: nameS, about: "a net/http handler around CallTool of the official Go SDK, over stdio", start: func(ctx context.Context) (*subject, error) {
		return b.simple(ctx, nameS, self(), "-be", "sdk", "-addr", "{addr}")
	}}
}

func (b *bench) mcpoPeer() maker {
	return maker{name: nameM, about: "mcpo from PyPI, over stdio", start: func(ctx context.Context) (*subject, error) {
		return b.simple(ctx, nameM, b.mcpo, "--host", "{host}", "--port", "{port}", "--", self(), "-be", "echo")
	}, foreign: true}
}

func (b *bench) urlPeer(name, at string) maker {
	return maker{name: name, about: "at " + at, start: func(ctx context.Context) (*subject, error) {
		u, err := url.Parse(at)
		if err != nil {
			return nil, err
		}
		return (&subject{name: name, addr: u.Host, path: u.Path + "/"}).begin(ctx)
	}, foreign: true}
}

// simple starts a program that has the tools at /tool. {addr}, {host} and {port} in args are where it is to listen.
func (b *bench) simple(ctx context.Context, name, program string, args ...string) (*subject, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	for i, a := range args {
		switch a {
		case "{addr}":
			args[i] = addr
		case "{host}":
			args[i] = host
		case "{port}":
			args[i] = port
		}
	}
	p, err := start(b.dir, name, addr, program, args...)
	if err != nil {
		return nil, err
	}
	return (&subject{name: name, addr: addr, path: "/", own: p}).begin(ctx)
}

// A setup says how a bridge is to be.
type setup struct {
	about   string
	http    bool   // the server behind it is reached by HTTP, not a child
	redis   bool   // results are kept in a Redis
	key     bool   // callers have an API key
	once    bool   // calls have an Idempotency-Key, each its own
	tools   int    // of each server
	servers int    // that there are, all alike; 0 is 1
	bytes   int    // for artifacts in memory; 0 is the default
	debug   string // where profiles are served; empty for none
	single  bool   // there is another server, single, that gets one call at a time
}

// viaBridge makes a bridge whose limits bind nowhere.
func (b *bench) viaBridge(name string, o setup) maker {
	return maker{name: name, about: o.about, start: func(ctx context.Context) (*subject, error) { return b.startBridge(ctx, name, o) }}
}

func (b *bench) startBridge(ctx context.Context, name string, o setup) (_ *subject, err error) {
	s := &subject{name: name, path: "/tools/echo/"}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	const many = 1 << 20
	settings := map[string]any{
		"pool":        map[string]any{"stdioCalls": many, "stdioCallsPerServer": many, "httpCalls": many, "maxProcesses": 1000},
		"queue":       map[string]any{"maxWait": "10m", "maxWaiting": many, "maxWaitingPerCaller": many},
		"timeouts":    map[string]any{"call": "5m"},
		"limits":      map[string]any{"resultBytes": "256MiB"},
		"cancelGrace": "500ms",
	}
	if o.debug != "" {
		settings["telemetry"] = map[string]any{"debugListen": o.debug}
	}
	store := map[string]any{}
	settings["artifacts"] = store
	if o.bytes > 0 {
		store["bytes"] = o.bytes
	}
	if o.redis {
		if s.redis, err = b.startRedis(ctx); err != nil {
			return nil, err
		}
		s.others = append(s.others, s.redis.process)
		store["store"] = "redis://" + s.redis.addr + "/0"
	}
	if o.key {
		// The key is "bench", and no secret.
		settings["auth"] = map[string]any{"keys": []any{map[string]any{
			"id": "bench", "scopes": []string{"call"}, "allow": []string{"*/*"},
			"hash": "sha256:" + sum("bench"),
		}}}
		s.header = "Authorization: Bearer bench\r\n"
	}
	if o.once {
		s.header += "Idempotency-Key: " + keyDigits + "\r\n"
	}
	server := map[string]any{"command": self(), "args": []string{"-be", "echo", "-tools", strconv.Itoa(o.tools)}}
	if o.http {
		addr, err := freeAddr()
		if err != nil {
			return nil, err
		}
		p, err := start(b.dir, "echo", addr, self(), "-be", "echo", "-addr", addr)
		if err != nil {
			return nil, err
		}
		s.others = append(s.others, p)
		if err := p.listening(ctx); err != nil {
			return nil, err
		}
		server = map[string]any{"url": "http://" + addr + "/mcp"}
	}
	servers := map[string]any{"echo": server}
	for i := 1; i < o.servers; i++ {
		servers[fmt.Sprintf("echo%02d", i)] = map[string]any{"command": self(), "args": []string{"-be", "echo"}, "env": map[string]string{"NUMBER": strconv.Itoa(i)}}
	}
	if o.single {
		servers["single"] = map[string]any{"command": self(), "args": []string{"-be", "echo", "-tools", "1"}, "maxConcurrent": 1}
	}
	config, err := json.Marshal(map[string]any{"mcpServers": servers, "bridge": settings})
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, strconv.FormatInt(time.Now().UnixNano(), 36)+".json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return nil, err
	}
	if s.addr, err = freeAddr(); err != nil {
		return nil, err
	}
	if s.own, err = start(b.dir, name, s.addr, b.program, "serve", "--config", file, "--listen", s.addr); err != nil {
		return nil, err
	}
	if o.servers > 1 {
		return s, nil // whoever wants so many looks for himself when they are there
	}
	return s, s.ready(ctx)
}

// A redisServer is a Redis of our own, that keeps nothing on disk.
type redisServer struct {
	*process
}

func (b *bench) startRedis(ctx context.Context) (*redisServer, error) {
	if b.redis == "" {
		return nil, errors.New("redis-server is not installed")
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	p, err := start(b.dir, "redis", addr, b.redis, "--bind", host, "--port", port, "--save", "", "--appendonly", "no",
		"--maxmemory", "2gb", "--maxmemory-policy", "allkeys-lru", "--dir", b.dir)
	if err != nil {
		return nil, err
	}
	return &redisServer{p}, p.listening(ctx)
}

// sum is how the configuration of the bridge has a key.
func sum(key string) string {
	s := sha256.Sum256([]byte(key))
	return hex.EncodeToString(s[:])
}
