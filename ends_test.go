package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A silence is the way to a server that answers, until it is silent. A request fails then as with a
// client library that watches its own timer: a little before the deadline of the request, at the
// same moment, or after it.
type silence struct {
	protocol.Protocol
	silent atomic.Bool
	late   time.Duration // how much later than the deadline; negative: earlier
	reason protocol.Reason
	err    error
}

func request[T any](ctx context.Context, s *silence, op string, send func() (T, error)) (none T, _ error) {
	if !s.silent.Load() {
		return send()
	}
	end := time.Now().Add(time.Second) // of a request without a deadline
	if at, ok := ctx.Deadline(); ok && at.Before(end) {
		end = at
	}
	select {
	case <-time.After(time.Until(end) + s.late):
	case <-ctx.Done():
		<-time.After(max(s.late, 0))
	}
	return none, &protocol.Failure{Op: op, Name: "n", Reason: s.reason, Unknown: true, Err: s.err}
}

func done(ctx context.Context, s *silence, op string, send func() error) error {
	_, err := request(ctx, s, op, func() (struct{}, error) { return struct{}{}, send() })
	return err
}

func (s *silence) Ready(ctx context.Context, name string) error {
	return done(ctx, s, "ready", func() error { return s.Protocol.Ready(ctx, name) })
}

func (s *silence) Probe(ctx context.Context) error {
	return done(ctx, s, "ready", func() error { return s.Protocol.Probe(ctx) })
}

func (s *silence) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	return request(ctx, s, "inspect", func() (protocol.Inspection, error) { return s.Protocol.Inspect(ctx, name, page) })
}

func (s *silence) Names(ctx context.Context, pattern string) iter.Seq2[protocol.Found, error] {
	return func(yield func(protocol.Found, error) bool) {
		if err := done(ctx, s, "list", func() error { return nil }); err != nil {
			yield(protocol.Found{}, err)
			return
		}
		s.Protocol.Names(ctx, pattern)(yield)
	}
}

func (s *silence) Break(ctx context.Context, name string, b protocol.Break) (bool, error) {
	return request(ctx, s, "break", func() (bool, error) { return s.Protocol.Break(ctx, name, b) })
}

func (s *silence) Evict(ctx context.Context, name string, kind protocol.Kind, id protocol.ID, by string) (bool, error) {
	return request(ctx, s, "evict", func() (bool, error) { return s.Protocol.Evict(ctx, name, kind, id, by) })
}

func (s *silence) AskAll(ctx context.Context, asks []protocol.Asking) ([]protocol.Answer, error) {
	return request(ctx, s, "ask", func() ([]protocol.Answer, error) {
		for i := range asks {
			asks[i].Resource = asks[i].Resource.(quietResource).Resource
		}
		return s.Protocol.AskAll(ctx, asks)
	})
}

func (s *silence) Renew(ctx context.Context, renewals []protocol.Renewal, answer func(int, protocol.Renewed)) {
	err := done(ctx, s, "renew", func() error {
		for i := range renewals {
			renewals[i].Resource = renewals[i].Resource.(quietResource).Resource
		}
		s.Protocol.Renew(ctx, renewals, answer)
		return nil
	})
	for i := range renewals {
		if err != nil {
			answer(i, protocol.Renewed{Err: err})
		}
	}
}

func (s *silence) Bind(spec protocol.Spec) protocol.Resource {
	return quietResource{s.Protocol.Bind(spec), s}
}

func (s *silence) BindLatch(spec protocol.Spec) protocol.LatchResource {
	return quietLatch{s.Protocol.BindLatch(spec), s}
}

type quietResource struct {
	protocol.Resource
	s *silence
}

func (r quietResource) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	ctx, cancel := context.WithDeadline(ctx, ask.Deadline)
	defer cancel()
	return request(ctx, r.s, "lock", func() (protocol.Answer, error) { return r.Resource.Ask(ctx, ask) })
}

func (r quietResource) Free(ctx context.Context, free protocol.Free) (bool, error) {
	return request(ctx, r.s, "release", func() (bool, error) { return r.Resource.Free(ctx, free) })
}

