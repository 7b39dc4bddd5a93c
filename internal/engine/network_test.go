package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// The times of the design's table.
const (
	askEvery       = 5 * time.Second // while waiting, +-20 %
	claim          = 500 * time.Millisecond
	releaseTimeout = 2 * time.Second
)

func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

// A way is what becomes of what a process sends and is sent. The zero way delivers everything at
// once.
type way struct {
	there, back time.Duration // delays of requests and of answers
	noRequests  bool          // requests are lost
	noAnswers   bool          // answers are lost
	messages    time.Duration // delay of messages
	noMessages  bool          // messages are lost
	stopped     time.Duration // the process stands still while an answer comes, past every deadline
	failing     string        // the renewal of this name gets no answer, of the names of one request
	denied      bool          // the process may not listen with a ticket
}

var silent = way{noRequests: true, noAnswers: true, noMessages: true}

// A sent is a request that a process sent, or a recall that it was sent.
type sent struct {
	op   string
	at   time.Time
	size int       // of a renewal: how many holds
	end  time.Time // of an ask: after which it takes no effect
}

// A network is the way of one process to a server in memory.
type network struct {
	protocol.Protocol

	mu  sync.Mutex
	way way
	log []sent

	asks       asking       // if it is not nil, it sends asks instead
	mismatches atomic.Int64 // asks that were refused because of the number of permits
}

// An asking sends an ask, or does not.
type asking func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error)

// setAsks sends asks through f from now on; nil: as they are.
func (n *network) setAsks(f asking) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asks = f
}

// setWay changes what becomes of requests, answers and messages from now on.
func (n *network) setWay(w way) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.way = w
}

// requests returns those since a moment, of one kind or of all.
func (n *network) requests(at time.Time, op string) (found []sent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.log {
		if !s.at.Before(at) && (op == "" || s.op == op) {
			found = append(found, s)
		}
	}
	return found
}

// send sends a request. As a client of Redis, it gives up when the time of its context or of the
// request is over, and the request may arrive later.
func send[T any](ctx context.Context, n *network, s sent, do func() (T, error)) (none T, _ error) {
	type answer struct {
		value T
		err   error
	}
	n.mu.Lock()
	way := n.way
	s.at = time.Now()
	n.log = append(n.log, s)
	n.mu.Unlock()
	if way.stopped > 0 {
		value, err := do()
		<-time.After(way.stopped)
		return value, err
	}
	answers := make(chan answer, 1)
	go func() {
		<-after(way.there)
		if way.noRequests {
			return
		}
		value, err := do()
		<-after(way.back)
		if !way.noAnswers {
			answers <- answer{value, err}
		}
	}()
	end := s.end
	if at, ok := ctx.Deadline(); ok && (end.IsZero() || at.Before(end)) {
		end = at
	}
	var late <-chan time.Time
	if !end.IsZero() {
		late = after(time.Until(end))
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
	case <-late:
	}
	return none, &protocol.Failure{Op: s.op, Name: "n", Reason: protocol.NoAnswer, Unknown: true,
		Err: context.DeadlineExceeded}
}

func (n *network) Bind(spec protocol.Spec) protocol.Resource {
	return &resource{n.Protocol.Bind(spec), n, spec.Name}
}

func (n *network) AskAll(ctx context.Context, asks []protocol.ResourceAsk) ([]protocol.Answer, error) {
	inner := slices.Clone(asks)
	for i := range inner {
		inner[i].Resource = inner[i].Resource.(*resource).Resource
	}
	return send(ctx, n, sent{op: "ask", size: len(inner)}, func() ([]protocol.Answer, error) {
		return n.Protocol.AskAll(context.Background(), inner)
	})
}

// An inspector sends the calls of operators over a network. A host has Engine.Inspect and
// Engine.Break, and so network has no methods of these names.
type inspector struct {
	protocol.Protocol
	network *network
}

func (i *inspector) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	return send(ctx, i.network, sent{op: "inspect"}, func() (protocol.Inspection, error) {
		return i.Protocol.Inspect(context.Background(), name, page)
	})
}

func (i *inspector) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	return send(ctx, i.network, sent{op: "break"}, func() (bool, error) {
		return i.Protocol.Break(context.Background(), name, b)
	})
}

func (n *network) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.RenewalAnswer)) {
	inner := slices.Clone(renewals)
	for i := range inner {
		inner[i].Resource = inner[i].Resource.(*resource).Resource
	}
	renewed, err := send(ctx, n, sent{op: "renew", size: len(inner)}, func() ([]protocol.RenewalAnswer, error) {
		all := make([]protocol.RenewalAnswer, len(inner))
		n.Protocol.Renew(context.Background(), inner, func(i int, r protocol.RenewalAnswer) { all[i] = r })
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range all {
			if name := renewals[i].Resource.(*resource).name; name == n.way.failing {
				all[i].Held, all[i].Err = false, &protocol.Failure{Op: "renew", Name: name, Reason: protocol.NoAnswer,
					Unknown: true, Err: context.DeadlineExceeded}
			}
		}
		return all, nil
	})
	for i := range renewals {
		if err != nil {
			done(i, protocol.RenewalAnswer{Err: err})
		} else {
			done(i, renewed[i])
		}
	}
}

