// Package bridge is the domain: a [Call] to a [Tool] becomes an [Answer].
// [Bridge.Invoke] is the only way to run a tool and reads top to bottom; start
// there. The package knows no transport: it imports the standard library and
// raw, and everything else in this program imports it.
package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpbridge/internal/raw"
)

// A Call is one request to run a tool, or to do what another Method says. Invoke fills Timing
// and Received, also when it fails.
type Call struct {
	Handle string
	Method Method
	Tool   string // or, by the method, the resource's URI or the prompt's name; Invoke takes a completion's out of Args
	Args   []byte // the arguments as the caller sent them; Invoke checks and may flatten them. Empty is {}.
	Caller Caller
	ID     string // of the request that brought the call, for logs; may be empty
	Trace  Trace  // that the call is a part of

	DryRun bool // check and find out whether it could run, spend nothing
	// Timeout is the caller's own bound for the whole call, from its start; zero is none.
	Timeout time.Duration
	// Patient has the call wait in line for as long as it may take: nobody waits with it.
	Patient bool
	// Progress, if set, gets the params of each progress notification, in order. It must not block.
	Progress func(params json.RawMessage)
	// Log, if set, gets the params of each log message that the protocol ties to this call. It must not block.
	Log func(params json.RawMessage)
	// Running, if set, is called when the call is about to be made, which may be more than once. It must not block.
	Running func()
	// Ask, if set, is asked what the server asks; without it a server that asks gets no answer.
	Ask Asker
	// Relay makes an answer of what a server of the stateless protocol wants to have first: the Result has
	// Wanted, and the caller makes the call again with Resume. Other servers still need Ask.
	Relay bool
	// Resume are the members of params that go on with a relayed call, as the caller sent them; nil begins one.
	Resume []byte

	Timing   Timing
	Received int // bytes of the result
}

// Timing says where a call's time went. A step that was not reached is zero.
type Timing struct {
	Find, Check, Connect, Queue, Upstream, Walk, Store time.Duration
}

// An Answer is what a call brought.
type Answer struct {
	Tool     *Tool
	Result   *Result
	Artifact *Artifact // nil when it could not be stored, or is too big for the store
	Breach   string    // how the result breaks the tool's output schema; empty if it does not
}

// An Artifact is a stored result.
type Artifact struct {
	Ref     string
	Type    string
	Expires time.Time
}

// A Demand is everything that a call holds while it runs.
type Demand []Need

// A Need is an amount taken from one account, and how the account is configured.
type Need struct {
	Account  Account
	Amount   int
	Capacity int     // slots, or the burst of a rate
	Rate     float64 // how many a second, if the account is a rate
}

// An Account is something finite that calls share: the slots or the rate of one
// endpoint, or the slots of all endpoints of a transport.
type Account struct {
	Kind     AccountKind
	Endpoint EndpointID // zero for the pool-wide kinds
}

// An AccountKind says what an account counts.
type AccountKind uint8

// The kinds of accounts.
const (
	EndpointSlots AccountKind = iota // calls running on one endpoint
	EndpointRate                     // calls per time of one endpoint; spent for good
	StdioSlots                       // calls running on all subprocesses
	HTTPSlots                        // calls running on all remote servers
)

// Label names the account for people and problems: mcp:stdio, mcp:http, or mcp:<name>.
func (a Account) Label() string {
	switch a.Kind {
	case StdioSlots:
		return "mcp:stdio"
	case HTTPSlots:
		return "mcp:http"
	default:
		return a.Endpoint.Label
	}
}

// A Catalogue holds what the servers offer.
type Catalogue interface {
	// Snapshot returns the catalogue as this caller's connections make it. It never blocks and connects nothing.
	Snapshot(c Caller) *Snapshot
	// Attach begins to connect the server called handle for this caller, if it is one that
	// callers do not share and that is not connected for this one; a server that takes
	// headers of the request only if headers is set. A server whose last attempt failed is tried
	// again in the background once its circuit lets it. The channel is closed when a first
	// attempt under way has ended; it is nil when there is nothing to wait for. The error is of
	// kind Forbidden when the caller lacks what the server needs.
	Attach(c Caller, handle string, headers bool) (settled <-chan struct{}, err error)
}

