package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/store"
)

func arguments() []test {
	return []test{
		{"of a mutex", badMutex, 0},
		{"of every kind", badKinds, 0},
		{"of a client", badConfig, 0},
		{"at their limits", limits, 0},
		{"all that is wrong is said at once", severalBad, 0},
		{"nil contexts", nilContexts, 0},
		{"nil and zero handles", zeroHandles, 0},
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

// openSilent returns a client whose store must not be used.
func (e *env) openSilent(config *holdfast.Config) *client {
	c, err := holdfast.New(fakeStore{func(c store.Command) store.Reply {
		e.Errorf("sent: %q", c)
		return store.Reply{Err: errors.New("not to be sent")}
	}}, config)
	if err != nil {
		e.Fatalf("New: %v", err)
	}
	return &client{c, newEvents(e.T)}
}

// calls are the calls of a handle that take a context.
type calls []func(context.Context) error

// withoutLease is a call that must fail, without a lease.
func (e *env) withoutLease(lock lockFunc) func(context.Context) error {
	return func(ctx context.Context) error {
		lease, err := lock(ctx)
		if lease != nil {
			e.Error("a lease came with the error")
		}
		return err
	}
}

// never is a function that must not run.
func (e *env) never(context.Context) error { e.Error("it ran"); return nil }

func (e *env) mutexCalls(m *holdfast.Mutex) calls {
	return calls{e.withoutLease(m.Lock), e.withoutLease(m.TryLock),
		func(ctx context.Context) error { return m.Do(ctx, e.never) }}
}

func (e *env) rwmutexCalls(m *holdfast.RWMutex) calls {
	return calls{
		e.withoutLease(m.Lock), e.withoutLease(m.TryLock),
		func(ctx context.Context) error { return m.Do(ctx, e.never) },
		e.withoutLease(m.RLock), e.withoutLease(m.TryRLock),
		func(ctx context.Context) error { return m.RDo(ctx, e.never) },
	}
}

func (e *env) semaphoreCalls(s *holdfast.Semaphore, n int64) calls {
	return calls{
		e.withoutLease(acquire(s, n, false)), e.withoutLease(acquire(s, n, true)),
		func(ctx context.Context) error { return s.Do(ctx, n, e.never) },
	}
}

func (e *env) groupCalls(g *holdfast.Group) calls {
	return calls{e.withoutLease(g.Lock), e.withoutLease(g.TryLock),
		func(ctx context.Context) error { return g.Do(ctx, e.never) }}
}

func (e *env) electionCalls(c *holdfast.Election) calls {
	return calls{
		e.withoutLease(c.Campaign), e.withoutLease(c.TryCampaign),
		func(ctx context.Context) error { return c.Run(ctx, e.never) },
		func(ctx context.Context) error { _, err := c.Leader(ctx); return err },
		lastError(e, c.Observe),
	}
}

func (e *env) latchCalls(l *holdfast.Latch) calls {
	return calls{
		func(ctx context.Context) error { return l.Set(ctx, 1) }, l.CountDown, l.Wait,
		func(ctx context.Context) error { _, err := l.Count(ctx); return err },
	}
}

// lastError returns a call that returns the last error of a stream, which must be told alone.
func lastError[T any](e *env, stream func(context.Context) iter.Seq2[T, error]) func(context.Context) error {
	return func(ctx context.Context) (last error) {
		told := 0
		for _, err := range stream(ctx) {
			told, last = told+1, err
		}
		if told != 1 {
			e.Errorf("told %d times", told)
		}
		return last
	}
}

// operatorCalls are the calls of operators about a name.
func (e *env) operatorCalls(c *holdfast.Client, name string) calls {
	return calls{
		func(ctx context.Context) error { _, err := c.Inspect(ctx, name); return err },
		func(ctx context.Context) error { return c.Break(ctx, name, 1) },
		func(ctx context.Context) error { return c.ForceBreak(ctx, name, 1) },
		func(ctx context.Context) error { return c.Evict(ctx, name, "x") },
		lastError(e, func(ctx context.Context) iter.Seq2[lockinfo.Waiter, error] { return c.Queue(ctx, name) }),
	}
}

// clientCalls are those of no name.
func (e *env) clientCalls(c *holdfast.Client) calls {
	return calls{c.Ready, e.listCall(c, holdfast.ListOptions{})}
}

func (e *env) listCall(c *holdfast.Client, options holdfast.ListOptions) func(context.Context) error {
	return lastError(e, func(ctx context.Context) iter.Seq2[lockinfo.Info, error] { return c.List(ctx, options) })
}

// ticketCall is the call of a method that keeps a place for so long.
func ticketCall(take func(context.Context, time.Duration) (holdfast.Ticket, error), keep time.Duration) (
	call func(context.Context) error) {
	return func(ctx context.Context) error { _, err := take(ctx, keep); return err }
}

func leaseCalls(l *holdfast.Lease) calls { return calls{l.Check, l.Extend, l.Downgrade} }

// allCalls are those of every kind.
func (e *env) allCalls(c *holdfast.Client) (all calls) {
	if !e.backend.NoQueue {
		all = calls{ticketCall(c.Mutex(name).Ticket, 0)}
	}
	all = slices.Concat(all, e.mutexCalls(c.Mutex(name)), e.rwmutexCalls(c.RWMutex(name)),
		e.groupCalls(c.All([]string{"a"})), e.electionCalls(c.Election(name)),
		e.operatorCalls(c, name), e.clientCalls(c))
	if !e.backend.NoSemaphores {
		s := c.Semaphore(name, 1)
		all = append(append(all, e.semaphoreCalls(s, 1)...),
			func(ctx context.Context) error { return s.Resize(ctx, 1) })
	}
	if !e.backend.NoLatches {
		all = append(all, e.latchCalls(c.Latch(name))...)
	}
	return all
}

// checkAllRefused fails unless all calls are refused because of these arguments.
func (e *env) checkAllRefused(ctx context.Context, all calls, arguments ...string) {
	e.Helper()
	for _, call := range all {
		e.checkRefused(call(ctx), arguments...)
	}
}

func badKinds(e *env) {
	c := e.openSilent(nil)
	long, ttl, owner := strings.Repeat("x", 1025), holdfast.WithTTL(1), holdfast.WithOwner("o")
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for _, bad := range []struct {
		calls     calls
		arguments []string
	}{
		{e.rwmutexCalls(c.RWMutex(name, ttl)), []string{"WithTTL"}},
		{e.semaphoreCalls(c.Semaphore(name, 0), 1), []string{"permits"}},
		{e.semaphoreCalls(c.Semaphore(name, 1<<31+1), 1), []string{"permits"}},
		{e.semaphoreCalls(c.Semaphore("", 0, ttl), 1), []string{"permits", "name", "WithTTL"}},
		{e.semaphoreCalls(c.Semaphore(name, 1, owner), 1), []string{"WithOwner"}},
		{e.semaphoreCalls(c.Semaphore(name, 3), 0), []string{"n"}},
		{e.semaphoreCalls(c.Semaphore(name, 3), 4), []string{"n"}},
		{e.semaphoreCalls(c.Semaphore(name, 1<<31), 1<<31+1), []string{"n"}},
		{e.groupCalls(c.All(nil)), []string{"names"}},
		{e.groupCalls(c.All(many)), []string{"names"}},
		{e.groupCalls(c.All([]string{"a", ""})), []string{"names"}},
		{e.groupCalls(c.All([]string{"", long}, ttl)), []string{"names", "names", "WithTTL"}},
		{e.electionCalls(c.Election("")), []string{"name"}},
		{e.operatorCalls(c.Client, ""), []string{"name"}},
		{calls{ticketCall(c.Mutex("").Ticket, 0), ticketCall(c.RWMutex("").RTicket, 0)}, []string{"name"}},
		{calls{ticketCall(c.Mutex(name, holdfast.WithoutRenewal()).Ticket, 0),
			ticketCall(c.Mutex(name, holdfast.WithMinHold(time.Second)).Ticket, 0),
			ticketCall(c.Mutex(name, holdfast.WithMaxHold(time.Second)).Ticket, 0),
			ticketCall(c.Mutex(name, holdfast.WithPolling(time.Second, 1)).Ticket, 0)}, []string{"lock"}},
		{calls{e.listCall(c.Client, holdfast.ListOptions{Pattern: long})}, []string{"ListOptions.Pattern"}},
		{calls{e.listCall(c.Client, holdfast.ListOptions{Label: long})}, []string{"ListOptions.Label"}},
		{calls{e.listCall(c.Client, holdfast.ListOptions{OlderThan: -1})}, []string{"ListOptions.OlderThan"}},
		{e.electionCalls(c.Election(name, owner)), []string{"WithOwner"}},
		{e.latchCalls(c.Latch("")), []string{"name"}},
		{e.latchCalls(c.Latch(name, holdfast.WithTTL(24*time.Hour+time.Millisecond))), []string{"WithTTL"}},
		{e.latchCalls(c.Latch(name, holdfast.WithoutRenewal())), []string{"WithoutRenewal"}},
		{e.latchCalls(c.Latch(name, holdfast.WithMaxHold(time.Hour), holdfast.WithMinHold(time.Second))),
			[]string{"WithMaxHold", "WithMinHold"}},
		{e.latchCalls(c.Latch(name, holdfast.WithPolling(time.Second, 1))), []string{"WithPolling"}},
		{e.latchCalls(c.Latch(name, owner, holdfast.WithStrictOrder(), holdfast.WithLabel("l"))),
			[]string{"WithOwner", "WithStrictOrder", "WithLabel"}},
	} {
		e.checkAllRefused(e.ctx(), bad.calls, bad.arguments...)
	}
	for _, permits := range []int64{0, 1<<31 + 1} {
		e.checkRefused(c.Semaphore(name, 1).Resize(e.ctx(), permits), "permits")
	}
	e.checkRefused(c.Semaphore(name, 0).Resize(e.ctx(), 1), "permits")
	e.checkRefused(c.Latch(name).Set(e.ctx(), -1), "count")
	if math.MaxInt > math.MaxInt32 {
		e.checkRefused(c.Latch(name).Set(e.ctx(), math.MaxInt), "count")
	}
	for _, keep := range []time.Duration{-1, time.Millisecond, 10*time.Minute + time.Millisecond, time.Second + 1} {
		e.checkRefused(ticketCall(c.Mutex(name).Ticket, keep)(e.ctx()), "keep")
		e.checkRefused(ticketCall(c.RWMutex(name).RTicket, keep)(e.ctx()), "keep")
	}
	_, err := c.Semaphore(name, 3).Ticket(e.ctx(), 4, 0)
	e.checkRefused(err, "n")
	e.checkRefused(errorOf(c.Attach(e.ctx(), "no ticket")), "ticket")
	for _, token := range []int64{0, -1} {
		e.checkRefused(c.Break(e.ctx(), name, token), "token")
		e.checkRefused(c.ForceBreak(e.ctx(), name, token), "token")
	}
	for _, process := range []string{"host/", "host/x", "host/0", "host/-1", "host/1/abc"} {
		e.checkRefused(e.listCall(c.Client, holdfast.ListOptions{Process: process})(e.ctx()), "ListOptions.Process")
	}
	for _, err := range []error{
		c.Mutex(name).Do(e.ctx(), nil), c.RWMutex(name).Do(e.ctx(), nil), c.RWMutex(name).RDo(e.ctx(), nil),
		c.Semaphore(name, 1).Do(e.ctx(), 1, nil), c.All([]string{"a"}).Do(e.ctx(), nil),
		c.Election(name).Run(e.ctx(), nil),
	} {
		e.checkRefused(err, "fn")
	}
	e.close(c)
}

func nilContexts(e *env) {
	c := e.openSilent(nil)
	e.checkAllRefused(nil, e.allCalls(c.Client), "ctx") //nolint:staticcheck // nil is what is tried
	e.close(c)
	lease := e.lock(e.client().Mutex(name, unrenewed...))
	e.checkAllRefused(nil, leaseCalls(lease), "ctx") //nolint:staticcheck // nil is what is tried
	e.release(lease)
}

func zeroHandles(e *env) {
	var mutex *holdfast.Mutex
	var rwmutex *holdfast.RWMutex
	var semaphore *holdfast.Semaphore
	var group *holdfast.Group
	var election *holdfast.Election
	var latch *holdfast.Latch
	for _, none := range []struct {
		calls calls
		what  string
	}{
		{e.mutexCalls(mutex), "Mutex"}, {calls{ticketCall(mutex.Ticket, 0)}, "Mutex"},
		{e.mutexCalls(new(holdfast.Mutex)), "Mutex"},
		{e.rwmutexCalls(rwmutex), "RWMutex"}, {e.rwmutexCalls(new(holdfast.RWMutex)), "RWMutex"},
		{e.semaphoreCalls(semaphore, 1), "Semaphore"}, {e.semaphoreCalls(new(holdfast.Semaphore), 1), "Semaphore"},
		{e.groupCalls(group), "Group"}, {e.groupCalls(new(holdfast.Group)), "Group"},
		{e.electionCalls(election), "Election"}, {e.electionCalls(new(holdfast.Election)), "Election"},
		{e.latchCalls(latch), "Latch"}, {e.latchCalls(new(holdfast.Latch)), "Latch"},
	} {
		e.checkAllRefused(e.ctx(), none.calls, none.what)
	}
	var noClient *holdfast.Client
	for _, c := range []*holdfast.Client{noClient, new(holdfast.Client)} {
		e.checkAllRefused(e.ctx(), e.mutexCalls(c.Mutex(name)), "Mutex")
		e.checkAllRefused(e.ctx(), e.rwmutexCalls(c.RWMutex(name)), "RWMutex")
		e.checkAllRefused(e.ctx(), e.semaphoreCalls(c.Semaphore(name, 1), 1), "Semaphore")
		e.checkAllRefused(e.ctx(), e.groupCalls(c.All([]string{"a"})), "All")
		e.checkAllRefused(e.ctx(), e.electionCalls(c.Election(name)), "Election")
		e.checkRefused(c.Election(name).Check(), "Election")
		e.checkAllRefused(e.ctx(), e.latchCalls(c.Latch(name)), "Latch")
		e.checkAllRefused(e.ctx(), append(e.operatorCalls(c, name), e.clientCalls(c)...), "Client")
		e.checkRefused(errorOf(c.Attach(e.ctx(), "")), "Client")
		e.must(c.Close())
	}
}

func badMutex(e *env) {
	c := e.openSilent(nil)
	long := strings.Repeat("x", 1025)
	for _, test := range []struct {
		mutex           *holdfast.Mutex
		argument, value string
	}{
		{c.Mutex(""), "name", `""`},
		{c.Mutex(long), "name", "1025"},
		{c.Mutex(name, holdfast.WithTTL(0)), "WithTTL", "0s"},
		{c.Mutex(name, holdfast.WithTTL(-time.Second)), "WithTTL", "-1s"},
		{c.Mutex(name, holdfast.WithTTL(time.Microsecond)), "WithTTL", "1µs"}, // trap 26
		{c.Mutex(name, holdfast.WithTTL(100*time.Millisecond-1)), "WithTTL", "99.999999ms"},
		{c.Mutex(name, holdfast.WithTTL(5*time.Minute+1)), "WithTTL", "5m0.000000001s"},
		{c.Mutex(name, holdfast.WithMaxHold(0)), "WithMaxHold", "0s"},
		{c.Mutex(name, holdfast.WithMaxHold(99*time.Millisecond)), "WithMaxHold", "99ms"},
		{c.Mutex(name, holdfast.WithMinHold(0)), "WithMinHold", "0s"},
		{c.Mutex(name, holdfast.WithMinHold(-1)), "WithMinHold", "-1ns"},
		{c.Mutex(name, holdfast.WithMinHold(6*time.Minute)), "WithMinHold", "6m0s"},
		{c.Mutex(name, holdfast.WithMinHold(3*time.Second), holdfast.WithMaxHold(2*time.Second)), "WithMinHold", "3s"},
		{c.Mutex(name, holdfast.WithPolling(0, 1)), "WithPolling interval", "0s"},
		{c.Mutex(name, holdfast.WithPolling(-time.Second, 1)), "WithPolling interval", "-1s"},
		{c.Mutex(name, holdfast.WithPolling(time.Microsecond, 0)), "WithPolling interval", "1µs"},
		{c.Mutex(name, holdfast.WithPolling(time.Second, -1)), "WithPolling attempts", "-1"},
		{c.Mutex(name, holdfast.WithOwner("")), "WithOwner", `""`},
		{c.Mutex(name, holdfast.WithOwner(long)), "WithOwner", "1025"},
		{c.Mutex(name, holdfast.WithLabel(long)), "WithLabel", "1025"},
		{c.Mutex(name, holdfast.WithWait(0)), "WithWait", "0s"},
		{c.Mutex(name, holdfast.WithWait(-time.Second)), "WithWait", "-1s"},
	} {
		for _, call := range e.mutexCalls(test.mutex) {
			err := call(e.ctx())
			if e.checkRefused(err, test.argument); !strings.Contains(fmt.Sprint(err), test.value) {
				e.Errorf("the value %s is not named: %v", test.value, err)
			}
		}
	}
	e.close(c)
}

func badConfig(e *env) {
	st, long := fakeStore{}, strings.Repeat("x", 1025)
	for _, test := range []struct {
		config   holdfast.Config
		argument string
	}{
		{holdfast.Config{TTL: 99 * time.Millisecond}, "Config.TTL"},
		{holdfast.Config{TTL: -1}, "Config.TTL"},
		{holdfast.Config{TTL: 6 * time.Minute}, "Config.TTL"},
		{holdfast.Config{TTL: time.Minute, MaxTTL: time.Second}, "Config.TTL"},
		{holdfast.Config{MaxTTL: 24*time.Hour + 1}, "Config.MaxTTL"},
		{holdfast.Config{ReleaseTimeout: -1}, "Config.ReleaseTimeout"},
		{holdfast.Config{ReleaseTimeout: time.Microsecond}, "Config.ReleaseTimeout"},
		{holdfast.Config{Prefix: "a{b"}, "Config.Prefix"},
		{holdfast.Config{Prefix: "a}b"}, "Config.Prefix"},
		{holdfast.Config{Prefix: long}, "Config.Prefix"},
		{holdfast.Config{Label: long}, "Config.Label"},
		{holdfast.Config{Wait: -time.Second}, "Config.Wait"},
		{holdfast.Config{History: -1}, "Config.History"}, {holdfast.Config{History: 1_000_001}, "Config.History"},
	} {
		c, err := holdfast.New(st, &test.config)
		if e.checkRefused(err, test.argument); c != nil {
			e.Errorf("%s: a client came with the error", test.argument)
		}
	}
	var none *fakeStore
	for _, st := range []store.Store{nil, none} {
		_, err := holdfast.New(st, nil)
		e.checkRefused(err, "store")
		_, err = holdfast.New(st, &holdfast.Config{TTL: -1})
		e.checkRefused(err, "store", "Config.TTL")
	}
}

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

func severalBad(e *env) {
	c := e.openSilent(nil)
	m := c.Mutex("", holdfast.WithTTL(1), holdfast.WithOwner(""), holdfast.WithPolling(0, -1))
	e.checkAllRefused(e.ctx(), e.mutexCalls(m), "name", "WithTTL", "WithPolling interval", "WithPolling attempts",
		"WithOwner")
	e.close(c)
}