func (n *network) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	n.mu.Lock()
	n.log = append(n.log, sent{op: "listen", at: time.Now()})
	n.mu.Unlock()
	return n.Protocol.Listen(ctx, &mailbox{sink, n})
}

func (n *network) ListenTicket(ctx context.Context, id protocol.ID, sink protocol.Sink) (protocol.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.way.denied {
		n.log = append(n.log, sent{op: "listen", at: time.Now()})
		return nil, &protocol.Failure{Op: "subscribe", Reason: protocol.Denied, Err: errors.New("no permission")}
	}
	return n.Protocol.ListenTicket(ctx, id, &mailbox{sink, n})
}

type resource struct {
	protocol.Resource
	network *network
	name    string
}

func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (answer protocol.Answer, err error) {
	r.network.mu.Lock()
	asks := r.network.asks
	r.network.mu.Unlock()
	if asks != nil {
		answer, err = asks(ctx, r.Resource, ask)
	} else {
		answer, err = send(ctx, r.network, sent{op: "ask", end: ask.Deadline}, func() (protocol.Answer, error) {
			return r.Resource.Ask(context.Background(), ask)
		})
	}
	var mismatch *protocol.Mismatch
	if errors.As(err, &mismatch) {
		r.network.mismatches.Add(1)
	}
	return answer, err
}

func (r *resource) Free(ctx context.Context, free protocol.FreeRequest) (bool, error) {
	return send(ctx, r.network, sent{op: "free"}, func() (bool, error) {
		return r.Resource.Free(context.Background(), free)
	})
}

func (r *resource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return send(ctx, r.network, sent{op: "downgrade", end: ask.Deadline}, func() (protocol.Answer, error) {
		return r.Resource.Downgrade(context.Background(), ask)
	})
}

// A mailbox is where the messages to a process come.
type mailbox struct {
	protocol.Sink
	network *network
}

func (m *mailbox) Granted(g protocol.Grant) { m.deliver(func() { m.Sink.Granted(g) }) }

func (m *mailbox) Nudge(id protocol.ID, after time.Duration) {
	m.deliver(func() { m.Sink.Nudge(id, after) })
}

func (m *mailbox) Recall(id protocol.ID) {
	m.network.mu.Lock()
	m.network.log = append(m.network.log, sent{op: "recall", at: time.Now()})
	m.network.mu.Unlock()
	m.deliver(func() { m.Sink.Recall(id) })
}

func (m *mailbox) Broken(id protocol.ID) { m.deliver(func() { m.Sink.Broken(id) }) }

func (m *mailbox) deliver(message func()) {
	m.network.mu.Lock()
	way := m.network.way
	m.network.mu.Unlock()
	switch {
	case way.noMessages:
	case way.messages > 0:
		time.AfterFunc(way.messages, message)
	default:
		message()
	}
}

// A host is a process with a network of its own.
type host struct {
	*engine.Engine
	*network
	t *testing.T
}

var errClosed = errors.New("closed")

// A loss is the cause of a lease that was lost.
type loss struct{ engine.Lost }

func (l *loss) Error() string { return fmt.Sprintf("lost: %+v", l.Lost) }

// newEngine makes an engine whose log nobody reads. The caller closes it.
func newEngine(p protocol.Protocol, change ...func(*engine.Config)) *engine.Engine {
	config := engine.Config{ReleaseTimeout: releaseTimeout, RetainMax: 2, Logger: slog.New(slog.DiscardHandler),
		Closed: errClosed, Cause: func(l engine.Lost) error { return &loss{l} }}
	for _, f := range change {
		f(&config)
	}
	return engine.New(p, config)
}

