package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"mcpbridge/internal/mcp/rpc"
)

const (
	grantWait   = 10 * time.Second // for a new token, all the ways to it included
	renewAhead  = time.Minute      // before a token expires, or a quarter of its life if that is shorter
	renewPause  = 10 * time.Second // after a renewal ahead of time that failed
	clockSlack  = 5 * time.Second  // a token is not used in its last moments, or the last tenth of its life if that is shorter
	shownTokens = 8                // of the latest tokens are kept out of errors and logs: a server may repeat one late
)

// Tokens are what one [Credential] has got for one server. The connections to
// the server, of which a later one follows an earlier one, share them. Whoever needs a token
// while there is none waits for the one request for it that is under way.
type Tokens struct {
	credential Credential
	signer     jose.Signer // nil for a client with a secret

	hide atomic.Pointer[rpc.Redactor] // knows the credential's secrets and the latest tokens

	mu        sync.Mutex
	token     *token     // the latest; nil if it was refused, or there has been none
	shown     []string   // the latest tokens' texts
	grant     *grant     // the one that is under way, or nil
	door      *door      // where tokens are to be had; nil until that is found out
	challenge *challenge // of the server that refused the last token; nil if it has not
	pause     time.Time  // no renewal ahead of time before
}

// A token is one that the authorization server gave. The zero times never come.
type token struct {
	text   string
	renew  time.Time // it is good still, but another one is wanted
	expiry time.Time
}

var errGrantOver = errors.New("the connection that asked for a token has ended")

// newToken is the token of a text with a life from now on; zero is not known.
func newToken(text string, life time.Duration) *token {
	t := &token{text: text}
	if life > 0 {
		now := time.Now()
		t.renew = now.Add(life - min(renewAhead, life/4))
		t.expiry = now.Add(life - min(clockSlack, life/10))
	}
	return t
}

func (t *token) good() bool { return t != nil && (t.expiry.IsZero() || time.Now().Before(t.expiry)) }

func (t *token) aging() bool { return !t.renew.IsZero() && !time.Now().Before(t.renew) }

// A grant is a request for a token, and what comes before it.
type grant struct {
	done  chan struct{} // closed with token or err
	token *token
	err   error
}

// A granter gets tokens, on behalf of a connection.
type granter interface {
	// spawn runs f in a goroutine, unless the connection has ended.
	spawn(f func()) error
	// obtain asks for a token, at the door if it is known. Its context ends with the connection.
	obtain(t *Tokens, d *door, ch *challenge) (*token, *door, error)
	// over reports whether the connection has ended, and so what it had under way.
	over() bool
}

// NewTokens returns the tokens of a credential, of which there are none yet.
func NewTokens(c Credential) (*Tokens, error) {
	s, err := c.signer()
	if err != nil {
		return nil, err
	}
	t := &Tokens{credential: c, signer: s}
	t.concealLocked()
	return t, nil
}

// get returns a token to use now. One that will expire soon is renewed meanwhile, and nobody waits for it.
func (t *Tokens) get(ctx context.Context, g granter) (*token, error) {
	for {
		t.mu.Lock()
		if tok := t.token; tok.good() {
			if tok.aging() && t.grant == nil && !time.Now().Before(t.pause) {
				_, _ = t.beginLocked(g) // a connection that has ended needs no other token
			}
			t.mu.Unlock()
			return tok, nil
		}
		under, err := t.beginLocked(g)
		t.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-under.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if errors.Is(under.err, errGrantOver) && !g.over() {
			continue // it was begun by a connection that has ended since
		}
		return under.token, under.err
	}
}

// beginLocked returns the grant under way, or begins one.
func (t *Tokens) beginLocked(g granter) (*grant, error) {
	if t.grant != nil {
		return t.grant, nil
	}
	begun := &grant{done: make(chan struct{})}
	door, challenge := t.door, t.challenge
	err := g.spawn(func() {
		tok, found, err := g.obtain(t, door, challenge)
		if err != nil && g.over() {
			err = errGrantOver
		}
		t.settle(begun, tok, found, err)
	})
	if err != nil {
		return nil, err
	}
	t.grant = begun
	return begun, nil
}

// settle ends a grant for all who wait for it.
func (t *Tokens) settle(begun *grant, tok *token, d *door, err error) {
	t.mu.Lock()
	t.grant = nil
	if err == nil {
		t.token, t.door, t.challenge = tok, d, nil
		t.shown = append(t.shown, tok.text)
		t.shown = slices.Clone(t.shown[max(0, len(t.shown)-shownTokens):])
		t.concealLocked()
	} else {
		t.door = nil // it may have moved
		t.pause = time.Now().Add(renewPause)
	}
	t.mu.Unlock()
	begun.token, begun.err = tok, err
	close(begun.done)
}

// refused drops a token that the server does not take. Where tokens are to be had
// is found out again, from what the server says now.
func (t *Tokens) refused(tok *token, ch *challenge) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == tok {
		t.token, t.door, t.challenge = nil, nil, ch
	}
}

// latest returns the token there is, good or not; nil if there is none.
func (t *Tokens) latest() *token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token
}

func (t *Tokens) concealLocked() {
	all := slices.DeleteFunc(append(t.credential.secrets(), t.shown...), func(s string) bool { return len(s) < shortSecret })
	r := rpc.NewRedactor("[secret]", all)
	t.hide.Store(&r)
}

// A redaction hides the secrets of a connection in what is shown of a server's words.
type redaction struct {
	fixed  rpc.Redactor // what does not change
	tokens *Tokens      // nil without a credential
}

// Text returns s without secrets.
func (r redaction) Text(s string) string {
	if r.tokens != nil {
		s = r.tokens.hide.Load().Text(s)
	}
	return r.fixed.Text(s)
}

// Error hides the secrets in an error that a server answered.
func (r redaction) Error(e *rpc.Error) {
	if r.tokens != nil {
		r.tokens.hide.Load().Error(e)
	}
	r.fixed.Error(e)
}
