package clock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A council is three embedded masters with clocks of their own, on a fake clock. All of them count.
type council struct {
	*testing.T
	masters []*embedded.Server
	clocks  []*embedded.Clock
	top     map[string]int64 // the largest token of each name
}

// convene starts masters whose clocks run on from some times.
func convene(t *testing.T, shows [3]time.Time, f func(*council)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { pass(time.Minute) }) // go-redis dials in the background for a while
		c := &council{T: t, top: map[string]int64{}}
		for range shows {
			srv := embedded.Start(t)
			clock := embedded.NewClock(srv)
			c.masters, c.clocks = append(c.masters, srv), append(c.clocks, clock)
		}
		c.show(shows)
		founder := c.client("founder")
		for tries := 0; ; pass(100 * time.Millisecond) {
			nodes, err := founder.Quorum(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(nodes, func(node lockinfo.Master) bool { return !node.Counts }) {
				break
			}
			if tries++; tries == 100 {
				t.Fatalf("after 10 s they do not count: %v", nodes)
			}
		}
		c.show(shows)
		f(c)
	})
}

// show lets the clocks run on from some times.
func (c *council) show(shows [3]time.Time) {
	for i, at := range shows {
		c.clocks[i].Show(at)
	}
}

// client makes a client as another process would.
func (c *council) client(name string) *holdfast.Client {
	c.Helper()
	var stores []store.Store
	for _, srv := range c.masters {
		stores = append(stores, redisstore.New(srv.Client(func(o *redis.Options) {
			o.ClientName, o.DisableIdentity = name, true
			o.PoolSize = 1000 // go-redis waits for a turn with timers that all bubbles would share
		})))
	}
	client, err := holdfast.NewQuorum(stores, &holdfast.Config{Label: name, MaxTTL: time.Minute, TrustNewNodes: true})
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// got takes what is free, or will be. Its token is larger than those before.
func (c *council) got(lock func(context.Context) (*holdfast.Lease, error)) *holdfast.Lease {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	lease, err := lock(ctx)
	if err != nil {
		c.Fatal(err)
	}
	for name, token := range lease.Tokens() {
		if token <= c.top[name] || token >= 1<<53 {
			c.Errorf("%s: token %d after %d", name, token, c.top[name])
		}
		c.top[name] = token
	}
	return lease
}

func (c *council) held(lock func(context.Context) (*holdfast.Lease, error)) {
	c.Helper()
	if _, err := lock(c.Context()); !errors.Is(err, holdfast.ErrHeld) {
		c.Errorf("another was answered %v", err)
	}
}

func (c *council) back(leases ...*holdfast.Lease) {
	c.Helper()
	for _, lease := range leases {
		if err := errors.Join(lease.Check(c.Context()), lease.Release()); err != nil {
			c.Error(err)
		}
	}
}

// uses are all that a quorum supports.
func (c *council) uses() {
	c.Helper()
	x, y, z := c.client("x"), c.client("y"), c.client("z")

	lease := c.got(x.Mutex("n").Lock)
	c.held(y.Mutex("n").TryLock)
	next := make(chan *holdfast.Lease)
	go func() { next <- c.got(y.Mutex("n").Lock) }()
	pass(7 * time.Second)
	c.back(lease)
	lease = <-next
	c.held(z.Mutex("n").TryLock)
	if err := z.Break(c.Context(), "n", lease.Token()); err != nil {
		c.Fatalf("Break: %v", err)
	}
	c.held(z.Mutex("n").TryLock)
	_ = lease.Release()

	mine := holdfast.WithOwner("me")
	first, second := c.got(x.Mutex("n", mine).Lock), c.got(y.Mutex("n", mine).Lock)
	c.held(z.Mutex("n").TryLock)
	c.back(first, second)

	one, other := c.got(x.RWMutex("rw").RLock), c.got(y.RWMutex("rw").TryRLock)
	c.held(z.RWMutex("rw").TryLock)
	c.back(one, other)
	writer := c.got(z.RWMutex("rw").Lock)
	c.held(x.RWMutex("rw").TryRLock)
	if err := writer.Downgrade(c.Context()); err != nil {
		c.Error(err)
	}
	c.back(c.got(x.RWMutex("rw").RLock), writer)

	names := []string{"n", "m", "o"}
	all := c.got(x.All(names).Lock)
	for _, name := range names {
		c.held(y.Mutex(name).TryLock)
	}
	c.back(all)

	for what, ends := range map[string]struct {
		option holdfast.Option
		free   bool
	}{"min hold": {holdfast.WithMinHold(time.Second), true}, "max hold": {holdfast.WithMaxHold(time.Second), false}} {
		began := time.Now()
		lease := c.got(x.Mutex("n", ends.option).Lock)
		if ends.free {
			c.back(lease)
		}
		next := c.got(y.Mutex("n").Lock)
		if took := time.Since(began); took < 990*time.Millisecond || took > 3*time.Second || lease.Err() == nil {
			c.Errorf("the next is in after %v, with a %s of a second; %v", took, what, lease.Err())
		}
		c.back(next)
	}
}

// The times that the clocks of three masters show do not matter, nor that they differ by decades.
func TestQuorumClocksShowAnyTime(t *testing.T) {
	in2000, today := time.Unix(946_684_807, 0), time.Unix(1_790_000_000, 0)
	for name, shows := range map[string][3]time.Time{
		"1970, 2000 and today":      {time.UnixMicro(7), in2000, today},
		"1970":                      {time.UnixMicro(7), time.UnixMicro(5000), time.Unix(77, 0)},
		"2000":                      {in2000, in2000, in2000},
		"September 2001, and later": {time.UnixMicro(1e15 - 3_000_007), time.UnixMicro(1e15 - 11_000_007), today},
		"2200":                      {time.Unix(7_258_118_407, 0), today, in2000},
	} {
		t.Run(name, func(t *testing.T) { convene(t, shows, (*council).uses) })
	}
}

// The clocks of three masters get a digit more while a lock is taken, waited for and ends.
func TestQuorumAtEveryDigitOfClocks(t *testing.T) {
	more := int64(1)
	for power := range 16 {
		at := time.UnixMicro(max(1, more-50_007))
		t.Run(fmt.Sprint("1e", power), func(t *testing.T) {
			convene(t, [3]time.Time{at, at.Add(time.Millisecond), at.Add(3 * time.Millisecond)}, func(c *council) {
				const ttl = 100 * time.Millisecond
				x, y := c.client("x"), c.client("y")
				for range 3 {
					began := time.Now()
					lease := c.got(x.Mutex("n", holdfast.WithTTL(ttl), holdfast.WithoutRenewal()).Lock)
					c.held(y.Mutex("n").TryLock)
					next := c.got(y.Mutex("n").Lock)
					if took := time.Since(began); took < ttl-3*time.Millisecond || took > 3*ttl || lease.Err() == nil {
						c.Errorf("the next is in after %v of %v; %v", took, ttl, lease.Err())
					}
					c.back(next)
				}
			})
		})
		more *= 10
	}
}

// In the first half second since 1970 nobody has waited yet: a reader enters beside a reader, where
// no other master can make up for one that says no.
func TestQuorumFirstHalfSecondReadersShare(t *testing.T) {
	later := time.Unix(946_684_807, 0)
	for _, at := range []int64{1, 999, 200_000, 499_999} {
		for name, silent := range map[string]bool{"of one, another silent": true, "of all": false} {
			t.Run(fmt.Sprint(at, " us ", name), func(t *testing.T) {
				convene(t, [3]time.Time{later, later, later}, func(c *council) {
					x, y := c.client("x"), c.client("y")
					for i := range c.clocks {
						if i == 0 || !silent {
							c.clocks[i].Stop(time.UnixMicro(at))
						}
					}
					first := c.got(x.RWMutex("rw").RLock)
					synctest.Wait() // it is answered by all
					if silent {
						c.masters[2].Pause()
					}
					second, err := y.RWMutex("rw").TryRLock(c.Context())
					if err != nil {
						c.Fatalf("a reader beside a reader: %v", err)
					}
					if silent {
						c.masters[2].Resume()
					}
					c.back(first, second)
				})
			})
		}
	}
}

// A writer that waited for readers is gone, and then the clocks are set back: it keeps new readers
// out no longer than before.
func TestQuorumStepBackAfterWriterLetsReadersIn(t *testing.T) {
	const key = "holdfast:{%quorum}+rw"
	later := time.Unix(946_684_807, 0)
	for _, back := range []time.Duration{time.Second, time.Hour, 30 * 365 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			convene(t, [3]time.Time{later, later, later}, func(c *council) {
				x, y := c.client("x"), c.client("y")
				first := c.got(x.RWMutex("rw").RLock)
				for i, master := range c.masters { // what its ask has left
					c.clocks[i].Tick()
					if _, err := master.Redis.ZAdd(key, float64(c.clocks[i].Now().UnixMicro()), "!"); err != nil {
						t.Fatal(err)
					}
					master.Redis.SetTTL(key, 18*time.Second)
					c.clocks[i].Ahead(-back)
				}
				began := time.Now()
				second := c.got(y.RWMutex("rw").RLock)
				if took := time.Since(began); took > 2*slowAsk {
					t.Errorf("a reader beside a reader is in after %v", took)
				}
				c.back(first, second)
			})
		})
	}
}