// newHost makes a process. The test closes it when it ends, over a network that works.
func newHost(t *testing.T, server *memory.Server, change ...func(*engine.Config)) *host {
	t.Helper()
	h := &host{network: &network{}, t: t}
	h.network.Protocol = &inspector{server.Connect("test"), h.network}
	h.Engine = newEngine(h.network, change...)
	t.Cleanup(func() {
		h.setWay(way{})
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// newHosts makes three processes.
func newHosts(t *testing.T, server *memory.Server) (a, b, c *host) {
	t.Helper()
	return newHost(t, server), newHost(t, server), newHost(t, server)
}

// mutex is the lock that all hosts contend for.
func (h *host) mutex(options engine.Options) *engine.Lock {
	if options.TTL == 0 {
		options.TTL = 15 * time.Second
	}
	return h.NewLock(protocol.Spec{Name: "n", Kind: protocol.Mutex}, options)
}

// rw is the lock that readers and writers contend for.
func (h *host) rw(shared bool) *engine.Lock {
	return h.NewLock(protocol.Spec{Name: "rw", Kind: protocol.ReadWrite, Shared: shared},
		engine.Options{TTL: 15 * time.Second})
}

// must is the lease of a call that gets one.
func (h *host) must(lease *engine.Lease, err error) *engine.Lease {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
	return lease
}

// try takes a lock, which is free.
func (h *host) try(l *engine.Lock) *engine.Lease {
	h.t.Helper()
	return h.must(l.Try(h.t.Context()))
}

// lock takes the mutex, which is free.
func (h *host) lock(options engine.Options) *engine.Lease {
	h.t.Helper()
	return h.try(h.mutex(options))
}

func (h *host) release(lease interface{ Release() error }) {
	h.t.Helper()
	if err := lease.Release(); err != nil {
		h.t.Errorf("Release: %v", err)
	}
}

// A waiter is a goroutine in a call that waits for a lease.
type waiter struct {
	t     *testing.T
	done  chan struct{}
	lease *engine.Lease
	err   error
	at    time.Time // when it returned
}

// start starts a goroutine in a call, and returns when it waits or is done.
func (h *host) start(call func() (*engine.Lease, error)) *waiter {
	w := &waiter{t: h.t, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = call()
		w.at = time.Now()
	}()
	synctest.Wait()
	return w
}

func (h *host) startLock(ctx context.Context, options engine.Options) *waiter {
	return h.start(func() (*engine.Lease, error) { return h.mutex(options).Acquire(ctx) })
}

// startAcquire starts a goroutine that waits for a lock. The next one joins later.
func (h *host) startAcquire(ctx context.Context, lock *engine.Lock) *waiter {
	w := h.start(func() (*engine.Lease, error) { return lock.Acquire(ctx) })
	sleep(time.Millisecond)
	return w
}

// awaitEnd waits until the call of the goroutine has returned.
func (w *waiter) awaitEnd() {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(time.Hour):
		w.t.Fatal("it still waits")
	}
}

func (w *waiter) await() *engine.Lease {
	w.t.Helper()
	if w.awaitEnd(); w.err != nil {
		w.t.Fatal(w.err)
	}
	return w.lease
}

// isWaiting reports whether the goroutine still waits.
func (w *waiter) isWaiting() bool {
	synctest.Wait()
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

func awaitLoss(t *testing.T, lease *engine.Lease, why engine.Why) time.Time {
	t.Helper()
	<-lease.Context().Done()
	var cause *loss
	if err := context.Cause(lease.Context()); !errors.As(err, &cause) || cause.Why != why {
		t.Errorf("lost by %v, want %v", err, why)
	}
	if err := lease.Err(); !errors.As(err, &cause) {
		t.Errorf("Err is %v", err)
	}
	if until := lease.Until(); until.After(time.Now()) {
		t.Errorf("lost, and trusted for another %v", time.Until(until))
	}
	return time.Now()
}

// after is time.After without a timer whose time is over: see protocol.NewTimer.
func after(d time.Duration) <-chan time.Time {
	if d > 0 {
		return time.After(d)
	}
	over := make(chan time.Time)
	close(over)
	return over
}

// sleep lets time go by on the fake clock.
func sleep(d time.Duration) {
	<-after(d)
	synctest.Wait()
}

// nothingLeft fails if a name is held or waited for, once requests in the background are over.
func nothingLeft(t *testing.T, server *memory.Server) {
	t.Helper()
	sleep(time.Second)
	if names := server.Names("test"); len(names) > 0 {
		t.Errorf("left at the server: %q", names)
	}
}

// bubble runs a test on a server in memory and a fake clock.
func bubble(t *testing.T, f func(t *testing.T, server *memory.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { sleep(time.Minute) }) // requests in the background give up
		f(t, memory.New(protocol.Features{Queue: true}))
	})
}

func runBubble(t *testing.T, part string, f func(t *testing.T, server *memory.Server)) {
	t.Helper()
	t.Run(part, func(t *testing.T) { bubble(t, f) })
}

// bubbles runs a test for each row of a table, in a bubble of its own.
func bubbles[T any](t *testing.T, rows map[string]T, test func(t *testing.T, server *memory.Server, row T)) {
	t.Helper()
	for name, row := range rows {
		runBubble(t, name, func(t *testing.T, server *memory.Server) { test(t, server, row) })
	}
}