// A Policy decides what a caller may see and call: one predicate for lists,
// documents and calls alike.
type Policy interface {
	Allows(c Caller, handle, tool string) bool
	// Sees reports whether a server of which no tool is known yet may have one that the caller may call.
	Sees(c Caller, handle string) bool
}

// A Budget holds a caller's own rate and concurrency. Spend decides at once; its
// error is of kind RateLimited. The returned release may be called more than once.
type Budget interface {
	Spend(ctx context.Context, c Caller) (release func(), err error)
}

// A Gate admits calls: it grants the whole demand in one step, or lets the call
// wait holding nothing. Its errors are of kind Overloaded, with the labels of
// the accounts that were full as the member "short", or the context's.
// A call waits for as long as wait; zero is the gate's own bound.
// The returned release may be called more than once; only the first counts.
type Gate interface {
	Admit(ctx context.Context, c Caller, d Demand, wait time.Duration) (release func(), err error)
}

// A Breaker keeps one circuit per endpoint.
type Breaker interface {
	// Open returns an error of kind Unavailable while calls would fail fast, else nil. It takes nothing.
	Open(e EndpointID) error
	// Allow takes the permit for one call; done must be called once with how it went.
	Allow(e EndpointID) (done func(error), err error)
}

// Clients hands out live clients.
type Clients interface {
	// Client returns a live client for the target, connecting if needed. It is
	// kept until done, which may be called more than once. The errors are of kind
	// Unavailable, UpstreamAuth or Overloaded, or the context's.
	Client(ctx context.Context, t *Target) (c Client, done func(), err error)
}

// A Client calls tools on one connection.
type Client interface {
	// Connected reports whether the connection is known to be alive.
	Connected() bool
	// Call runs one tool. letGo is called exactly once, when the server has let go of the
	// call, which may be later than Call returns: a caller that goes away does not stop the server.
	Call(ctx context.Context, r Request, letGo func()) (*Result, error)
}

// A Request is what a client needs to make a call.
type Request struct {
	Method Method
	Tool   *Tool
	Args   []byte // what comes behind the tool's Params: one JSON object on one line; or what the method's Checker made of it
	// Resume are members of the params that go on with a call whose server wanted something; nil at first.
	Resume []byte
	Caller Caller
	// Idle is the time without progress, Total the time in all, after which the call is given up.
	Idle, Total time.Duration
	Progress    func(params json.RawMessage)
	Log         func(params json.RawMessage)
	// Ask, if set, answers what the server asks while the call is running.
	Ask Asker
	// Trace goes along with the request. Wire, if set, is filled in by the time that Call returns.
	Trace Trace
	Wire  *Wire
}

// A Keeper turns results into artifacts.
type Keeper interface {
	// Keep stores the result for the caller. It returns nil when it does not keep it.
	Keep(ctx context.Context, c Caller, t *Tool, r *Result, timing *Timing) *Artifact
}

// Bridge runs calls. All fields but Tracer must be set.
type Bridge struct {
	Catalogue Catalogue
	Policy    Policy
	Budget    Budget
	Breaker   Breaker
	Clients   Clients
	Gate      Gate
	Keeper    Keeper
	Nesting   int // levels of nesting that arguments may have

	Tracer Tracer // nil records nothing; traces are passed on all the same
}

