// Bench measures the bridge against the limits of the machine and against its peers, all in one
// run, in front of the same MCP server: make bench. What counts are the ratios within the run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// Whoever reads the output may have enough of it: that is an error like others, after which all is put away.
	signal.Ignore(syscall.SIGPIPE)
	err := command(ctx, os.Args[1:], os.Getenv, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A plan says how much is measured, and how often.
type plan struct {
	rounds    int           // in which everything has its turn
	few       int           // rounds of what takes long
	span      time.Duration // of one load
	conns     []int         // connections that small calls come over
	sizes     []int         // of results
	large     int           // the size of the large result
	waiters   int           // calls that wait, and do nothing
	tools     int           // of the long document
	servers   int           // of the cold start
	reads     int           // of a short field of the large artifact
	stored    int           // artifacts for the growth
	profiled  int           // seconds
	slowPeers bool          // whether peers get the large result too, which they take long for
}

var (
	whole = plan{
		rounds: 5, few: 3, span: 800 * time.Millisecond, conns: []int{1, 32, 256}, sizes: []int{10 << 10, 100 << 10, 1 << 20}, large: 50 << 20,
		waiters: 10000, tools: 2000, servers: 20, reads: 500, stored: 100000, profiled: 10, slowPeers: true,
	}
	short = plan{
		rounds: 2, few: 1, span: 150 * time.Millisecond, conns: []int{1, 32}, sizes: []int{100 << 10}, large: 50 << 20,
		waiters: 10000, tools: 2000, servers: 20, reads: 100, stored: 10000, profiled: 1,
	}
)

// peers are other programs, by name, that are there already: each has tools at URL/tool.
type peers map[string]string

func (p peers) String() string { return "" }

func (p peers) Set(s string) error {
	name, url, ok := strings.Cut(s, "=")
	if !ok || !strings.HasPrefix(url, "http://") {
		return errors.New("write name=http://host:port/path")
	}
	p[name] = strings.TrimRight(url, "/")
	return nil
}

func command(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	be := f.String("be", "", "be one of the programs that are measured: echo, bare, sdk (bench itself uses this, -addr and -tools)")
	addr := f.String("addr", "", "of -be: the address to listen at; empty is the standard input and output")
	tools := f.Int("tools", 0, "of -be: how many tools to have, at least")
	b := bench{peers: peers{}, out: out}
	f.StringVar(&b.program, "bridge", "bin/bridge", "the program of the bridge")
	f.StringVar(&b.mcpo, "mcpo", getenv("BENCH_MCPO"), "the program mcpo; empty is the one in PATH, if any ($BENCH_MCPO)")
	f.Var(b.peers, "peer", "another program to measure, that has the tools of 'bench -be echo': name=URL under which they are (repeatable)")
	f.StringVar(&b.results, "results", "", "a directory to write results.md and results.svg to, if all is measured and it is no short run; empty writes none")
	f.StringVar(&b.only, "only", "", "measure only these parts, by commas: "+strings.Join(partNames(), ", "))
	quick := f.Bool("short", false, "take less than a minute, for less certain figures")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("there are only flags, and %q is none", f.Arg(0))
	}
	if err := b.choose(); err != nil {
		return err
	}
	switch *be {
	case "":
	case "echo":
		if *addr == "" {
			return newEcho(*tools).stdio(os.Stdin, os.Stdout)
		}
		return listenAndServe(ctx, *addr, newEcho(*tools))
	case "bare":
		return listenAndServe(ctx, *addr, bare())
	case "sdk":
		h, err := viaSDK(ctx, *tools)
		if err != nil {
			return err
		}
		return listenAndServe(ctx, *addr, h)
	default:
		return fmt.Errorf("cannot be %q", *be)
	}
	b.plan = whole
	if *quick {
		b.plan = short
	}
	if *quick || b.only != "" {
		b.results = "" // which have everything, or nothing of it
	}
	return b.run(ctx)
}

// A bench is one run.
type bench struct {
	plan
	program string // the bridge
	mcpo    string // empty if there is none
	redis   string // empty if there is none
	peers   peers
	only    string
	results string
	out     io.Writer

	dir      string // for configurations and logs
	began    time.Time
	sections []section
	chart    []panel
	figures  figures
	missing  []string // what is not installed, and so not measured
}

// parts are what is measured, in this order.
var parts = []struct {
	name    string
	measure func(*bench, context.Context) error
}{
	{"calls", (*bench).calls},
	{"profile", (*bench).compositions},
	{"large", (*bench).largeResult},
	{"field", (*bench).shortField},
	{"waiters", (*bench).idleWaiters},
	{"document", (*bench).longDocument},
	{"start", (*bench).coldStart},
	{"growth", (*bench).growth},
}

// choose refuses parts that there are not.
func (b *bench) choose() error {
	if b.only == "" {
		return nil
	}
	for name := range strings.SplitSeq(b.only, ",") {
		if !slices.Contains(partNames(), name) {
			return fmt.Errorf("there is no part %q; there are %s", name, strings.Join(partNames(), ", "))
		}
	}
	return nil
}

func partNames() []string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return names
}

func (b *bench) run(ctx context.Context) (err error) {
	b.began = time.Now()
	if b.dir, err = os.MkdirTemp("", "bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.program, err = filepath.Abs(b.program); err != nil {
		return err
	}
	if b.mcpo == "" {
		b.mcpo, _ = exec.LookPath("mcpo")
	}
	if b.mcpo == "" {
		b.missing = append(b.missing, "mcpo")
	}
	if b.redis, _ = exec.LookPath("redis-server"); b.redis == "" {
		b.missing = append(b.missing, "redis-server")
	}
	if len(b.missing) > 0 {
		fmt.Fprintf(os.Stderr, "bench: not measured, for want of it: %s\n", strings.Join(b.missing, ", "))
	}
	for _, p := range parts {
		if b.only != "" && !strings.Contains(","+b.only+",", ","+p.name+",") {
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: after %.0f s: %s\n", time.Since(b.began).Seconds(), p.name)
		switch err := p.measure(b, ctx); {
		case err == nil:
		case ctx.Err() != nil:
			return fmt.Errorf("%s: interrupted; no results are written", p.name) // err is of connections that were closed for that
		default:
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	if len(b.sections) == 0 {
		return fmt.Errorf("nothing of it can be measured without %s", strings.Join(b.missing, ", "))
	}
	return b.report()
}