func (r quietResource) Downgrade(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return request(ctx, r.s, "downgrade", func() (protocol.Answer, error) { return r.Resource.Downgrade(ctx, ask) })
}

func (r quietResource) Adopt(ctx context.Context, ticket protocol.Ticket, origin protocol.Origin, timed bool) (protocol.Adopted, error) {
	if !timed {
		return r.Resource.Adopt(ctx, ticket, origin, timed)
	}
	return request(ctx, r.s, "attach", func() (protocol.Adopted, error) { return r.Resource.Adopt(ctx, ticket, origin, timed) })
}

func (r quietResource) Resize(ctx context.Context, permits int64, deadline time.Time) error {
	return done(ctx, r.s, "resize", func() error { return r.Resource.Resize(ctx, permits, deadline) })
}

func (r quietResource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return request(ctx, r.s, "look", func() (protocol.Standing, error) { return r.Resource.Look(ctx, watcher) })
}

type quietLatch struct {
	protocol.LatchResource
	s *silence
}

func (l quietLatch) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return request(ctx, l.s, "look", func() (protocol.Standing, error) { return l.LatchResource.Look(ctx, watcher) })
}

func (l quietLatch) Set(ctx context.Context, id protocol.ID, count int64, ttl time.Duration, deadline time.Time) (s protocol.Standing, set bool, err error) {
	s, err = request(ctx, l.s, "set", func() (protocol.Standing, error) {
		var err error
		s, set, err = l.LatchResource.Set(ctx, id, count, ttl, deadline)
		return s, err
	})
	return s, set, err
}

func (l quietLatch) CountDown(ctx context.Context, id protocol.ID, deadline, last time.Time) (protocol.Standing, error) {
	return request(ctx, l.s, "count", func() (protocol.Standing, error) { return l.LatchResource.CountDown(ctx, id, deadline, last) })
}

// A bench is what the calls of a table need while the server still answers.
type bench struct {
	*holdfast.Client
	fixed, writer *holdfast.Lease
	ticket, place holdfast.Ticket
}

func newBench(t *testing.T, s *silence) *bench {
	t.Helper()
	client, err := holdfast.NewOn(s, nil)
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	b := &bench{Client: client}
	b.fixed, err = client.Mutex("fixed", holdfast.WithoutRenewal()).Lock(t.Context())
	must(t, err)
	b.writer, err = client.RWMutex("writer").Lock(t.Context())
	must(t, err)
	left, err := client.Mutex("left").Lock(t.Context())
	must(t, err)
	b.ticket, err = left.Detach()
	must(t, err)
	b.place, err = client.Mutex("fixed").Ticket(t.Context(), time.Minute)
	must(t, err)
	return b
}

// A ctxCall is a call of a method that takes a ctx and may ask a server.
type ctxCall struct {
	waits bool // it does not end by itself while the server is silent
	do    func(context.Context, *bench) error
}

func ofLease(_ *holdfast.Lease, err error) error { return err }

func ofTicket(_ holdfast.Ticket, err error) error { return err }

func last[T any](all iter.Seq2[T, error]) (last error) {
	for _, err := range all {
		last = err
	}
	return last
}

var never = func(context.Context) error { return nil }