// Invoke runs one call. Read it to see the way of a call.
func (b *Bridge) Invoke(ctx context.Context, c *Call) (*Answer, error) {
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout, ErrCallerDeadline)
		defer cancel()
	}
	if err := b.name(c); err != nil {
		return nil, err
	}
	tool, err := b.await(ctx, c)
	if err != nil {
		return nil, err
	}
	args, err := b.check(c, tool)
	if err != nil {
		return nil, err
	}
	if c.DryRun {
		return &Answer{Tool: tool}, b.Breaker.Open(tool.Target.Endpoint)
	}
	// The caller's own budget comes before the shared line, where its empty bucket would hold up others.
	spent, err := b.Budget.Spend(ctx, c.Caller)
	if err != nil {
		return nil, err
	}
	defer spent()
	if err := b.Breaker.Open(tool.Target.Endpoint); err != nil {
		return nil, err
	}
	tool, res, err := b.rounds(ctx, c, tool, args)
	if err != nil {
		return nil, err
	}
	if res.Wanted != nil {
		return &Answer{Tool: tool, Result: res}, nil // which is not kept: nothing has run yet
	}
	return b.keep(ctx, c, tool, res)
}

// Find returns the tool that a call names, or why its caller cannot call it: the
// first step of Invoke, for those who only describe the tool. It does not wait for a
// server of the caller's own that it begins to connect.
func (b *Bridge) Find(c *Call) (*Tool, error) {
	t, _, err := b.find(c)
	return t, err
}

// moves is how often a call follows its tool when the servers are replaced under it.
const moves = 10

// await finds the tool, after the first attempt to connect a server of the caller's own if need be.
func (b *Bridge) await(ctx context.Context, c *Call) (*Tool, error) {
	for moved := 0; ; moved++ {
		t, settled, err := b.find(c)
		if settled == nil || moved == moves {
			return t, err
		}
		start := time.Now()
		select {
		case <-settled:
			stamp(start, &c.Timing.Connect)
			b.step(c, "connect", start, nil)
		case <-ctx.Done():
			return nil, ended(ctx, ctx.Err(), "before its server was connected")
		}
	}
}

// find looks the tool up. If that fails only because its server is being connected
// for this caller, settled is closed when it is worth another try.
func (b *Bridge) find(c *Call) (t *Tool, settled <-chan struct{}, err error) {
	defer stamp(time.Now(), &c.Timing.Find)
	for moved := 0; ; moved++ {
		snap := b.Catalogue.Snapshot(c.Caller)
		srv := snap.Server(c.Handle)
		if srv == nil || !b.Policy.Allows(c.Caller, c.Handle, c.Tool) {
			return nil, nil, b.unknown(snap, c)
		}
		if t := c.of(srv); t != nil {
			return t, nil, nil
		}
		if settled, err = b.Catalogue.Attach(c.Caller, c.Handle, true); err != nil {
			return nil, nil, err
		}
		// With nothing to wait for, it may have been connected meanwhile: by another call,
		// or long since for somebody with whom the caller shares it.
		if settled != nil || moved == moves || srv.State != Connecting && !srv.unattached() {
			return nil, settled, b.unknown(b.Catalogue.Snapshot(c.Caller), c)
		}
	}
}

// unknown says why a tool cannot be found, as far as the caller may know.
func (b *Bridge) unknown(snap *Snapshot, c *Call) error {
	srv := snap.Server(c.Handle)
	if srv == nil || !b.Sees(c.Caller, srv) {
		return &Error{Kind: NotFound, Op: "bridge.find", Msg: fmt.Sprintf("There is no server %q here; GET /tools, or bridge tools, lists the servers and their tools.", c.Handle)}
	}
	if len(srv.Tools) == 0 {
		switch srv.State {
		case Connecting:
			return &Error{Kind: NotReady, Op: "bridge.find", RetryAfter: time.Second, Msg: fmt.Sprintf("The server %q is still being connected; try again in a moment.", c.Handle)}
		case Disabled:
			return &Error{Kind: NotFound, Op: "bridge.find", Msg: fmt.Sprintf("The server %q is disabled in the configuration.", c.Handle)}
		case Failed:
			return &Error{Kind: Unavailable, Op: "bridge.find", RetryAfter: b.coolDown(srv), Msg: fmt.Sprintf("The server %q could not be started or reached, so its tools are not known: %s", c.Handle, srv.LastError)}
		case NeedsAuth:
			return &Error{Kind: UpstreamAuth, Op: "bridge.find", Msg: fmt.Sprintf("The server %q refuses the bridge's credentials, so its tools are not known: %s", c.Handle, srv.LastError)}
		}
	}
	for _, s := range srv.Skipped {
		if c.Method == CallTool && s.Name == c.Tool && b.Policy.Allows(c.Caller, c.Handle, c.Tool) {
			return &Error{Kind: NotFound, Op: "bridge.find", Msg: fmt.Sprintf("The tool %q of %q was left out: %s", c.Tool, c.Handle, s.Reason)}
		}
	}
	return c.noSuch(srv)
}

