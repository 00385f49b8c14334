package config

import (
	"encoding/json"
	"log/slog"
	"time"
)

// Bridge is the bridge section: everything that is not about one server.
type Bridge struct {
	Listen   string   // host:port
	BasePath string   // "" or as "/bridge": a slash in front, none at the end
	Hosts    []string // lower-case names accepted in Host, without port

	ReadyGrace    time.Duration
	DrainDelay    time.Duration // from SIGTERM, with which /readyz says no, until nobody is accepted any more
	ShutdownGrace time.Duration
	CancelGrace   time.Duration

	Timeouts         Timeouts
	Pool             Pool
	Queue            Queue
	Breaker          Breaker
	Limits           Limits
	DescriptionChars int
	Artifacts        Artifacts
	Jobs             Jobs
	Idempotency      Idempotency
	Auth             Auth
	CORS             CORS
	Sources          Sources
	Admin            Admin
	OperationIDs     OperationIDs
	Compat           Compat
	Telemetry        Telemetry
}

// Timeouts are the defaults of the servers' own, and a bound.
type Timeouts struct {
	Call       time.Duration
	MaxTimeout time.Duration // what no call may pass, whoever asks for it
	Start      time.Duration
	Handshake  time.Duration
}

// Pool bounds connections, processes and calls.
type Pool struct {
	StdioCalls          int // calls at a time on all stdio servers
	StdioCallsPerServer int
	HTTPCalls           int // calls at a time on all HTTP servers
	MaxProcesses        int
	Connects            int           // connection attempts at a time
	IdleTimeout         time.Duration // 0: never
}

// Queue bounds the line of calls that wait for admission.
type Queue struct {
	MaxWait             time.Duration
	MaxWaiting          int // 0: nobody waits
	MaxWaitingPerCaller int
}

// Breaker sets the circuits.
type Breaker struct {
	Failures    int // in a row, to open
	Cooldown    time.Duration
	MaxCooldown time.Duration
}

// Limits bounds what comes in, from callers and from servers.
type Limits struct {
	RequestBytes   int64
	ResultBytes    int64
	Nesting        int
	ToolsPerServer int
	Pages          int
}

// Artifacts sets how results are kept.
type Artifacts struct {
	Store        Value // "memory", or the URL of a Redis
	Bytes        int64 // bound of the memory store; 0: it keeps nothing
	TTL          time.Duration
	PromoteBytes int64
	SummaryAfter int // characters
	SummaryChars int // characters
	Summaries    int // entries of the cache; 0: no cache
	Types        map[string]json.RawMessage
}

// Jobs sets long calls.
type Jobs struct {
	TTL       time.Duration
	PerCaller int
	InputWait time.Duration
	Events    int
}

// Idempotency sets how long answers are kept under an Idempotency-Key.
type Idempotency struct {
	TTL time.Duration
}

// CORS names the origins whose pages may call the bridge: each as
// "https://app.example.com", or "*" for all.
type CORS struct {
	Origins []string
}

// Sources are places besides the file that servers come from.
type Sources struct {
	Redis Value // a URL, or empty
}

// Admin sets the administration API.
type Admin struct {
	StateFile     string // path of a file of the bridge's own, or empty
	AllowCommands bool   // whether entries may start processes
}

// OperationIDs says how operations are named in OpenAPI documents.
type OperationIDs string

// The ways of naming operations.
const (
	OperationIDsPlain OperationIDs = "plain"
	OperationIDsMCPO  OperationIDs = "mcpo"
)

// Compat switches on the surfaces of other programs.
type Compat struct {
	MCPO bool
}

// Telemetry sets logs, traces and profiling.
type Telemetry struct {
	LogLevel    slog.Level
	OTLP        string // URL of a collector, or empty
	DebugListen string // host:port on loopback, or empty
}

// DefaultBridge returns the defaults.
func DefaultBridge() Bridge {
	return Bridge{
		Listen:           "127.0.0.1:8080",
		ReadyGrace:       10 * time.Second,
		ShutdownGrace:    20 * time.Second,
		CancelGrace:      5 * time.Second,
		Timeouts:         Timeouts{Call: 20 * time.Second, MaxTimeout: 10 * time.Minute, Start: 30 * time.Second, Handshake: 20 * time.Second},
		Pool:             Pool{StdioCalls: 20, StdioCallsPerServer: 10, HTTPCalls: 64, MaxProcesses: 64, Connects: 8, IdleTimeout: 300 * time.Second},
		Queue:            Queue{MaxWait: 10 * time.Second, MaxWaiting: 1000, MaxWaitingPerCaller: 100},
		Breaker:          Breaker{Failures: 5, Cooldown: 120 * time.Second, MaxCooldown: 10 * time.Minute},
		Limits:           Limits{RequestBytes: 4 << 20, ResultBytes: 64 << 20, Nesting: 1000, ToolsPerServer: 10000, Pages: 1000},
		DescriptionChars: 4096,
		Artifacts: Artifacts{
			Store: Plain("memory"), Bytes: 256 << 20, TTL: time.Hour,
			PromoteBytes: 2000, SummaryAfter: 1000, SummaryChars: 500, Summaries: 10000,
		},
		Jobs:         Jobs{TTL: time.Hour, PerCaller: 100, InputWait: 10 * time.Minute, Events: 1000},
		Idempotency:  Idempotency{TTL: 24 * time.Hour},
		OperationIDs: OperationIDsPlain,
		Telemetry:    Telemetry{LogLevel: slog.LevelInfo},
	}
}