// With one silent master, a Break takes effect as soon as the others have answered, as a lock does:
// the holder, which listens, is told, and with its release the next is in. A client that has met no
// master before is as quick.
func TestQuorumBreakWithSilentMasterIsQuick(t *testing.T) {
	today := time.Unix(1_790_000_000, 0)
	for name, meet := range map[string]bool{"known to all": true, "new": false} {
		for silent := range 3 {
			t.Run(fmt.Sprint(name, ", master ", silent+1), func(t *testing.T) {
				convene(t, [3]time.Time{today, today, today}, func(c *council) {
					x, y, z, op := c.client("x"), c.client("y"), c.client("z"), c.client("op")
					lease := c.got(x.RWMutex("n").Lock)
					beside := c.got(z.Mutex("beside").Lock)
					synctest.Wait() // both are answered by all
					ctx, cancel := context.WithCancel(c.Context())
					defer cancel()
					go func() { _, _ = x.Mutex("beside").Lock(ctx) }() // so the holder's process listens
					next := make(chan *holdfast.Lease)
					go func() { next <- c.got(y.RWMutex("n").Lock) }()
					if meet {
						if _, err := op.Quorum(c.Context()); err != nil {
							c.Fatal(err)
						}
					}
					pass(7 * time.Second) // a renewal tells the hold's token to a master that refused it
					c.masters[silent].Pause()
					began := time.Now()
					within := func(what string, most time.Duration) {
						c.Helper()
						if took := time.Since(began); took > most {
							c.Errorf("%s after %v", what, took)
						}
					}
					if err := op.Break(c.Context(), "n", lease.Token()); err != nil {
						c.masters[silent].Resume()
						c.Fatal(err)
					}
					within("broken", 10*time.Millisecond)
					<-lease.Done()
					within("told", 10*time.Millisecond)
					if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
						c.Errorf("release: %v", err)
					}
					last := <-next
					within("the next in", 100*time.Millisecond)
					if err := op.ForceBreak(c.Context(), "n", last.Token()); err == nil || errors.Is(err, holdfast.ErrUnavailable) {
						c.Errorf("by force: %v", err)
					}
					if err := op.Evict(c.Context(), "n", "a waiter"); err == nil || errors.Is(err, holdfast.ErrUnavailable) {
						c.Errorf("evict: %v", err)
					}
					if err := op.Break(c.Context(), "n", lease.Token()); !errors.Is(err, holdfast.ErrNotHeld) {
						c.Errorf("again: %v", err)
					}
					within("what is refused", 100*time.Millisecond)
					c.masters[silent].Resume()
					c.back(last, beside)
				})
			})
		}
	}
}
