package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// A visit is a use of one name by three processes.
type visit struct {
	*testing.T
	srv     *redisserver.Server
	a, b, c *holdfast.Client
	name    string
	tokens  map[string]int64 // the largest of each name
	planted int64            // a token
}

// uses are what locks are used for.
var uses = []struct {
	name string
	use  func(*visit)
}{
	{"lock", usedLock},
	{"wait", usedWait},
	{"reentry of an owner", usedOwner},
	{"expiry", usedExpiry},
	{"min hold", usedMinHold},
	{"max hold", usedMaxHold},
	{"break", usedBreak},
	{"readers and writers", usedReaders},
	{"downgrade", usedDowngrade},
	{"semaphore", usedSemaphore},
	{"resize", usedResize},
	{"group", usedGroup},
	{"election", usedElection},
	{"latch", usedLatch},
}

// visitEach uses a server for everything, and tells the largest token of each name.
func visitEach(t *testing.T, srv *redisserver.Server, tokens map[string]int64) {
	t.Helper()
	config := &holdfast.Config{TTL: time.Minute}
	for i, use := range uses {
		t.Run(use.name, func(t *testing.T) {
			use.use(&visit{T: t, srv: srv, name: fmt.Sprint("use-", i), tokens: tokens, a: client(t, srv.Addr(), config),
				b: client(t, srv.Addr(), config), c: client(t, srv.Addr(), config)})
		})
	}
}

func (v *visit) must(err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// within is a context for one step.
func (v *visit) within() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	v.Cleanup(cancel)
	return ctx
}

// got takes a lease, whose token must be larger than those of the name before.
func (v *visit) got(take try) *holdfast.Lease {
	v.Helper()
	lease, err := granted(v.within(), take)
	v.must(err)
	v.grows(lease)
	return lease
}

func (v *visit) grows(lease *holdfast.Lease) {
	v.Helper()
	for name, token := range lease.Tokens() {
		if token <= v.tokens[name] || token >= 1<<53 {
			v.Errorf("%s: token %d after %d", name, token, v.tokens[name])
		}
		v.tokens[name] = token
	}
}

// held checks that somebody is kept out.
func (v *visit) held(take try) {
	v.Helper()
	v.must(held(v.within(), take))
}

// heldBy is the same while somebody has a lease that was handed over: who stands still for half a
// second may lose it.
func (v *visit) heldBy(lease *holdfast.Lease, take try) {
	v.Helper()
	err := held(v.within(), func(ctx context.Context) (*holdfast.Lease, error) {
		other, err := take(ctx)
		if err == nil {
			v.done(other)
		}
		return other, err
	})
	if err != nil && !errors.Is(answered(v.within(), lease.Check), holdfast.ErrLost) {
		v.Fatal(err)
	}
}

func (v *visit) back(leases ...*holdfast.Lease) {
	v.Helper()
	for _, lease := range leases {
		v.must(back(v.within(), lease))
	}
}

// A waiter stands in the server's queue. Its hold is handed over.
type waiter struct {
	*visit
	result func() (*holdfast.Lease, error)
}

// waits lets one more stand in the queue.
func (v *visit) waits(take try) *waiter {
	v.Helper()
	before := inQueue(v.srv, v.name)
	ctx := v.within()
	result := later(func() (*holdfast.Lease, error) { return take(ctx) })
	eventually(v.T, "one more stands in the queue", func() bool { return inQueue(v.srv, v.name) == before+1 })
	return &waiter{v, result}
}

// served is what the waiter got.
func (w *waiter) served() *holdfast.Lease {
	w.Helper()
	lease, err := w.result()
	w.must(err)
	w.grows(lease)
	return lease
}

// passes gives a lease to who waits next.
func (w *waiter) passes(leases ...*holdfast.Lease) *holdfast.Lease {
	w.Helper()
	for _, lease := range leases {
		if err := lease.Release(); err != nil && !outlasted(err) {
			w.Fatal(err)
		}
	}
	return w.served()
}

// done gives back what was handed over.
func (v *visit) done(leases ...*holdfast.Lease) {
	v.Helper()
	for _, lease := range leases {
		if err := lease.Release(); err != nil && !outlasted(err) {
			v.Fatal(err)
		}
	}
}

func usedLock(v *visit) {
	for _, c := range []*holdfast.Client{v.a, v.b, v.a} {
		lease := v.got(c.Mutex(v.name).TryLock)
		v.held(v.c.Mutex(v.name).TryLock)
		v.back(lease)
		lease = v.got(c.Mutex(v.name).Lock)
		v.held(v.c.Mutex(v.name).TryLock)
		v.back(lease)
	}
}

// Each who waits is handed the lock in its turn.
func usedWait(v *visit) {
	lease := v.got(v.a.Mutex(v.name).Lock)
	var queue []*waiter
	for _, c := range []*holdfast.Client{v.b, v.c, v.a, v.b} {
		queue = append(queue, v.waits(c.Mutex(v.name, holdfast.WithStrictOrder()).Lock))
	}
	for _, next := range queue {
		lease = next.passes(lease)
	}
	v.done(lease)
}

func usedOwner(v *visit) {
	mine := holdfast.WithOwner("me")
	first := v.got(v.a.Mutex(v.name, mine).Lock)
	second := v.got(v.b.Mutex(v.name, mine).Lock)
	v.held(v.c.Mutex(v.name).TryLock)
	v.back(first)
	v.held(v.c.Mutex(v.name).TryLock)
	v.back(second)
	v.back(v.got(v.c.Mutex(v.name).TryLock))
}

