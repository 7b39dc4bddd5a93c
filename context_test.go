package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A rig is a client with what the calls of a table need.
type rig struct {
	*holdfast.Client
	options       []holdfast.Option // of the locks that calls wait for
	fixed, writer *holdfast.Lease
	ticket, place holdfast.Ticket
}

func newRig(w world, client *holdfast.Client) *rig {
	w.Helper()
	r := &rig{Client: client}
	r.fixed = w.must(client.Mutex("fixed", holdfast.WithoutRenewal()).Lock(w.Context()))
	r.writer = w.must(client.RWMutex("writer").Lock(w.Context()))
	var err error
	r.ticket, err = w.must(client.Mutex("left").Lock(w.Context())).Detach()
	must(w.T, err)
	r.place, err = client.Mutex("fixed").Ticket(w.Context(), time.Minute)
	must(w.T, err)
	return r
}

func (r *rig) mutex(options ...holdfast.Option) *holdfast.Mutex {
	return r.Mutex("m", append(options, r.options...)...)
}

func (r *rig) rwmutex() *holdfast.RWMutex     { return r.RWMutex("r", r.options...) }
func (r *rig) semaphore() *holdfast.Semaphore { return r.Semaphore("s", 2, r.options...) }
func (r *rig) latch() *holdfast.Latch         { return r.Latch("l", r.options...) }
func (r *rig) election() *holdfast.Election   { return r.Election("e", r.options...) }

func (r *rig) group(options ...holdfast.Option) *holdfast.Group {
	return r.All([]string{"a", "m", "z"}, append(options, r.options...)...)
}

// holdAll holds all names that calls wait for.
func holdAll(w world, other *holdfast.Client) {
	w.Helper()
	w.must(other.Mutex("m").Lock(w.Context()))
	w.must(other.RWMutex("r").Lock(w.Context()))
	w.must(other.Election("e").Campaign(w.Context()))
	w.must(other.Semaphore("s", 2).Acquire(w.Context(), 2))
	must(w.T, other.Latch("l").Set(w.Context(), 1))
}

// A waitKind says for what a call waits.
type waitKind int

const (
	waitsForNothing waitKind = iota
	waitsForAnswer           // it does not end by itself while the server is silent
	waitsForTurn             // nor while another holds
	waitsBounded             // and WithWait bounds that
	waitsByConfig            // and Config.Wait does
)

// A ctxCall is a call of a method that takes a ctx and may ask a server.
type ctxCall struct {
	waits waitKind
	do    func(context.Context, *rig) error
}

func ofLease(_ *holdfast.Lease, err error) error  { return err }
func ofTicket(_ holdfast.Ticket, err error) error { return err }
func never(context.Context) error                 { return errors.New("it ran") }
func lastOf[T any](all iter.Seq2[T, error]) (last error) {
	for _, err := range all {
		last = err
	}
	return last
}

