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
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// A quorum is three embedded masters with clocks of their own, on a fake clock. All of them count.
type quorum struct {
	*testing.T
	masters []*embedded.Server
	clocks  []*embedded.Clock
	top     map[string]int64 // the largest token of each name
}

// startQuorum starts masters whose clocks run on from some times.
func startQuorum(t *testing.T, shows [3]time.Time, f func(*quorum)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { sleep(time.Minute) }) // go-redis dials in the background for a while
		c := &quorum{T: t, top: map[string]int64{}}
		for range shows {
			srv := embedded.Start(t)
			clock := embedded.NewClock(srv)
			c.masters, c.clocks = append(c.masters, srv), append(c.clocks, clock)
		}
		c.show(shows)
		founder := c.client("founder")
		for tries := 0; ; sleep(100 * time.Millisecond) {
			nodes, err := founder.Quorum(t.Context())
			fatal.If(t, err)
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
func (c *quorum) show(shows [3]time.Time) {
	for i, at := range shows {
		c.clocks[i].Show(at)
	}
}

// client makes a client as another process would.
func (c *quorum) client(name string) *holdfast.Client {
	c.Helper()
	var stores []store.Store
	for _, srv := range c.masters {
		stores = append(stores, redisstore.New(srv.Client(func(o *redis.Options) {
			o.ClientName, o.DisableIdentity = name, true
			o.PoolSize = 1000 // go-redis waits for a turn with timers that all bubbles would share
		})))
	}
	client, err := holdfast.NewQuorum(stores, &holdfast.Config{Label: name, MaxTTL: time.Minute, TrustNewNodes: true})
	fatal.If(c, err)
	c.Cleanup(func() { _ = client.Close() })
	return client
}

// acquire takes what is free, or will be. Its token is larger than those before.
func (c *quorum) acquire(lock lockFunc) *holdfast.Lease {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), time.Minute)
	defer cancel()
	lease, err := lock(ctx)
	fatal.If(c, err)
	for name, token := range lease.Tokens() {
		if token <= c.top[name] || token >= 1<<53 {
			c.Errorf("%s: token %d after %d", name, token, c.top[name])
		}
		c.top[name] = token
	}
	return lease
}

func (c *quorum) checkHeld(lock lockFunc) {
	c.Helper()
	if _, err := lock(c.Context()); !errors.Is(err, holdfast.ErrHeld) {
		c.Errorf("another was answered %v", err)
	}
}

// release gives back leases that are still held.
func (c *quorum) release(leases ...*holdfast.Lease) {
	c.Helper()
	for _, lease := range leases {
		if err := errors.Join(lease.Check(c.Context()), lease.Release()); err != nil {
			c.Error(err)
		}
	}
}

// checkUses lets some hold, wait, read and break. What else a quorum supports is drawn by package
// simulate, on clocks of any time.
func (c *quorum) checkUses() {
	c.Helper()
	x, y, z := c.client("x"), c.client("y"), c.client("z")

	lease := c.acquire(x.Mutex("n").Lock)
	c.checkHeld(y.Mutex("n").TryLock)
	next := make(chan *holdfast.Lease)
	go func() { next <- c.acquire(y.Mutex("n").Lock) }()
	sleep(7 * time.Second)
	c.release(lease)
	lease = <-next
	c.checkHeld(z.Mutex("n").TryLock)
	if err := z.Break(c.Context(), "n", lease.Token()); err != nil {
		c.Fatalf("Break: %v", err)
	}
	c.checkHeld(z.Mutex("n").TryLock)
	_ = lease.Release()

	one, other := c.acquire(x.RWMutex("rw").RLock), c.acquire(y.RWMutex("rw").TryRLock)
	c.checkHeld(z.RWMutex("rw").TryLock)
	c.release(one, other)
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
		t.Run(name, func(t *testing.T) { startQuorum(t, shows, (*quorum).checkUses) })
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
				startQuorum(t, [3]time.Time{today, today, today}, func(c *quorum) {
					x, y, z, op := c.client("x"), c.client("y"), c.client("z"), c.client("op")
					lease := c.acquire(x.RWMutex("n").Lock)
					beside := c.acquire(z.Mutex("beside").Lock)
					synctest.Wait() // both are answered by all
					ctx, cancel := context.WithCancel(c.Context())
					defer cancel()
					go func() { _, _ = x.Mutex("beside").Lock(ctx) }() // so the holder's process listens
					next := make(chan *holdfast.Lease)
					go func() { next <- c.acquire(y.RWMutex("n").Lock) }()
					if meet {
						_, _ = op.Quorum(c.Context())
					}
					sleep(7 * time.Second) // a renewal tells the hold's token to a master that refused it
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
					c.masters[silent].Resume()
					c.release(last, beside)
				})
			})
		}
	}
}
