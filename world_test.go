package holdfast_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

func newServer() *memory.Server { return memory.New(protocol.Features{Queue: true}) }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A world is a server in memory, for tests on the fake clock.
type world struct {
	*testing.T
	server *memory.Server
}

func inWorld(t *testing.T, run func(t *testing.T, w world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { run(t, world{t, newServer()}) })
}

// runInWorld runs a part of a test on the fake clock.
func runInWorld(t *testing.T, part string, run func(t *testing.T, w world)) {
	t.Helper()
	t.Run(part, func(t *testing.T) { inWorld(t, run) })
}

// client returns the client of one more process, and its connection.
func (w world) client() (*holdfast.Client, *connection) {
	w.Helper()
	return w.clientWith(nil)
}

func (w world) clientWith(config *holdfast.Config) (*holdfast.Client, *connection) {
	w.Helper()
	c := &connection{Protocol: w.server.Connect("p"), sent: map[string]int64{}, hooks: map[string]hook{}}
	client, err := holdfast.NewOn(c, config)
	must(w.T, err)
	w.Cleanup(func() {
		if err := client.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
	})
	return client, c
}

// must returns the lease of a method that must not fail.
func (w world) must(lease *holdfast.Lease, err error) *holdfast.Lease {
	w.Helper()
	must(w.T, err)
	return lease
}

func (w world) release(leases ...*holdfast.Lease) {
	w.Helper()
	for _, lease := range leases {
		if err := lease.Release(); err != nil {
			w.Errorf("Release: %v", err)
		}
	}
}

// nothingLeft fails if a name is held or has waiters.
func (w world) nothingLeft() {
	w.Helper()
	if names := w.server.Names("p"); len(names) > 0 {
		w.Errorf("left at the server: %q", names)
	}
}

// A connection is that of one process. It counts the requests of each operation, and hooks change
// what becomes of them.
type connection struct {
	protocol.Protocol
	mute atomic.Bool // messages get lost

	mu    sync.Mutex
	sent  map[string]int64
	hooks map[string]hook
	sink  protocol.Sink
}

// A hook carries out the nth request of an operation, or not, and says how that ended.
type hook func(ctx context.Context, n int64, send func() error) error

// on sets the hook of an operation. The hook of "" is that of all operations without one of their
// own. Nil: requests are carried out.
func (c *connection) on(op string, h hook) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hooks[op] = h
}

// count returns how many requests of some operations were sent.
func (c *connection) count(ops ...string) (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, op := range ops {
		n += c.sent[op]
	}
	return n
}

// total returns how many requests were sent.
func (c *connection) total() (n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sent := range c.sent {
		n += sent
	}
	return n
}

func exchange[T any](ctx context.Context, c *connection, op string, send func() (T, error)) (answer T, err error) {
	c.mu.Lock()
	c.sent[op]++
	n, h := c.sent[op], c.hooks[op]
	if h == nil {
		h = c.hooks[""]
	}
	c.mu.Unlock()
	if h == nil {
		return send()
	}
	err = h(ctx, n, func() (err error) {
		answer, err = send()
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return answer, nil
}

func sendOnly(ctx context.Context, c *connection, op string, send func() error) error {
	_, err := exchange(ctx, c, op, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

var errNoAnswer = errors.New("no answer")

// newFailure returns the failure of a request that may have been carried out.
func newFailure(reason protocol.Reason, err error) *protocol.Failure {
	return &protocol.Failure{Op: "test", Name: "n", Reason: reason, Unknown: reason == protocol.NoAnswer, Err: err}
}

// loseFirst loses the first answers or, unless it carries them out, the requests.
func loseFirst(first int64, carriedOut bool, err error) hook {
	return func(_ context.Context, n int64, send func() error) error {
		if n > first {
			return send()
		}
		if carriedOut {
			_ = send()
		}
		return err
	}
}

func loseAll(context.Context, int64, func() error) error {
	return newFailure(protocol.NoAnswer, errNoAnswer)
}

// loseNext loses the answers of the next requests, whatever was sent before.
func loseNext(answers int) hook {
	var lost atomic.Int64
	return func(_ context.Context, _ int64, send func() error) error {
		err := send()
		if lost.Add(1) <= int64(answers) {
			return newFailure(protocol.NoAnswer, errNoAnswer)
		}
		return err
	}
}

func (c *connection) Ready(ctx context.Context, name string) error {
	return sendOnly(ctx, c, "ready", func() error { return c.Protocol.Ready(ctx, name) })
}

func (c *connection) Probe(ctx context.Context) error {
	return sendOnly(ctx, c, "probe", func() error { return c.Protocol.Probe(ctx) })
}

func (c *connection) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	return exchange(ctx, c, "inspect",
		func() (protocol.Inspection, error) { return c.Protocol.Inspect(ctx, name, page) })
}

func (c *connection) Names(ctx context.Context, pattern string) iter.Seq2[protocol.FoundName, error] {
	return func(yield func(protocol.FoundName, error) bool) {
		if err := sendOnly(ctx, c, "names", func() error { return nil }); err != nil {
			yield(protocol.FoundName{}, err)
			return
		}
		c.Protocol.Names(ctx, pattern)(yield)
	}
}

func (c *connection) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	return exchange(ctx, c, "break", func() (bool, error) { return c.Protocol.Break(ctx, name, b) })
}

func (c *connection) Tell(ctx context.Context, name string, kind protocol.Kind, id protocol.ID) (
	protocol.TellCount, error) {
	return exchange(ctx, c, "tell", func() (protocol.TellCount, error) { return c.Protocol.Tell(ctx, name, kind, id) })
}

func (c *connection) Evict(ctx context.Context, name string, kind protocol.Kind, id protocol.ID, by string) (
	bool, error) {
	return exchange(ctx, c, "evict", func() (bool, error) { return c.Protocol.Evict(ctx, name, kind, id, by) })
}

func (c *connection) AskAll(ctx context.Context, asks []protocol.ResourceAsk) ([]protocol.Answer, error) {
	return exchange(ctx, c, "ask all", func() ([]protocol.Answer, error) {
		inner := append([]protocol.ResourceAsk(nil), asks...)
		for i := range inner {
			inner[i].Resource = inner[i].Resource.(resource).Resource
		}
		return c.Protocol.AskAll(ctx, inner)
	})
}

func (c *connection) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.RenewalAnswer)) {
	err := sendOnly(ctx, c, "renew", func() error {
		inner := append([]protocol.Renewal(nil), renewals...)
		for i := range inner {
			inner[i].Resource = inner[i].Resource.(resource).Resource
		}
		c.Protocol.Renew(ctx, inner, done)
		return nil
	})
	for i := range renewals {
		if err != nil {
			done(i, protocol.RenewalAnswer{Err: err})
		}
	}
}