// ctxCalls are all methods of the library that take a ctx, and may ask a server for it.
var ctxCalls = map[string]ctxCall{
	"Client.Attach": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return ofLease(r.Attach(ctx, r.ticket)) }},
	"Client.Attach, a place": {
		waitsForTurn, func(ctx context.Context, r *rig) error { return ofLease(r.Attach(ctx, r.place)) }},
	"Client.Break": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return r.Break(ctx, "n", 1) }},
	"Client.CheckTicket": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return r.CheckTicket(ctx, r.ticket) }},
	"Client.Deadlocks": {
		waitsForNothing, func(ctx context.Context, r *rig) error { _, err := r.Deadlocks(ctx); return err }},
	"Client.DiscardTicket": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return r.DiscardTicket(ctx, r.ticket) }},
	"Client.Evict": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return r.Evict(ctx, "n", "w") }},
	"Client.ForceBreak": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return r.ForceBreak(ctx, "n", 1) }},
	"Client.Inspect": {
		waitsForNothing, func(ctx context.Context, r *rig) error { _, err := r.Inspect(ctx, "n"); return err }},
	"Client.List": {
		waitsForNothing, func(ctx context.Context, r *rig) error {
			return lastOf(r.List(ctx, holdfast.ListOptions{}))
		}},
	"Client.Queue": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return lastOf(r.Queue(ctx, "n")) }},
	"Client.Ready": {waitsForNothing, func(ctx context.Context, r *rig) error { return r.Ready(ctx) }},
	"Election.Campaign": {
		waitsBounded, func(ctx context.Context, r *rig) error { return ofLease(r.election().Campaign(ctx)) }},
	"Election.Leader": {
		waitsForNothing, func(ctx context.Context, r *rig) error { _, err := r.election().Leader(ctx); return err }},
	"Election.Observe": {
		waitsForTurn, func(ctx context.Context, r *rig) error { return lastOf(r.election().Observe(ctx)) }},
	"Election.Run": {
		waitsBounded, func(ctx context.Context, r *rig) error { return r.election().Run(ctx, never) }},
	"Election.TryCampaign": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return ofLease(r.election().TryCampaign(ctx)) }},
	"Group.Do": {
		waitsByConfig, func(ctx context.Context, r *rig) error { return r.group().Do(ctx, never) }},
	"Group.Lock": {
		waitsByConfig, func(ctx context.Context, r *rig) error { return ofLease(r.group().Lock(ctx)) }},
	"Group.Lock, polling": {waitsByConfig, func(ctx context.Context, r *rig) error {
		return ofLease(r.group(holdfast.WithPolling(7*time.Millisecond, 0)).Lock(ctx))
	}},
	"Group.TryLock": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofLease(r.group().TryLock(ctx)) }},
	"Latch.Count": {waitsForNothing,
		func(ctx context.Context, r *rig) error { _, err := r.latch().Count(ctx); return err }},
	"Latch.CountDown": {waitsForNothing, func(ctx context.Context, r *rig) error { return r.latch().CountDown(ctx) }},
	"Latch.Set":       {waitsForNothing, func(ctx context.Context, r *rig) error { return r.latch().Set(ctx, 1) }},
	"Latch.Wait":      {waitsBounded, func(ctx context.Context, r *rig) error { return r.latch().Wait(ctx) }},
	"Lease.Check":     {waitsForNothing, func(ctx context.Context, r *rig) error { return r.fixed.Check(ctx) }},
	"Lease.Downgrade": {waitsForAnswer, func(ctx context.Context, r *rig) error { return r.writer.Downgrade(ctx) }},
	"Lease.Extend":    {waitsForNothing, func(ctx context.Context, r *rig) error { return r.fixed.Extend(ctx) }},
	"Mutex.Do":        {waitsByConfig, func(ctx context.Context, r *rig) error { return r.mutex().Do(ctx, never) }},
	"Mutex.Lock":      {waitsByConfig, func(ctx context.Context, r *rig) error { return ofLease(r.mutex().Lock(ctx)) }},
	"Mutex.Lock, strict": {waitsByConfig, func(ctx context.Context, r *rig) error {
		return ofLease(r.mutex(holdfast.WithStrictOrder()).Lock(ctx))
	}},
	"Mutex.Lock, owner": {waitsByConfig, func(ctx context.Context, r *rig) error {
		return ofLease(r.mutex(holdfast.WithOwner("o")).Lock(ctx))
	}},
	"Mutex.Lock, polling": {waitsByConfig, func(ctx context.Context, r *rig) error {
		return ofLease(r.mutex(holdfast.WithPolling(7*time.Millisecond, 0)).Lock(ctx))
	}},
	"Mutex.Ticket": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofTicket(r.Mutex("n").Ticket(ctx, 0)) }},
	"Mutex.TryLock": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofLease(r.mutex().TryLock(ctx)) }},
	"RWMutex.Do": {waitsByConfig, func(ctx context.Context, r *rig) error { return r.rwmutex().Do(ctx, never) }},
	"RWMutex.Lock": {waitsByConfig,
		func(ctx context.Context, r *rig) error { return ofLease(r.rwmutex().Lock(ctx)) }},
	"RWMutex.RDo": {waitsByConfig,
		func(ctx context.Context, r *rig) error { return r.rwmutex().RDo(ctx, never) }},
	"RWMutex.RLock": {waitsByConfig,
		func(ctx context.Context, r *rig) error { return ofLease(r.rwmutex().RLock(ctx)) }},
	"RWMutex.RTicket": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofTicket(r.RWMutex("n").RTicket(ctx, 0)) }},
	"RWMutex.Ticket": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofTicket(r.RWMutex("n").Ticket(ctx, 0)) }},
	"RWMutex.TryLock": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofLease(r.rwmutex().TryLock(ctx)) }},
	"RWMutex.TryRLock": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return ofLease(r.rwmutex().TryRLock(ctx)) }},
	"Semaphore.Acquire": {waitsByConfig,
		func(ctx context.Context, r *rig) error { return ofLease(r.semaphore().Acquire(ctx, 1)) }},
	"Semaphore.Do": {waitsByConfig,
		func(ctx context.Context, r *rig) error { return r.semaphore().Do(ctx, 1, never) }},
	"Semaphore.Resize": {waitsForNothing,
		func(ctx context.Context, r *rig) error { return r.semaphore().Resize(ctx, 3) }},
	"Semaphore.Ticket": {waitsForNothing, func(ctx context.Context, r *rig) error {
		return ofTicket(r.Semaphore("n", 2).Ticket(ctx, 1, 0))
	}},
	"Semaphore.TryAcquire": {
		waitsForNothing, func(ctx context.Context, r *rig) error { return ofLease(r.semaphore().TryAcquire(ctx, 1)) }},
}