// A hold that nobody renews ends, and the next is in.
func usedExpiry(v *visit) {
	lease := v.got(v.a.Mutex(v.name, holdfast.WithTTL(time.Second), holdfast.WithoutRenewal()).Lock)
	next := v.got(v.b.Mutex(v.name).Lock)
	if lease.Err() == nil {
		v.Error("two trusted leases")
	}
	v.done(next)
}

func usedMinHold(v *visit) {
	const least = time.Second
	began := time.Now()
	lease := v.got(v.a.Mutex(v.name, holdfast.WithMinHold(least)).Lock)
	v.back(lease)
	next := v.got(v.b.Mutex(v.name).Lock)
	if took := time.Since(began); took < least*99/100 {
		v.Errorf("the next is in after %v, before a min hold of %v is over", took, least)
	}
	v.done(next)
}

func usedMaxHold(v *visit) {
	lease := v.got(v.a.Mutex(v.name, holdfast.WithMaxHold(time.Second)).Lock)
	next := v.got(v.b.Mutex(v.name).Lock)
	var lost *holdfast.LostError
	if !errors.As(lease.Err(), &lost) || lost.Reason != holdfast.LossMaxHold {
		v.Errorf("the lease says %v", lease.Err())
	}
	v.done(next)
}

func usedBreak(v *visit) {
	lease := v.got(v.a.Mutex(v.name).Lock)
	v.must(v.b.Break(v.within(), v.name, lease.Token()))
	v.held(v.c.Mutex(v.name).TryLock)
	if err := answered(v.within(), lease.Check); !errors.Is(err, holdfast.ErrLost) {
		v.Errorf("the holder was answered %v", err)
	}
	_ = lease.Release() // it has stopped, so what remains of its hold may go
	v.done(v.got(v.c.Mutex(v.name).Lock))
}

// Readers share; a writer waits for them, and who reads then waits for it.
func usedReaders(v *visit) {
	one := v.got(v.a.RWMutex(v.name).RLock)
	other := v.got(v.b.RWMutex(v.name).RLock)
	writer := v.waits(v.c.RWMutex(v.name).Lock)
	late := v.waits(v.a.RWMutex(v.name, holdfast.WithStrictOrder()).RLock)
	lease := writer.passes(one, other)
	v.heldBy(lease, v.b.RWMutex(v.name).TryRLock)
	v.done(late.passes(lease))
}

func usedDowngrade(v *visit) {
	lease := v.got(v.a.RWMutex(v.name).Lock)
	reader := v.waits(v.b.RWMutex(v.name).RLock)
	v.must(answered(v.within(), lease.Downgrade))
	beside := reader.served()
	v.held(v.c.RWMutex(v.name).TryLock)
	v.done(beside)
	v.back(lease)
	v.back(v.got(v.c.RWMutex(v.name).TryLock))
}

func (v *visit) permits(c *holdfast.Client, of, n int64) (once, wait try) {
	s := c.Semaphore(v.name, of)
	return func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, n) },
		func(ctx context.Context) (*holdfast.Lease, error) { return s.Acquire(ctx, n) }
}

func usedSemaphore(v *visit) {
	_, two := v.permits(v.a, 3, 2)
	tried, one := v.permits(v.b, 3, 1)
	first, second := v.got(two), v.got(one)
	v.held(tried)
	_, all := v.permits(v.c, 3, 3)
	whole := v.waits(all)
	lease := whole.passes(first, second)
	v.heldBy(lease, tried)
	v.done(lease)
}

func usedResize(v *visit) {
	_, two := v.permits(v.a, 2, 2)
	first := v.got(two)
	_, one := v.permits(v.b, 2, 1)
	next := v.waits(one)
	v.must(answered(v.within(), func(ctx context.Context) error { return v.c.Semaphore(v.name, 3).Resize(ctx, 3) }))
	lease := next.served()
	v.done(lease)
	v.back(first)
}

// A group waits for who holds one of its names, and others wait for the group.
func usedGroup(v *visit) {
	names := []string{v.name + "-1", v.name, v.name + "-2"}
	lease := v.got(v.a.Mutex(v.name).Lock)
	group := v.waits(v.b.All(names).Lock)
	all := group.passes(lease)
	for _, name := range names {
		v.heldBy(all, v.c.Mutex(name).TryLock)
	}
	next := v.waits(v.c.Mutex(v.name).Lock)
	v.done(next.passes(all))
	v.back(v.got(v.a.All(names).TryLock))
}

func usedElection(v *visit) {
	lease := v.got(v.a.Election(v.name).Campaign)
	next := v.waits(v.b.Election(v.name).Campaign)
	var leader holdfast.Leader
	v.must(answered(v.within(), func(ctx context.Context) (err error) { leader, err = v.c.Election(v.name).Leader(ctx); return err }))
	if leader.Token != lease.Token() {
		v.Errorf("the leader has token %d, not %d", leader.Token, lease.Token())
	}
	v.done(next.passes(lease))
}

func usedLatch(v *visit) {
	latch := func(c *holdfast.Client) *holdfast.Latch { return c.Latch(v.name, short) }
	v.must(answered(v.within(), func(ctx context.Context) error { return latch(v.a).Set(ctx, 2) }))
	ctx := v.within()
	wait := later(func() (*holdfast.Lease, error) { return nil, latch(v.a).Wait(ctx) })
	for _, c := range []*holdfast.Client{v.b, v.c} {
		v.must(answered(v.within(), latch(c).CountDown))
	}
	_, err := wait()
	v.must(err)
	n, err := latch(v.b).Count(v.within())
	if n != 0 || err != nil {
		v.Errorf("the count is %d, %v", n, err)
	}
	do(v.T, v.srv, "DEL", "holdfast:{"+v.name+"}") // else it stays open for the next visit, until its time is over
}