func (c *connection) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	return exchange(ctx, c, "listen", func() (protocol.Listener, error) {
		c.mu.Lock()
		c.sink = sink
		c.mu.Unlock()
		return c.Protocol.Listen(ctx, mutedSink{sink, c})
	})
}

type mutedSink struct {
	protocol.Sink
	of *connection
}

func (s mutedSink) Nudge(id protocol.ID, after time.Duration) {
	if !s.of.mute.Load() {
		s.Sink.Nudge(id, after)
	}
}

func (c *connection) Bind(spec protocol.Spec) protocol.Resource {
	return resource{c.Protocol.Bind(spec), c}
}

type resource struct {
	protocol.Resource
	of *connection
}

func (r resource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	ctx, cancel := context.WithDeadline(ctx, ask.Deadline)
	defer cancel()
	return exchange(ctx, r.of, "ask", func() (protocol.Answer, error) { return r.Resource.Ask(ctx, ask) })
}

func (r resource) Free(ctx context.Context, free protocol.FreeRequest) (bool, error) {
	return exchange(ctx, r.of, "free", func() (bool, error) { return r.Resource.Free(ctx, free) })
}

func (r resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return exchange(ctx, r.of, "downgrade", func() (protocol.Answer, error) { return r.Resource.Downgrade(ctx, ask) })
}

func (r resource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin, timed bool) (
	protocol.AdoptedHold, error) {
	if !timed {
		return r.Resource.Adopt(ctx, ticket, origin, timed)
	}
	return exchange(ctx, r.of, "adopt",
		func() (protocol.AdoptedHold, error) { return r.Resource.Adopt(ctx, ticket, origin, timed) })
}

func (r resource) Resize(ctx context.Context, permits int64, deadline time.Time) error {
	return sendOnly(ctx, r.of, "resize", func() error { return r.Resource.Resize(ctx, permits, deadline) })
}

func (r resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return exchange(ctx, r.of, "look", func() (protocol.Standing, error) { return r.Resource.Look(ctx, watcher) })
}

func (c *connection) BindLatch(spec protocol.Spec) protocol.LatchResource {
	return latch{c.Protocol.BindLatch(spec), c}
}

type latch struct {
	protocol.LatchResource
	of *connection
}

func (l latch) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return exchange(ctx, l.of, "look", func() (protocol.Standing, error) { return l.LatchResource.Look(ctx, watcher) })
}

func (l latch) Set(ctx context.Context, id protocol.ID, count int64, ttl time.Duration, deadline time.Time) (
	s protocol.Standing, set bool, err error) {
	s, err = exchange(ctx, l.of, "set", func() (protocol.Standing, error) {
		var err error
		s, set, err = l.LatchResource.Set(ctx, id, count, ttl, deadline)
		return s, err
	})
	return s, set, err
}

func (l latch) CountDown(ctx context.Context, id protocol.ID, deadline, last time.Time) (protocol.Standing, error) {
	return exchange(ctx, l.of, "count down", func() (protocol.Standing, error) {
		return l.LatchResource.CountDown(ctx, id, deadline, last)
	})
}