// TestContextCallsAreAll fails when a method takes a ctx and is not in the table.
func TestContextCallsAreAll(t *testing.T) {
	others := map[string]string{
		"Client.Quorum": "a master that does not answer is no error of it",
		"Lease.Bind":    "it asks no server", "Mutex.Locker": "it asks no server",
	}
	isContext := reflect.TypeFor[context.Context]()
	for _, handle := range []any{
		&holdfast.Client{}, &holdfast.Mutex{}, &holdfast.RWMutex{}, &holdfast.Semaphore{}, &holdfast.Latch{},
		&holdfast.Election{}, &holdfast.Group{}, &holdfast.Lease{},
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

// A context that was over before the call says nothing of the server. No call reports that the
// server is unavailable, or sends anything.
func TestContextOverBeforeCallSendsNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		r := newRig(w, client)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		before := sent.total()
		for name, call := range ctxCalls {
			err := call.do(ctx, r)
			if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if call.waits >= waitsForTurn && !errors.As(err, new(*holdfast.WaitError)) {
				t.Errorf("%s: %#v", name, err)
			}
			synctest.Wait()
			if n := sent.total() - before; n != 0 && name != "Lease.Downgrade" { // which goes on all the same
				t.Errorf("%s: %d requests", name, n)
			}
			before = sent.total()
		}
	})
}

var errShutdown = errors.New("shutting down")

// endAfter is when the contexts of endings end.
const endAfter = 4 * time.Second

// endings are contexts that end, and what an error that reports this end matches.
var endings = map[string]struct {
	make       func(context.Context) (context.Context, context.CancelFunc)
	is, isNone []error
}{
	"timeout": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, endAfter)
		}, []error{context.DeadlineExceeded}, []error{context.Canceled},
	},
	"timeout with a cause": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, endAfter, errShutdown)
		}, []error{context.DeadlineExceeded, errShutdown}, []error{context.Canceled},
	},
	"timeout whose cause is a cancellation": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, endAfter, context.Canceled)
		}, []error{context.DeadlineExceeded, context.Canceled}, nil,
	},
	"cancellation": {cancelLater(nil), []error{context.Canceled}, []error{context.DeadlineExceeded}},
	"cancellation with a cause": {
		cancelLater(errShutdown), []error{context.Canceled, errShutdown}, []error{context.DeadlineExceeded},
	},
	"cancellation whose cause is a deadline": {
		cancelLater(context.DeadlineExceeded), []error{context.Canceled, context.DeadlineExceeded}, nil,
	},
}

func cancelLater(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(endAfter, func() { cancel(cause) })
		return ctx, func() { timer.Stop() }
	}
}