// ctxCalls are all methods of the library that take a ctx, and may ask a server for it.
var ctxCalls = map[string]ctxCall{
	"Client.Attach": {do: func(ctx context.Context, b *bench) error { return ofLease(b.Attach(ctx, b.ticket)) }},
	"Client.Attach, a place": {waits: true, do: func(ctx context.Context, b *bench) error {
		return ofLease(b.Attach(ctx, b.place))
	}},
	"Client.Break":         {do: func(ctx context.Context, b *bench) error { return b.Break(ctx, "n", 1) }},
	"Client.CheckTicket":   {do: func(ctx context.Context, b *bench) error { return b.CheckTicket(ctx, b.ticket) }},
	"Client.Deadlocks":     {do: func(ctx context.Context, b *bench) error { _, err := b.Deadlocks(ctx); return err }},
	"Client.DiscardTicket": {do: func(ctx context.Context, b *bench) error { return b.DiscardTicket(ctx, b.ticket) }},
	"Client.Evict":         {do: func(ctx context.Context, b *bench) error { return b.Evict(ctx, "n", "w") }},
	"Client.ForceBreak":    {do: func(ctx context.Context, b *bench) error { return b.ForceBreak(ctx, "n", 1) }},
	"Client.Inspect":       {do: func(ctx context.Context, b *bench) error { _, err := b.Inspect(ctx, "n"); return err }},
	"Client.List":          {do: func(ctx context.Context, b *bench) error { return last(b.List(ctx, holdfast.ListOptions{})) }},
	"Client.Queue":         {do: func(ctx context.Context, b *bench) error { return last(b.Queue(ctx, "n")) }},
	"Client.Ready":         {do: func(ctx context.Context, b *bench) error { return b.Ready(ctx) }},
	"Election.Campaign":    {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.Election("n").Campaign(ctx)) }},
	"Election.Leader":      {do: func(ctx context.Context, b *bench) error { _, err := b.Election("n").Leader(ctx); return err }},
	"Election.Observe":     {waits: true, do: func(ctx context.Context, b *bench) error { return last(b.Election("n").Observe(ctx)) }},
	"Election.Run":         {waits: true, do: func(ctx context.Context, b *bench) error { return b.Election("n").Run(ctx, never) }},
	"Election.TryCampaign": {do: func(ctx context.Context, b *bench) error {
		return ofLease(b.Election("n").TryCampaign(ctx))
	}},
	"Group.Do":      {waits: true, do: func(ctx context.Context, b *bench) error { return b.All([]string{"m", "n"}).Do(ctx, never) }},
	"Group.Lock":    {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.All([]string{"m", "n"}).Lock(ctx)) }},
	"Group.TryLock": {do: func(ctx context.Context, b *bench) error { return ofLease(b.All([]string{"m", "n"}).TryLock(ctx)) }},
	"Latch.Count":   {do: func(ctx context.Context, b *bench) error { _, err := b.Latch("n").Count(ctx); return err }},
	"Latch.CountDown": {do: func(ctx context.Context, b *bench) error {
		return b.Latch("n").CountDown(ctx)
	}},
	"Latch.Set":       {do: func(ctx context.Context, b *bench) error { return b.Latch("n").Set(ctx, 1) }},
	"Latch.Wait":      {waits: true, do: func(ctx context.Context, b *bench) error { return b.Latch("n").Wait(ctx) }},
	"Lease.Check":     {do: func(ctx context.Context, b *bench) error { return b.fixed.Check(ctx) }},
	"Lease.Downgrade": {waits: true, do: func(ctx context.Context, b *bench) error { return b.writer.Downgrade(ctx) }},
	"Lease.Extend":    {do: func(ctx context.Context, b *bench) error { return b.fixed.Extend(ctx) }},
	"Mutex.Do":        {waits: true, do: func(ctx context.Context, b *bench) error { return b.Mutex("n").Do(ctx, never) }},
	"Mutex.Lock":      {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.Mutex("n").Lock(ctx)) }},
	"Mutex.Ticket": {do: func(ctx context.Context, b *bench) error {
		return ofTicket(b.Mutex("n").Ticket(ctx, time.Minute))
	}},
	"Mutex.TryLock":   {do: func(ctx context.Context, b *bench) error { return ofLease(b.Mutex("n").TryLock(ctx)) }},
	"RWMutex.Do":      {waits: true, do: func(ctx context.Context, b *bench) error { return b.RWMutex("n").Do(ctx, never) }},
	"RWMutex.Lock":    {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.RWMutex("n").Lock(ctx)) }},
	"RWMutex.RDo":     {waits: true, do: func(ctx context.Context, b *bench) error { return b.RWMutex("n").RDo(ctx, never) }},
	"RWMutex.RLock":   {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.RWMutex("n").RLock(ctx)) }},
	"RWMutex.RTicket": {do: func(ctx context.Context, b *bench) error { return ofTicket(b.RWMutex("n").RTicket(ctx, time.Minute)) }},
	"RWMutex.Ticket":  {do: func(ctx context.Context, b *bench) error { return ofTicket(b.RWMutex("n").Ticket(ctx, time.Minute)) }},
	"RWMutex.TryLock": {do: func(ctx context.Context, b *bench) error { return ofLease(b.RWMutex("n").TryLock(ctx)) }},
	"RWMutex.TryRLock": {do: func(ctx context.Context, b *bench) error {
		return ofLease(b.RWMutex("n").TryRLock(ctx))
	}},
	"Semaphore.Acquire": {waits: true, do: func(ctx context.Context, b *bench) error { return ofLease(b.Semaphore("n", 2).Acquire(ctx, 1)) }},
	"Semaphore.Do":      {waits: true, do: func(ctx context.Context, b *bench) error { return b.Semaphore("n", 2).Do(ctx, 1, never) }},
	"Semaphore.Resize":  {do: func(ctx context.Context, b *bench) error { return b.Semaphore("n", 2).Resize(ctx, 3) }},
	"Semaphore.Ticket": {do: func(ctx context.Context, b *bench) error {
		return ofTicket(b.Semaphore("n", 2).Ticket(ctx, 1, time.Minute))
	}},
	"Semaphore.TryAcquire": {do: func(ctx context.Context, b *bench) error {
		return ofLease(b.Semaphore("n", 2).TryAcquire(ctx, 1))
	}},
}

