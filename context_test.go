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
	do    func(context.Context) error
}

// errorOf returns a call that returns the error of another one alone.
func errorOf[T any](call func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := call(ctx)
		return err
	}
}

// lastErrorOf returns a call that returns the last error of a stream.
func lastErrorOf[T any](call func(context.Context) iter.Seq2[T, error]) func(context.Context) error {
	return func(ctx context.Context) (last error) {
		for _, err := range call(ctx) {
			last = err
		}
		return last
	}
}

func never(context.Context) error { return errors.New("it ran") }

// with returns a call whose second argument is set.
func with[A, R any](call func(context.Context, A) R, arg A) func(context.Context) R {
	return func(ctx context.Context) R { return call(ctx, arg) }
}

// with2 is with for a call that has two results.
func with2[A, R any](call func(context.Context, A) (R, error), arg A) func(context.Context) error {
	return errorOf(func(ctx context.Context) (R, error) { return call(ctx, arg) })
}

// calls returns all methods of the library that take a ctx, and may ask a server for it.
func (r *rig) calls() map[string]ctxCall {
	strict, owner := holdfast.WithStrictOrder(), holdfast.WithOwner("o")
	polling := holdfast.WithPolling(7*time.Millisecond, 0)
	return map[string]ctxCall{
		"Client.Ask":             {waitsForNothing, with2(r.Ask, "n")},
		"Client.Attach":          {waitsForNothing, with2(r.Attach, r.ticket)},
		"Client.Attach, a place": {waitsForTurn, with2(r.Attach, r.place)},
		"Client.Break":           {waitsForNothing, func(ctx context.Context) error { return r.Break(ctx, "n", 1) }},
		"Client.CheckTicket":     {waitsForNothing, with(r.CheckTicket, r.ticket)},
		"Client.Deadlocks":       {waitsForNothing, errorOf(r.Deadlocks)},
		"Client.DiscardTicket":   {waitsForNothing, with(r.DiscardTicket, r.ticket)},
		"Client.Evict":           {waitsForNothing, func(ctx context.Context) error { return r.Evict(ctx, "n", "w") }},
		"Client.ForceBreak": {waitsForNothing,
			func(ctx context.Context) error { return r.ForceBreak(ctx, "n", 1) }},
		"Client.Inspect":       {waitsForNothing, with2(r.Inspect, "n")},
		"Client.List":          {waitsForNothing, lastErrorOf(with(r.List, holdfast.ListOptions{}))},
		"Client.Queue":         {waitsForNothing, lastErrorOf(with(r.Queue, "n"))},
		"Client.Ready":         {waitsForNothing, r.Ready},
		"Client.Why":           {waitsForNothing, with2(r.Why, "n")},
		"Election.Campaign":    {waitsBounded, errorOf(r.election().Campaign)},
		"Election.Leader":      {waitsForNothing, errorOf(r.election().Leader)},
		"Election.Observe":     {waitsForTurn, lastErrorOf(r.election().Observe)},
		"Election.Run":         {waitsBounded, with(r.election().Run, never)},
		"Election.TryCampaign": {waitsForNothing, errorOf(r.election().TryCampaign)},
		"Group.Do":             {waitsByConfig, with(r.group().Do, never)},
		"Group.Lock":           {waitsByConfig, errorOf(r.group().Lock)},
		"Group.Lock, polling":  {waitsByConfig, errorOf(r.group(polling).Lock)},
		"Group.TryDo":          {waitsForNothing, with(r.group().TryDo, never)},
		"Group.TryLock":        {waitsForNothing, errorOf(r.group().TryLock)},
		"Latch.Count":          {waitsForNothing, errorOf(r.latch().Count)},
		"Latch.CountDown":      {waitsForNothing, r.latch().CountDown},
		"Latch.Set":            {waitsForNothing, with(r.latch().Set, 1)},
		"Latch.Wait":           {waitsBounded, r.latch().Wait},
		"Lease.Check":          {waitsForNothing, r.fixed.Check},
		"Lease.Downgrade":      {waitsForAnswer, r.writer.Downgrade},
		"Lease.Extend":         {waitsForNothing, r.fixed.Extend},
		"Mutex.Ask":            {waitsForNothing, errorOf(r.mutex().Ask)},
		"Mutex.Do":             {waitsByConfig, with(r.mutex().Do, never)},
		"Mutex.Lock":           {waitsByConfig, errorOf(r.mutex().Lock)},
		"Mutex.Lock, strict":   {waitsByConfig, errorOf(r.mutex(strict).Lock)},
		"Mutex.Lock, owner":    {waitsByConfig, errorOf(r.mutex(owner).Lock)},
		"Mutex.Lock, polling":  {waitsByConfig, errorOf(r.mutex(polling).Lock)},
		"Mutex.Ticket":         {waitsForNothing, with2(r.Mutex("n").Ticket, 0)},
		"Mutex.TryDo":          {waitsForNothing, with(r.mutex().TryDo, never)},
		"Mutex.TryLock":        {waitsForNothing, errorOf(r.mutex().TryLock)},
		"RWMutex.Do":           {waitsByConfig, with(r.rwmutex().Do, never)},
		"RWMutex.Lock":         {waitsByConfig, errorOf(r.rwmutex().Lock)},
		"RWMutex.RDo":          {waitsByConfig, with(r.rwmutex().RDo, never)},
		"RWMutex.RLock":        {waitsByConfig, errorOf(r.rwmutex().RLock)},
		"RWMutex.RTicket":      {waitsForNothing, with2(r.RWMutex("n").RTicket, 0)},
		"RWMutex.Ticket":       {waitsForNothing, with2(r.RWMutex("n").Ticket, 0)},
		"RWMutex.TryDo":        {waitsForNothing, with(r.rwmutex().TryDo, never)},
		"RWMutex.TryLock":      {waitsForNothing, errorOf(r.rwmutex().TryLock)},
		"RWMutex.TryRDo":       {waitsForNothing, with(r.rwmutex().TryRDo, never)},
		"RWMutex.TryRLock":     {waitsForNothing, errorOf(r.rwmutex().TryRLock)},
		"Semaphore.Acquire":    {waitsByConfig, with2(r.semaphore().Acquire, 1)},
		"Semaphore.Do": {waitsByConfig, func(ctx context.Context) error {
			return r.semaphore().Do(ctx, 1, never)
		}},
		"Semaphore.Resize": {waitsForNothing, with(r.semaphore().Resize, 3)},
		"Semaphore.Ticket": {waitsForNothing, errorOf(func(ctx context.Context) (holdfast.Ticket, error) {
			return r.Semaphore("n", 2).Ticket(ctx, 1, 0)
		})},
		"Semaphore.TryAcquire": {waitsForNothing, with2(r.semaphore().TryAcquire, 1)},
		"Semaphore.TryDo": {waitsForNothing, func(ctx context.Context) error {
			return r.semaphore().TryDo(ctx, 1, never)
		}},
	}
}