// The error of a wait that its context ended matches what ctx.Err said, and the cause, and says
// each of them once. So does that of a goroutine which waits behind another one of its process.
func TestContextEndsWait(t *testing.T) {
	for name, call := range ctxCalls {
		if call.waits < waitsForTurn {
			continue
		}
		for what, end := range endings {
			t.Run(name+", "+what, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w world) {
					client, _ := w.client()
					other, _ := w.client()
					holdAll(w, other)
					r := newRig(w, client)
					ctx, cancel := end.make(t.Context())
					defer cancel()
					ended := make(chan error, 2)
					if name == "Client.Attach, a place" { // one process at a time waits there
						ended = make(chan error, 1)
					}
					for range cap(ended) {
						go func() { ended <- call.do(ctx, r) }()
						synctest.Wait()
					}
					for range cap(ended) {
						err := <-ended
						checkEnding(t, err, end.is, end.isNone)
						if waited := (*holdfast.WaitError)(nil); !errors.As(err, &waited) || waited.Waited < endAfter ||
							errors.Is(err, holdfast.ErrUnavailable) {
							t.Errorf("got %+v", err)
						}
					}
				})
			})
		}
	}
}

// checkEnding compares an error with the end of a context that it reports.
func checkEnding(t *testing.T, err error, is, isNone []error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%q does not match %q", err, want)
		}
		if n := strings.Count(err.Error(), want.Error()); n != 1 {
			t.Errorf("%q says %q %d times", err, want, n)
		}
	}
	for _, other := range isNone {
		if errors.Is(err, other) {
			t.Errorf("%q matches %q", err, other)
		}
	}
}

// beSilent returns the hook of a server that does not answer. A request fails as with a client
// library that watches its own timer: later than its deadline, or earlier.
func beSilent(late time.Duration, failure error) hook {
	return func(ctx context.Context, _ int64, _ func() error) error {
		end := time.Now().Add(time.Second) // of a request without a deadline
		if at, ok := ctx.Deadline(); ok && at.Before(end) {
			end = at
		}
		select {
		case <-time.After(time.Until(end) + late):
		case <-ctx.Done():
			<-time.After(max(late, 0))
		}
		return failure
	}
}

// The error of a call whose ctx is over matches how ctx ended, and its cause, whichever timer is
// first: that of ctx, or that of a request with the same deadline. A call that ends by itself while
// its ctx goes on matches no error of a context. Neither ever says that another holds.
func TestContextEndsCallAtSilentServer(t *testing.T) {
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
					if call.waits > waitsForNothing && what == "none" {
						continue
					}
					t.Run(fmt.Sprintf("%s, %s, %s, %v", name, what, order, reason), func(t *testing.T) {
						inWorld(t, func(t *testing.T, w world) {
							client, sent := w.client()
							r := newRig(w, client)
							failure := os.ErrDeadlineExceeded
							if what == "none" {
								failure = context.DeadlineExceeded // of a context that is not the caller's
							}
							sent.on("", beSilent(late, newFailure(reason, failure)))
							defer sent.on("", nil)
							ctx, cancel := end(t.Context())
							defer cancel()
							err := call.do(ctx, r)
							if what != "none" {
								<-ctx.Done()
							}
							checkSilent(ctx, t, err)
							var failed *holdfast.StoreError
							if errors.As(err, &failed) && strings.HasPrefix(name, "Latch.") &&
								failed.MayHaveApplied != (reason == protocol.NoAnswer) {
								t.Errorf("MayHaveApplied is %v: %v", failed.MayHaveApplied, err)
							}
						})
					})
				}
			}
		}
	}
}

// checkSilent judges the error of a call at a server that is silent.
func checkSilent(ctx context.Context, t *testing.T, err error) {
	t.Helper()
	over := ctx.Err() != nil
	matches := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if err == nil || matches != over || over && (!errors.Is(err, ctx.Err()) || !errors.Is(err, errShutdown)) ||
		errors.Is(err, holdfast.ErrHeld) {
		t.Error(err)
	}
	if !errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrUncertain) {
		t.Errorf("not unavailable: %v", err)
	}
}