// coolDown is how long a server that could not be connected is left alone; it is tried in the background meanwhile.
func (b *Bridge) coolDown(s *Server) time.Duration {
	if e, ok := errors.AsType[*Error](b.Breaker.Open(s.Endpoint)); ok && e.RetryAfter > 0 {
		return e.RetryAfter
	}
	return 5 * time.Second
}

func (b *Bridge) check(c *Call, t *Tool) ([]byte, error) {
	defer stamp(time.Now(), &c.Timing.Check)
	args, err := b.strict(c.Args)
	if err != nil || t.Arguments == nil {
		return args, err
	}
	return t.Arguments.Check(args)
}

// strict returns arguments that are one JSON object on one line.
func (b *Bridge) strict(args []byte) ([]byte, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	if err := raw.Check(args, b.Nesting); err != nil {
		return nil, &Error{Kind: Malformed, Op: "bridge.check", Msg: fmt.Sprintf("The arguments must be one JSON object: %v.", err), Err: err}
	}
	// Only now is it safe to splice the bytes into a frame that ends with the line.
	raw.Flatten(args)
	return args, nil
}

// call runs the tool and returns it, since it may be another one by then. A client can die
// at any time: its slots then go back before another is connected. And its server can be
// replaced at any time: the tool is then found again, on the one that took its place.
func (b *Bridge) call(ctx context.Context, c *Call, t *Tool, args, resume []byte) (*Tool, *Result, error) {
	const tries = 3
	for try, moved := 1, 0; ; {
		r := b.request(c, t, args)
		r.Resume = resume
		res, err := b.try(ctx, c, r)
		e, ok := errors.AsType[*Error](err)
		switch {
		case !ok || ctx.Err() != nil:
			return t, res, err
		case e.Gone && moved < moves:
			moved++
			if t, args, err = b.again(ctx, c); err != nil {
				return t, nil, err
			}
		case e.Replay && try < tries:
			try++
		default:
			return t, res, err
		}
	}
}