// TestContextCallsAreAll fails when a method takes a ctx and is not in the table.
func TestContextCallsAreAll(t *testing.T) {
	others := map[string]string{
		"Client.History": "the server in memory has none", "Client.Stacks": "it asks as Inspect does",
		"Election.Transfer": "without the lead it asks no server",
		"Client.Quorum":     "a master that does not answer is no error of it",
		"Lease.Bind":        "it asks no server", "Mutex.Locker": "it asks no server",
	}
	isContext, calls := reflect.TypeFor[context.Context](), new(rig).calls()
	for _, handle := range []any{
		&holdfast.Client{}, &holdfast.Mutex{}, &holdfast.RWMutex{}, &holdfast.Semaphore{}, &holdfast.Latch{},
		&holdfast.Election{}, &holdfast.Group{}, &holdfast.Lease{},
	} {
		of := reflect.TypeOf(handle)
		for i := range of.NumMethod() {
			method := of.Method(i)
			name := of.Elem().Name() + "." + method.Name
			takes := method.Type.NumIn() > 1 && method.Type.In(1) == isContext
			_, listed := calls[name]
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
		for name, call := range r.calls() {
			err := call.do(ctx)
			answered := err == nil && name == "Lease.Downgrade" // which goes on all the same
			if !answered && !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) {
				t.Errorf("%s: %v", name, err)
			}
			if call.waits >= waitsForTurn && !errors.As(err, new(*holdfast.WaitError)) {
				t.Errorf("%s: %#v", name, err)
			}
			synctest.Wait()
			if n := sent.total() - before; n != 0 && name != "Lease.Downgrade" {
				t.Errorf("%s: %d requests", name, n)
			}
			before = sent.total()
		}
	})
}

