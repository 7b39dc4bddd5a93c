package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/store"
)

func failures() []test {
	return []test{
		{"what the server refuses", refusals, 0},
		{"a server that is away, or silent", unreachable, 0},
	}
}

// A fakeStore answers with a function. It shows the errors of the client, whatever the store.
type fakeStore struct {
	answer func(store.Command) store.Reply
}

// Do implements store.Store.
func (s fakeStore) Do(_ context.Context, _ string, commands []store.Command) []store.Reply {
	replies := make([]store.Reply, len(commands))
	for i, c := range commands {
		replies[i] = s.answer(c)
	}
	return replies
}

// Nodes implements store.Store.
func (fakeStore) Nodes(context.Context) (store.Nodes, error) { return store.Nodes{}, nil }

// Refresh implements store.Store.
func (fakeStore) Refresh(context.Context, string) error { return nil }

func (fakeStore) Renew(string) {}

// Listen implements store.Store.
func (fakeStore) Listen(context.Context, string, bool, store.Events) (store.Listener, error) {
	return nil, errors.New("no messages here")
}

// openFake returns a client whose every request gets this reply. A client asks a new server for the
// time first, which changes nothing, so that is answered.
func (e *env) openFake(reply store.Reply) *client {
	seen := newEvents(e.T)
	c, err := holdfast.New(fakeStore{func(c store.Command) store.Reply {
		if c[0] == "TIME" {
			return store.Reply{Value: []any{"1700000000", "000000"}}
		}
		return reply
	}},
		&holdfast.Config{Observer: seen, ReleaseTimeout: 10 * time.Millisecond})
	if err != nil {
		e.Fatalf("New: %v", err)
	}
	e.Cleanup(func() { _ = c.Close() })
	return &client{c, seen}
}

func (e *env) checkFailed(err error, kind holdfast.StoreKind, mayHaveApplied bool) {
	e.Helper()
	failed := e.checkStoreError(err, kind, mayHaveApplied)
	checkEqual(e, "name", failed.Name, name)
	if failed.Op == "" || failed.Err == nil {
		e.Errorf("%#v has no operation, or no cause", failed)
	}
	e.checkIsNone(err, holdfast.ErrHeld, holdfast.ErrLost) // the answers (trap 22)
}

// Trap 45: refusals are known by their first word, on its own or as a script wraps it.
func refusals(e *env) {
	for _, test := range []struct {
		line        string
		kind        holdfast.StoreKind
		waits       bool // whether Lock goes on
		unavailable bool
	}{
		{"NOPERM this user has no permissions to run the 'evalsha' command", holdfast.StoreDenied, false, false},
		{"NOAUTH Authentication required.", holdfast.StoreDenied, false, false},
		{"WRONGPASS invalid username-password pair or user is disabled.", holdfast.StoreDenied, false, false},
		{"OOM command not allowed when used memory > 'maxmemory'.", holdfast.StoreOutOfMemory, true, true},
		{"-OOM command not allowed when used memory > 'maxmemory'.", holdfast.StoreOutOfMemory, true, true},
		{"MISCONF Redis is configured to save RDB snapshots", holdfast.StoreMisconfigured, true, true},
		{"LOADING Redis is loading the dataset in memory", holdfast.StoreLoading, true, true},
		{"READONLY You can't write against a read only replica.", holdfast.StoreReadOnly, true, true},
		{"NOREPLICAS Not enough good replicas to write.", holdfast.StoreNoReplicas, true, true},
		{"CLUSTERDOWN The cluster is down", holdfast.StoreClusterDown, true, true},
		{"ERR unknown command 'EVALSHA'", holdfast.StoreUnsupported, false, false},
		{"ERR something else", holdfast.StoreOther, false, false},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", holdfast.StoreForeign, false, false},
	} {
		c := e.openFake(store.Reply{Refused: test.line})
		m := c.Mutex(name)
		if test.kind != holdfast.StoreForeign { // Ready touches no name
			checkEqual(e, "operation", e.checkStoreError(c.Ready(e.ctx()), test.kind, false).Op, "ready")
		}
		_, err := m.TryLock(e.ctx())
		e.checkFailed(err, test.kind, false)
		if errors.Is(err, holdfast.ErrUnavailable) != test.unavailable {
			e.Errorf("%v matches ErrUnavailable: %v", err, !test.unavailable)
		}
		if !test.waits {
			_, err = m.Lock(e.ctx())
			e.checkFailed(err, test.kind, false)
			continue
		}
		ctx, cancel := context.WithCancel(e.ctx())
		w := e.goTake(ctx, m.Lock)
		c.await(holdfast.EventRetried, 2)
		cancel()
		ended := w.awaitGiveUp(context.Canceled)
		e.checkIs(ended, holdfast.ErrUnavailable)
		e.checkFailed(ended, test.kind, false)
	}
}

// Trap 10: the error of a request that may have taken effect says that this is unknown.
func unreachable(e *env) {
	refused := errors.New("connection refused")
	for _, test := range []struct {
		reply          store.Reply
		kind           holdfast.StoreKind
		mayHaveApplied bool
	}{
		{store.Reply{Err: refused, Unsent: true}, holdfast.StoreUnreachable, false},
		{store.Reply{Err: os.ErrDeadlineExceeded}, holdfast.StoreNoAnswer, true},
	} {
		c := e.openFake(test.reply)
		e.checkIs(c.Ready(e.ctx()), holdfast.ErrUnavailable)
		for _, lock := range []lockFunc{c.Mutex(name).TryLock,
			c.Mutex(name, holdfast.WithPolling(time.Millisecond, 3)).Lock} {
			err := errorOf(lock(e.ctx()))
			e.checkFailed(err, test.kind, test.mayHaveApplied)
			e.checkIs(err, holdfast.ErrUnavailable, test.reply.Err)
		}
		if n := len(c.of(holdfast.EventGranted)); n > 0 {
			e.Errorf("%d leases were granted", n)
		}
	}
}

