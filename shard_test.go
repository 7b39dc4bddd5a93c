package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/shard"
)

// A crew is processes that take part in the shards "s", and what their functions do.
type crew struct {
	world
	n  int
	mu sync.Mutex

	owner  []*hand // of each shard, whose function runs
	moves  []int   // of each shard, how often another process started than the last time
	last   []*hand
	tokens []int64
}

// A hand is one process of a crew.
type hand struct {
	*connection
	client *holdfast.Client
	set    *shard.Set
	leave  context.CancelFunc
	left   chan error
	slow   time.Duration // how long its functions go on after their context
}

func inCrew(t *testing.T, n int, run func(t *testing.T, c *crew)) {
	t.Helper()
	inWorld(t, func(t *testing.T, w world) {
		c := &crew{world: w, n: n, owner: make([]*hand, n), moves: make([]int, n), last: make([]*hand, n),
			tokens: make([]int64, n)}
		run(t, c)
		synctest.Wait()
		w.nothingLeft()
	})
}

// join adds a process.
func (c *crew) join(options ...shard.Option) *hand {
	c.Helper()
	h := &hand{left: make(chan error, 1)}
	h.client, h.connection = c.client()
	h.set = shard.New(h.client, "s", c.n, options...)
	ctx, cancel := context.WithCancel(c.Context())
	h.leave = cancel
	go func() { h.left <- h.set.Run(ctx, func(ctx context.Context, i int) error { return c.work(ctx, h, i) }) }()
	return h
}

// work is the function of a shard. It fails the test if another process works at the shard under a
// lease that is trusted.
func (c *crew) work(ctx context.Context, h *hand, i int) error {
	lease, ok := holdfast.LeaseFrom(ctx)
	c.mu.Lock()
	if other := c.owner[i]; other != nil || !ok || lease.Token() <= c.tokens[i] {
		c.Errorf("shard %d starts with %v after %d, beside %v", i, lease, c.tokens[i], other)
	}
	c.owner[i], c.tokens[i] = h, lease.Token()
	if c.last[i] != nil && c.last[i] != h {
		c.moves[i]++
	}
	c.last[i] = h
	c.mu.Unlock()
	<-ctx.Done()
	if lease.Err() != nil { // it is lost: others may start
		c.free(i, h)
		return context.Cause(ctx)
	}
	<-time.After(h.slow)
	c.free(i, h)
	return context.Cause(ctx)
}

func (c *crew) free(i int, h *hand) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.owner[i] == h {
		c.owner[i] = nil
	}
}

// has returns how many shards each process runs.
func (c *crew) has(hands ...*hand) (counts []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range hands {
		n := 0
		for _, owner := range c.owner {
			if owner == h {
				n++
			}
		}
		counts = append(counts, n)
	}
	return counts
}

// want fails unless the processes have so many shards after some time.
func (c *crew) want(after time.Duration, hands []*hand, want ...int) {
	c.Helper()
	<-time.After(after)
	synctest.Wait()
	got := c.has(hands...)
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		c.Errorf("after %v they have %d shards, want %d", after, got, want)
	}
}

func (c *crew) dismiss(hands ...*hand) {
	c.Helper()
	for _, h := range hands {
		h.leave()
		if err := <-h.left; !errors.Is(err, context.Canceled) {
			c.Errorf("Run: %v", err)
		}
	}
}

const ttl = 15 * time.Second // of Config.TTL

// The shares differ by at most one, also while processes come and go, and each shard has one owner.
func TestShardsFair(t *testing.T) {
	inCrew(t, 10, func(t *testing.T, c *crew) {
		a := c.join()
		c.want(time.Second, []*hand{a}, 10)
		b := c.join()
		c.want(time.Second, []*hand{a, b}, 5, 5)
		d := c.join()
		c.want(time.Second, []*hand{a, b, d}, 3, 3, 4)
		c.dismiss(a)
		c.want(time.Second, []*hand{b, d}, 5, 5)
		c.dismiss(b)
		c.want(time.Second, []*hand{d}, 10)
		c.dismiss(d)
	})
}

// A restart of all processes, one by one, moves each shard at most twice.
func TestShardsRollingRestart(t *testing.T) {
	for _, size := range [][2]int{{64, 8}, {11, 3}, {5, 8}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			inCrew(t, size[0], func(t *testing.T, c *crew) {
				var hands []*hand
				for range size[1] {
					hands = append(hands, c.join())
				}
				<-time.After(61 * time.Minute) // what moved before does not count
				clear(c.moves)
				for i := range hands {
					c.dismiss(hands[i])
					<-time.After(2 * ttl)
					hands[i] = c.join()
					<-time.After(2 * ttl)
				}
				if most := slices.Max(c.moves); most > 2 {
					t.Errorf("a shard moved %d times: %d", most, c.moves)
				}
				if has := c.has(hands...); slices.Max(has)-slices.Min(has) > 1 {
					t.Errorf("they have %d", has)
				}
				c.dismiss(hands...)
			})
		})
	}
}

// A process that dies costs its shards one TTL.
func TestShardsDeath(t *testing.T) {
	inCrew(t, 9, func(t *testing.T, c *crew) {
		a, b, d := c.join(), c.join(), c.join()
		c.want(3*time.Second, []*hand{a, b, d}, 3, 3, 3)
		d.on("", loseAll)
		d.mute.Store(true)
		c.want(ttl+100*time.Millisecond, []*hand{a, b, d}, 0, 4, 5)
		d.on("", nil)
		d.mute.Store(false)
		c.want(ttl, []*hand{a, b, d}, 3, 3, 3)
		c.dismiss(a, b, d)
	})
}

// Shares go by weight.
func TestShardsWeight(t *testing.T) {
	inCrew(t, 12, func(t *testing.T, c *crew) {
		a, b := c.join(shard.WithWeight(2)), c.join()
		c.want(time.Second, []*hand{a, b}, 4, 8)
		if has := c.has(a, b); has[0] != 8 {
			t.Errorf("got %d", has)
		}
		c.dismiss(a, b)
	})
}

// A process that comes with another number of shards is refused, with both numbers. Those that came
// before stay.
func TestShardsOtherNumber(t *testing.T) {
	inCrew(t, 4, func(t *testing.T, c *crew) {
		a := c.join()
		c.want(time.Second, []*hand{a}, 4)
		c.n = 5
		b := c.join()
		err := <-b.left
		var bad *holdfast.ArgumentError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "n is 5, allowed: 4") {
			t.Errorf("got %v", err)
		}
		c.want(time.Second, []*hand{a}, 4)
		c.dismiss(a)
	})
}