// again finds and checks the call's tool once more, which may have other schemas now.
func (b *Bridge) again(ctx context.Context, c *Call) (*Tool, []byte, error) {
	t, err := b.await(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	args, err := b.check(c, t)
	if err != nil {
		return nil, nil, err
	}
	return t, args, b.Breaker.Open(t.Target.Endpoint)
}

func (b *Bridge) request(c *Call, t *Tool, args []byte) Request {
	r := Request{Method: c.Method, Tool: t, Args: args, Caller: c.Caller, Idle: t.Target.Timeout, Total: t.Target.MaxTimeout, Progress: c.Progress, Log: c.Log, Ask: c.Ask}
	if c.Timeout > 0 {
		r.Idle = 0 // the caller's own bound takes its place, and ctx has it
	}
	if rule := c.Caller.Rule; rule != nil && rule.Timeout > 0 {
		r.Total = min(cmp.Or(r.Total, rule.Timeout), rule.Timeout)
	}
	return r
}

// try gets a client, is admitted, and makes the call once.
func (b *Bridge) try(ctx context.Context, c *Call, r Request) (*Result, error) {
	client, done, err := b.connect(ctx, c, r.Tool.Target)
	if err != nil {
		return nil, err
	}
	defer done()
	release, err := b.admit(ctx, c, r.Tool.Target)
	if err != nil {
		return nil, err
	}
	if !client.Connected() {
		release()
		return nil, &Error{Kind: Unavailable, Op: "bridge.call", Replay: true, Msg: "The server's connection ended while the call was waiting to be made; try again."}
	}
	return b.run(ctx, c, client, r, release)
}

func (b *Bridge) connect(ctx context.Context, c *Call, t *Target) (Client, func(), error) {
	began := time.Now()
	client, done, err := b.Clients.Client(ctx, t)
	took := time.Since(began)
	c.Timing.Connect += took
	if err != nil || took >= time.Millisecond { // else it was there
		b.step(c, "connect", began, err)
	}
	return client, done, ended(ctx, err, "before it was made")
}

func (b *Bridge) admit(ctx context.Context, c *Call, t *Target) (func(), error) {
	began := time.Now()
	var wait time.Duration
	if c.Patient {
		wait = cmp.Or(c.Timeout, t.MaxTimeout)
	}
	release, err := b.Gate.Admit(ctx, c.Caller, t.Demand, wait)
	stamp(began, &c.Timing.Queue)
	b.step(c, "admission", began, err)
	return release, ended(ctx, err, "before it was made")
}

// errAborted is what the breaker learns of a call that panicked.
var errAborted = errors.New("call aborted")

func (b *Bridge) run(ctx context.Context, c *Call, client Client, r Request, release func()) (_ *Result, err error) {
	defer stamp(time.Now(), &c.Timing.Upstream)
	done, err := b.Breaker.Allow(r.Tool.Target.Endpoint)
	if err != nil {
		release()
		return nil, err
	}
	err = errAborted // overwritten by the return below, unless Call panics
	defer func() {
		if errors.Is(err, errAborted) {
			release()
		}
		done(err)
	}()
	if c.Running != nil {
		c.Running()
	}
	res, err := b.send(ctx, c, client, r, release)
	return res, ended(ctx, err, "and the server was told to cancel")
}

// keep stores the result and decides what it means: also a failure that the tool
// reports is an artifact, since its blocks may be all that the caller gets.
func (b *Bridge) keep(ctx context.Context, c *Call, t *Tool, r *Result) (*Answer, error) {
	a := &Answer{Tool: t, Result: r}
	c.Received = len(r.Raw)
	if t.Target.ParseText {
		r.parseText()
	}
	if !r.IsError {
		a.Breach = breach(t, r)
	}
	if c.Method.keeps() && !t.Target.Transient {
		// The tool has run: its result is kept even if the caller has gone away by now.
		began := time.Now()
		a.Artifact = b.Keeper.Keep(context.WithoutCancel(ctx), c.Caller, t, r, &c.Timing)
		b.step(c, "store", began, nil)
	}
	switch {
	case r.IsError:
		return nil, toolError(a)
	case a.Breach != "" && t.Target.Strict:
		return nil, &Error{
			Kind: InvalidResult, Op: "bridge.keep", Members: a.members(), Result: r,
			Msg: fmt.Sprintf("The tool ran, but its result breaks its own output schema: %s", a.Breach),
		}
	}
	return a, nil
}

// ErrStopping is why calls end that are still running when the bridge has to go.
var ErrStopping = errors.New("the bridge is stopping")

// ErrCallerDeadline is why a call ends whose caller bounded its time.
var ErrCallerDeadline = errors.New("the caller's own time limit")

// ended turns the bare error of a context that ended into one that says what to do.
func ended(ctx context.Context, err error, when string) error {
	if err == nil || ctx.Err() == nil {
		return err
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	if errors.Is(context.Cause(ctx), ErrStopping) {
		return &Error{Kind: OutcomeUnknown, Op: "bridge.Invoke", Msg: "The bridge is stopping; the call was ended " + when + ".", Err: err}
	}
	if errors.Is(context.Cause(ctx), ErrCallerDeadline) {
		return &Error{Kind: DeadlineExceeded, Op: "bridge.Invoke", Msg: "The time that the request allowed for the call was up " + when + ".", Err: err}
	}
	return &Error{Kind: KindOf(ctx.Err()), Op: "bridge.Invoke", Msg: "The caller went away.", Err: err}
}

func stamp(start time.Time, d *time.Duration) { *d += time.Since(start) }