// checkRefused fails unless err is an *ArgumentError about these arguments and no others.
func (e *env) checkRefused(err error, arguments ...string) *holdfast.ArgumentError {
	e.Helper()
	var bad *holdfast.ArgumentError
	if !errors.As(err, &bad) {
		e.Errorf("got %v, want an ArgumentError about %q", err, arguments)
		return nil
	}
	var got []string
	for _, p := range bad.Problems {
		got = append(got, p.Argument)
		if !strings.Contains(err.Error(), p.Argument) || p.Allowed == "" || !strings.Contains(err.Error(), p.Allowed) {
			e.Errorf("the text does not name %q and %q: %v", p.Argument, p.Allowed, err)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(arguments) {
		e.Errorf("%v: about %q, want %q", err, got, arguments)
	}
	return bad
}

// never is a function that must not run.
func (e *env) never(context.Context) error { e.Error("it ran"); return nil }

// Values at the edge of what is allowed work.
func limits(e *env) {
	a, b := e.client(func(c *holdfast.Config) { c.MaxTTL = 24 * time.Hour }), e.client()
	long := strings.Repeat("x", 1024)
	for _, options := range [][]holdfast.Option{
		nil, {nil, nil},
		{holdfast.WithTTL(24 * time.Hour)},
		{holdfast.WithMaxHold(1000 * time.Hour)},
		{holdfast.WithMaxHold(time.Minute), holdfast.WithMinHold(1)},
		{holdfast.WithMinHold(time.Microsecond)},
		{holdfast.WithTTL(20*time.Second + 1)},
		{holdfast.WithOwner(long), holdfast.WithLabel(long)},
		{holdfast.WithPolling(time.Millisecond, 0)},
		{holdfast.WithTTL(-1), holdfast.WithTTL(20 * time.Second)}, // the later option wins
	} {
		lease := e.lock(a.Mutex(long, options...))
		e.busyError(b.Mutex(long))
		e.release(lease)
		e.release(e.lock(b.Mutex(long)))
	}
}

// refused is the section of what the backend has not.
func refused(run func(*env)) []test { return []test{{"is refused", run, 0}} }

// checkUnsupported fails unless err is the refusal of a feature that the backend lacks, and says
// why.
func (e *env) checkUnsupported(method string, err error) {
	e.Helper()
	refused := e.checkStoreError(err, holdfast.StoreUnsupported, false)
	checkEqual(e, method+": name", refused.Name, name)
	if refused.Op == "" || refused.Err == nil {
		e.Fatalf("%s: %#v has no operation, or no reason", method, refused)
	}
	reason := refused.Err.Error()
	if strings.Count(reason, " ") < 5 || !strings.Contains(err.Error(), reason) { // a sentence has six words
		e.Errorf("%s: got %v, want a sentence that says why", method, err)
	}
	e.checkIsNone(err, holdfast.ErrHeld, holdfast.ErrLost, holdfast.ErrNotHeld, holdfast.ErrUnavailable,
		context.DeadlineExceeded)
}

func semaphoreRefused(e *env) {
	c := e.client()
	s := c.Semaphore(name, 3)
	e.checkAllUnsupported(c,
		func(ctx context.Context) error { return errorOf(s.Acquire(ctx, 2)) },
		func(ctx context.Context) error { return errorOf(s.TryAcquire(ctx, 2)) },
		func(ctx context.Context) error { return s.Do(ctx, 2, e.never) },
		func(ctx context.Context) error { return s.Resize(ctx, 5) })
}

func latchRefused(e *env) {
	c := e.client()
	e.checkAllUnsupported(c, latchCalls(c.Latch(name))...)
}

func latchCalls(l *holdfast.Latch) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error { return l.Set(ctx, 1) }, l.CountDown, l.Wait,
		func(ctx context.Context) error { _, err := l.Count(ctx); return err },
	}
}

// checkAllUnsupported fails unless calls are refused at once, whether the name is free or not.
func (e *env) checkAllUnsupported(c *client, all ...func(context.Context) error) {
	e.Helper()
	for _, held := range []bool{false, true} {
		if held {
			lease := e.lock(c.Mutex(name))
			defer e.release(lease)
		}
		began := time.Now()
		for i, call := range all {
			e.checkUnsupported(fmt.Sprint("call ", i), call(e.ctx()))
		}
		e.checkAtOnce(c, began)
	}
}

func forceRefused(e *env) {
	a, b := e.client(), e.client()
	e.checkUnsupported("ForceBreak", e.forceBreak(b, 1))
	lease := e.lock(a.Mutex(name))
	e.checkUnsupported("ForceBreak", e.forceBreak(b, lease.Token()))
	e.busyError(b.Mutex(name))
	e.release(lease)
}

func evictRefused(e *env) {
	a, b := e.client(), e.client()
	e.checkUnsupported("Evict", e.askUntilAnswered(func() error { return b.Evict(e.ctx(), name, "x") }))
	lease := e.lock(a.Mutex(name))
	e.checkUnsupported("Evict", e.askUntilAnswered(func() error { return b.Evict(e.ctx(), name, "x") }))
	e.release(lease)
}

// checkAtOnce fails if a call waited, or asked again, which takes as long as a release may.
func (e *env) checkAtOnce(c *client, began time.Time) {
	e.Helper()
	if late := append(c.of(holdfast.EventWaiting), c.of(holdfast.EventRetried)...); len(late) > 0 || e.judgesTimes() &&
		time.Since(began) > 4*time.Second {
		e.Errorf("not refused at once, but after %v: %+v", time.Since(began), late)
	}
}
