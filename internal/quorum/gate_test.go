package quorum

import (
	"context"
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// A gate is before a master: what a test wants of each request happens first.
type gate struct {
	wire.Store
	scripts map[string]string // operation, by its script or the digest of it

	mu      sync.Mutex
	request func(op string) error // an error: the request does not get through
	answer  func(op string) error // an error: the answer does not
	ahead   time.Duration         // by which its clock was set forward
	since   int64                 // when it was, by our clock, in microseconds
}

var errShut = errors.New("no connection")

// gates puts one before each master.
func gates(servers []wire.Store) (all []*gate, behind []wire.Store) {
	scripts := map[string]string{}
	for _, op := range names {
		text := source("q", op)
		sum := sha1.Sum([]byte(text)) //nolint:gosec // the server names scripts by it
		scripts[hex.EncodeToString(sum[:])], scripts[text] = op, op
	}
	for _, s := range servers {
		g := &gate{Store: s, scripts: scripts}
		all, behind = append(all, g), append(behind, g)
	}
	return all, behind
}

// atRequest says what happens to requests from now on; nil: nothing.
func (g *gate) atRequest(do func(op string) error) {
	g.mu.Lock()
	g.request = do
	g.mu.Unlock()
}

// atAnswer says what happens to answers from now on; nil: nothing.
func (g *gate) atAnswer(do func(op string) error) {
	g.mu.Lock()
	g.answer = do
	g.mu.Unlock()
}

// forward sets the master's clock forward, as far as answers tell. The time that its scripts see
// stays: the step ends no holds.
func (g *gate) forward(d time.Duration) {
	g.mu.Lock()
	g.ahead, g.since = d, time.Now().UnixMicro()
	g.mu.Unlock()
}

// shown returns an answer with what the clock shows.
func (g *gate) shown(text string) string {
	f, rest, ok := readHead(text)
	if !ok {
		return text
	}
	if f.born >= g.since {
		f.born += g.ahead.Microseconds()
	}
	return text[:1] + wire.Digits16(f.now+g.ahead.Microseconds()) + wire.Digits16(f.born) +
		text[33:len(text)-len(rest)] + rest
}

// leadTo lets the way to a master lead to another one.
func (g *gate) leadTo(s wire.Store) {
	g.mu.Lock()
	g.Store = s
	g.mu.Unlock()
}

// shut lets nothing through.
func (g *gate) shut() { g.atRequest(func(string) error { return errShut }) }

// Do implements wire.Store.
func (g *gate) Do(ctx context.Context, requests []wire.Request) []wire.Reply {
	g.mu.Lock()
	atRequest, atAnswer, store := g.request, g.answer, g.Store
	g.mu.Unlock()
	replies := make([]wire.Reply, len(requests))
	for i, request := range requests {
		digest := ""
		if len(request.Args) > 1 {
			digest, _ = request.Args[1].(string)
		}
		if atRequest != nil {
			if err := atRequest(g.scripts[digest]); err != nil {
				replies[i] = wire.Reply{Err: err, Unsent: true}
				continue
			}
		}
		replies[i] = store.Do(ctx, []wire.Request{request})[0]
		if text, ok := replies[i].Value.(string); ok { // also what comes late shows what the clock showed
			g.mu.Lock()
			replies[i].Value = g.shown(text)
			g.mu.Unlock()
		}
		if atAnswer != nil && replies[i].Refused == "" {
			if err := atAnswer(g.scripts[digest]); err != nil {
				replies[i] = wire.Reply{Err: err}
			}
		}
	}
	return replies
}

// A once is called by a gate: it says that a request came, the first time, and holds it up until it
// may go.
type once struct {
	came, goes chan struct{}
	first      sync.Once
}

func newOnce() *once { return &once{came: make(chan struct{}), goes: make(chan struct{})} }

func (o *once) wait() {
	o.first.Do(func() { close(o.came) })
	<-o.goes
}

// on returns what a gate is to do with requests, or answers, of one operation.
func on(op string, do func() error) func(string) error {
	return func(came string) error {
		if came == op {
			return do()
		}
		return nil
	}
}

// holdUp lets a gate hold up the requests of one operation.
func (o *once) holdUp(op string) func(string) error {
	return on(op, func() error { o.wait(); return nil })
}

// A fake is a master without a server, which answers each request alike.
type fake func(ctx context.Context, r wire.Request) wire.Reply

// Do implements wire.Store.
func (f fake) Do(ctx context.Context, requests []wire.Request) []wire.Reply {
	<-time.After(time.Microsecond) // a fake clock stands still while a client asks again
	replies := make([]wire.Reply, len(requests))
	for i, r := range requests {
		replies[i] = f(ctx, r)
	}
	return replies
}

// Subscribe implements wire.Store.
func (fake) Subscribe(context.Context, wire.Sink) (wire.Subscription, error) { return nil, errShut }

// Describe implements wire.Store.
func (fake) Describe(context.Context) (wire.Topology, error) { return wire.Topology{}, nil }

// staySilent returns the reply of a master that is stopped.
func staySilent(ctx context.Context) wire.Reply {
	<-ctx.Done()
	return wire.Reply{Err: ctx.Err()}
}
