package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A shard that another caller waits for is given back by a process that has more than its share
// rounded down, and taken again if nobody waits for it any more.
func TestShardsWantedByOthers(t *testing.T) {
	inCrew(t, 5, func(t *testing.T, c *crew) {
		a, b := c.join(), c.join()
		c.want(time.Second, []*hand{a, b}, 2, 3)
		c.mu.Lock()
		a.slow, b.slow = 2*ttl/3, 2*ttl/3
		clear(c.starts)
		c.mu.Unlock()
		other, _ := c.client()
		ctx, cancel := context.WithTimeout(c.Context(), ttl/2) // after which all have looked
		defer cancel()
		for i := range 5 {
			go func() { _, _ = other.Mutex(fmt.Sprint("s/", i)).Lock(ctx) }()
		}
		c.want(2*ttl, []*hand{a, b}, 2, 3)
		starts := 0
		for _, n := range c.starts {
			starts += n
		}
		if starts != 1 {
			t.Errorf("the shards started %d times", c.starts)
		}
		c.dismiss(a, b)
	})
}

// A process takes no other shard in the place of one that is on its way to another process.
func TestShardsOnTheirWay(t *testing.T) {
	inCrew(t, 2, func(t *testing.T, c *crew) {
		other, _ := c.client()
		old, young := holdfast.WithOwner("shard 2 1 old 0 -"), holdfast.WithOwner("shard 2 1 young 0 -")
		oldest, err := other.RWMutex("s", old).TryRLock(c.Context())
		must(t, err)
		first, err := other.Mutex("s/0", old).TryLock(c.Context())
		must(t, err)
		a := c.join()
		c.want(time.Second, []*hand{a}, 1)
		c.mu.Lock()
		a.slow = ttl / 5
		c.mu.Unlock()
		youngest, err := other.RWMutex("s", young).TryRLock(c.Context())
		must(t, err)
		got := make(chan *holdfast.Lease, 1)
		go func() {
			lease, err := other.Mutex("s/1", young).Lock(c.Context())
			must(t, err)
			got <- lease
		}()
		<-time.After(time.Second)
		must(t, first.Release())
		_, err = other.Ask(c.Context(), "s")
		must(t, err)
		<-time.After(time.Second)
		c.mu.Lock()
		if c.starts[0] > 0 {
			t.Error("the process took the shard that was free")
		}
		c.mu.Unlock()
		second := <-got
		c.want(time.Second, []*hand{a}, 1)
		must(t, errors.Join(second.Release(), youngest.Release(), oldest.Release()))
		c.dismiss(a)
	})
}

// A process that has more than its share, and gives back none, has the others look.
func TestShardsTooMany(t *testing.T) {
	inCrew(t, 2, func(t *testing.T, c *crew) {
		a := c.join()
		c.want(time.Second, []*hand{a}, 2)
		other, _ := c.client()
		var leases []*holdfast.Lease
		for i := range 2 {
			lease, err := other.RWMutex("s", holdfast.WithOwner(fmt.Sprintf("shard 2 1 other%d 0 -", i)),
				holdfast.WithWanted()).TryRLock(c.Context())
			must(t, err)
			leases = append(leases, lease)
		}
		<-time.After(ttl)
		for _, lease := range leases {
			select {
			case <-lease.Wanted():
			default:
				t.Error("a member is not told to look")
			}
			must(t, lease.Release())
		}
		c.dismiss(a)
	})
}

// A process that is told to look renews its membership, and is a member all the time.
func TestShardsMemberAllTheTime(t *testing.T) {
	inCrew(t, 2, func(t *testing.T, c *crew) {
		a, b := c.join(), c.join()
		c.want(time.Second, []*hand{a, b}, 1, 1)
		freed := make(chan int, 1)
		a.on("free", func(ctx context.Context, _ int64, send func() error) error {
			err := send()
			info, failed := b.client.Inspect(ctx, "s")
			must(t, failed)
			freed <- info.Holders
			return err
		})
		_, err := b.client.Ask(c.Context(), "s")
		must(t, err)
		if n := <-freed; n < 2 {
			t.Errorf("%d members are left", n)
		}
		a.on("free", nil)
		c.want(time.Second, []*hand{a, b}, 1, 1)
		c.dismiss(a, b)
	})
}