// TestCtxCallsAreAll fails when a method takes a ctx and is not in the table.
func TestCtxCallsAreAll(t *testing.T) {
	others := map[string]string{
		"Client.Quorum": "a master that does not answer is no error of it",
		"Lease.Bind":    "it asks no server", "Mutex.Locker": "it asks no server",
		"Lease.Release": "it does not use its ctx",
	}
	isContext := reflect.TypeFor[context.Context]()
	for _, handle := range []any{
		&holdfast.Client{}, &holdfast.Mutex{}, &holdfast.RWMutex{}, &holdfast.Semaphore{}, &holdfast.Latch{}, &holdfast.Election{},
		&holdfast.Group{}, &holdfast.Lease{},
	} {
		of := reflect.TypeOf(handle)
		for i := range of.NumMethod() {
			method := of.Method(i)
			name := of.Elem().Name() + "." + method.Name
			takes := method.Type.NumIn() > 1 && method.Type.In(1) == isContext
			_, listed := ctxCalls[name]
			if takes && others[name] == "" != listed {
				t.Errorf("%s: listed %v", name, listed)
			}
		}
	}
}

// The error of a call whose ctx is over matches how ctx ended, and its cause, whichever timer is
// first: that of ctx, or that of a request with the same deadline. A call that ends by itself while
// its ctx goes on matches no error of a context. Neither ever says that another holds.
func TestEndOfContextAtSilentServer(t *testing.T) {
	const most = 100 * time.Millisecond
	for what, end := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"deadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, most, errShutdown)
		},
		"cancellation": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			timer := time.AfterFunc(most, func() { cancel(errShutdown) })
			return ctx, func() { timer.Stop() }
		},
		"none": func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
	} {
		for order, late := range map[string]time.Duration{
			"the request is first": -time.Millisecond, "both at once": 0, "ctx is first": 30 * time.Millisecond,
		} {
			for _, reason := range []protocol.Reason{protocol.NoAnswer, protocol.Unreachable} {
				for name, call := range ctxCalls {
					if call.waits && what == "none" {
						continue
					}
					t.Run(fmt.Sprintf("%s, %s, %s, %v", name, what, order, reason), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := &silence{Protocol: memory.New(protocol.Features{Queue: true, Tokens: true}).Connect("p"), late: late, reason: reason, err: os.ErrDeadlineExceeded}
							if what == "none" {
								s.err = context.DeadlineExceeded // of a context that is not the caller's
							}

							b := newBench(t, s)
							s.silent.Store(true)
							ctx, cancel := end(t.Context())
							defer cancel()
							err := call.do(ctx, b)
							s.silent.Store(false)
							if what != "none" {
								<-ctx.Done()
							}
							over := ctx.Err() != nil
							matches := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
							if err == nil || matches != over || over && (!errors.Is(err, ctx.Err()) || !errors.Is(err, errShutdown)) || errors.Is(err, holdfast.ErrHeld) {
								t.Error(err)
							}
							if !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrUncertain) {
								t.Errorf("not unavailable: %v", err)
							}
						})
					})
				}
			}
		}
	}
}