var errShutdown = errors.New("shutting down")

// An ending is how a context ends: what its Err says, and its cause, if it has one.
type ending struct{ err, cause error }

var endings = []ending{
	{context.DeadlineExceeded, nil},
	{context.DeadlineExceeded, errShutdown},
	{context.DeadlineExceeded, context.Canceled},
	{context.Canceled, nil},
	{context.Canceled, errShutdown},
	{context.Canceled, context.DeadlineExceeded},
}

// after returns a context that ends so after a time. That of the zero ending does not end.
func (e ending) after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	switch {
	case errors.Is(e.err, context.DeadlineExceeded):
		return context.WithTimeoutCause(ctx, d, e.cause)
	case e.err == nil:
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(d, func() { cancel(e.cause) })
	return ctx, func() { timer.Stop() }
}

// check compares an error with the end of a context that it reports. It says each part once.
func (e ending) check(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, part := range []error{context.DeadlineExceeded, context.Canceled, errShutdown} {
		is := errors.Is(e.err, part) || errors.Is(e.cause, part)
		if n := strings.Count(err.Error(), part.Error()); errors.Is(err, part) != is || is && n != 1 {
			t.Errorf("%q matches %q: %v, and says it %d times", err, part, !is, n)
		}
	}
}

// The error of a wait that its context ended matches what ctx.Err said, and the cause, and says
// each of them once. So does that of a goroutine which waits behind another one of its process.
func TestContextEndsWait(t *testing.T) {
	const after = 4 * time.Second
	for name, call := range new(rig).calls() {
		if call.waits < waitsForTurn {
			continue
		}
		for _, end := range endings {
			runInWorld(t, fmt.Sprintf("%s, %v: %v", name, end.err, end.cause), func(t *testing.T, w world) {
				client, _ := w.client()
				other, _ := w.client()
				holdAll(w, other)
				r := newRig(w, client)
				ctx, cancel := end.after(t.Context(), after)
				defer cancel()
				ended := make(chan error, 2)
				if name == "Client.Attach, a place" { // one process at a time waits there
					ended = make(chan error, 1)
				}
				for range cap(ended) {
					go func() { ended <- r.calls()[name].do(ctx) }()
					synctest.Wait()
				}
				for range cap(ended) {
					err := <-ended
					end.check(t, err)
					if waited := (*holdfast.WaitError)(nil); !errors.As(err, &waited) || waited.Waited < after ||
						errors.Is(err, holdfast.ErrUnavailable) {
						t.Errorf("got %+v", err)
					}
				}
			})
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
	for what, end := range map[string]ending{
		"deadline":     {context.DeadlineExceeded, errShutdown},
		"cancellation": {context.Canceled, errShutdown},
		"none":         {},
	} {
		for order, late := range map[string]time.Duration{
			"the request is first": -time.Millisecond, "both at once": 0, "ctx is first": 30 * time.Millisecond,
		} {
			for _, reason := range []protocol.Reason{protocol.NoAnswer, protocol.Unreachable} {
				for name, call := range new(rig).calls() {
					if call.waits > waitsForNothing && what == "none" {
						continue
					}
					part := fmt.Sprintf("%s, %s, %s, %v", name, what, order, reason)
					runInWorld(t, part, func(t *testing.T, w world) {
						client, sent := w.client()
						r := newRig(w, client)
						failure := os.ErrDeadlineExceeded
						if what == "none" {
							failure = context.DeadlineExceeded // of a context that is not the caller's
						}
						sent.on("", beSilent(late, newFailure(reason, failure)))
						defer sent.on("", nil)
						ctx, cancel := end.after(t.Context(), most)
						defer cancel()
						err := r.calls()[name].do(ctx)
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
