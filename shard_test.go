package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/lockinfo"
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
	starts []int
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
			tokens: make([]int64, n), starts: make([]int, n)}
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
	if i >= len(c.owner) {
		c.Errorf("shard %d of %d runs", i, len(c.owner))
		return errors.New("no such shard")
	}
	lease, ok := holdfast.LeaseFrom(ctx)
	c.mu.Lock()
	if other := c.owner[i]; other != nil || !ok || lease.Token() <= c.tokens[i] {
		c.Errorf("shard %d starts with %v after %d, beside %v", i, lease, c.tokens[i], other)
	}
	c.owner[i], c.tokens[i] = h, lease.Token()
	c.starts[i]++
	if c.last[i] != nil && c.last[i] != h {
		c.moves[i]++
	}
	c.last[i] = h
	c.mu.Unlock()
	<-ctx.Done()
	if errors.Is(lease.Err(), holdfast.ErrLost) { // others may start
		c.free(i, h)
		return context.Cause(ctx)
	}
	c.mu.Lock()
	slow := h.slow
	c.mu.Unlock()
	<-time.After(slow)
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

// movesOf returns how often each shard has moved.
func (c *crew) movesOf() []int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.moves)
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

// Processes that leave at the same time do not keep their shards for each other.
func TestShardsAllLeave(t *testing.T) {
	inCrew(t, 6, func(t *testing.T, c *crew) {
		a, b, d := c.join(), c.join(), c.join()
		c.want(time.Second, []*hand{a, b, d}, 2, 2, 2)
		at := time.Now()
		a.leave()
		b.leave()
		c.dismiss(d, a, b)
		if took := time.Since(at); took > 500*time.Millisecond {
			t.Errorf("they are gone after %v", took)
		}
	})
}

// A process whose functions still run notes that the last of the others has left meanwhile.
func TestShardsLeaveOneByOne(t *testing.T) {
	inCrew(t, 6, func(t *testing.T, c *crew) {
		a, b := c.join(), c.join()
		c.want(time.Second, []*hand{a, b}, 3, 3)
		c.mu.Lock()
		a.slow = 5 * time.Second
		c.mu.Unlock()
		at := time.Now()
		a.leave()
		<-time.After(4 * time.Second)
		c.dismiss(b, a)
		if took := time.Since(at); took > 5500*time.Millisecond {
			t.Errorf("they are gone after %v", took)
		}
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
					<-time.After(2 * time.Second)
				}
				before := c.movesOf()
				for i := range hands {
					c.dismiss(hands[i])
					<-time.After(2 * time.Second)
					hands[i] = c.join()
					<-time.After(2 * time.Second)
				}
				if has := c.has(hands...); slices.Max(has)-slices.Min(has) > 1 {
					t.Errorf("they have %d", has)
				}
				moves := c.movesOf()
				for i := range moves {
					moves[i] -= before[i]
				}
				c.dismiss(hands...)
				if most := slices.Max(moves); most > 2 {
					t.Errorf("a shard moved %d times: %d", most, moves)
				}
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
// before stay, also beside a reader of the name that is none of them.
func TestShardsOtherNumber(t *testing.T) {
	inCrew(t, 4, func(t *testing.T, c *crew) {
		a := c.join()
		c.want(time.Second, []*hand{a}, 4)
		c.n = 5
		b := c.join()
		err := <-b.left
		var bad *holdfast.ArgumentError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), `n is 5, allowed: 4, as`) || !strings.HasSuffix(err.Error(), `for "s"`) {
			t.Errorf("got %v", err)
		}
		lease := c.must(b.client.RWMutex("s").RLock(t.Context()))
		c.want(ttl, []*hand{a}, 4)
		c.release(lease)
		c.dismiss(a)
	})
}

// A shard whose function returns nil is taken again after a second. Another error ends Run, after
// all other functions have returned; the shards are free then.
func TestShardsFunctionReturns(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		failed := errors.New("failed")
		var mu sync.Mutex
		began, ended, at := 0, 0, time.Now()
		err := shard.New(client, "s", 3).Run(t.Context(), func(ctx context.Context, i int) error {
			mu.Lock()
			began++
			first := began <= 3
			mu.Unlock()
			defer func() { mu.Lock(); ended++; mu.Unlock() }()
			switch {
			case i == 0 && first:
				return nil
			case i == 0 && time.Since(at) >= time.Second && time.Since(at) < 2*time.Second:
				return failed
			case i == 0:
				return fmt.Errorf("it runs again after %v", time.Since(at))
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, failed) || began != 4 || ended != 4 {
			t.Errorf("got %v after %d of %d functions", err, ended, began)
		}
		w.nothingLeft()
	})
}

// A panic of a function is that of Run, with its stack.
func TestShardsFunctionPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		defer w.nothingLeft()
		defer func() {
			text := fmt.Sprint(recover())
			if !strings.Contains(text, "oops") || !strings.Contains(text, "shard_test.go") {
				t.Errorf("got %s", text)
			}
		}()
		t.Error(shard.New(client, "s", 3).Run(t.Context(), func(ctx context.Context, i int) error {
			if i == 1 {
				panic("oops")
			}
			<-ctx.Done()
			return nil
		}))
	})
}

// A shard moves only after its function has returned. The logger is told of one that goes on, and
// the shards beside it move all the same.
func TestShardsFunctionGoesOn(t *testing.T) {
	inCrew(t, 4, func(t *testing.T, c *crew) {
		var log strings.Builder
		a := c.join(shard.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		c.mu.Lock()
		a.slow = time.Minute
		c.mu.Unlock()
		c.want(time.Second, []*hand{a}, 4)
		b := c.join()
		c.want(30*time.Second, []*hand{a, b}, 0, 4)
		c.want(time.Minute, []*hand{a, b}, 2, 2)
		c.dismiss(b, a)
		synctest.Wait()
		if !strings.Contains(log.String(), "goes on although its context has ended") ||
			!strings.Contains(log.String(), shard.ErrMoved.Error()) {
			t.Errorf("the logger got %q", log.String())
		}
	})
}

// A lease that is broken ends its function. The shard is taken anew, once that has returned.
func TestShardsBroken(t *testing.T) {
	inCrew(t, 4, func(t *testing.T, c *crew) {
		a, b := c.join(), c.join()
		c.want(time.Second, []*hand{a, b}, 2, 2)
		for i := range 4 {
			hold, err := a.set.Owner(t.Context(), i)
			must(t, err)
			must(t, a.client.Break(t.Context(), fmt.Sprint("s/", i), hold.Token))
		}
		c.want(ttl, []*hand{a, b}, 2, 2)
		c.dismiss(a, b)
		if slices.ContainsFunc(c.starts, func(n int) bool { return n < 2 }) {
			t.Errorf("the shards started %d times", c.starts)
		}
	})
}

// Owner names the process of a shard, and Watch tells of each that has another owner.
func TestShardsOwners(t *testing.T) {
	inCrew(t, 2, func(t *testing.T, c *crew) {
		client, _ := c.client()
		set := shard.New(client, "s", 2)
		if _, err := set.Owner(t.Context(), 1); !errors.Is(err, shard.ErrNoOwner) {
			t.Errorf("got %v", err)
		}
		var counts []int
		ctx, cancel := context.WithCancel(t.Context())
		watched := make(chan error)
		go func() {
			for holds, err := range set.Watch(ctx) {
				if err != nil {
					watched <- err
					return
				}
				held := slices.DeleteFunc(holds, func(hold lockinfo.Hold) bool { return hold.Label == "" })
				if len(held) != 1 { // it may look while they come and go
					counts = append(counts, len(held))
				}
			}
		}()
		<-time.After(3 * time.Second)
		a := c.join(shard.WithLock(holdfast.WithLabel("worker")))
		<-time.After(3 * time.Second)
		if hold, err := set.Owner(t.Context(), 1); err != nil || hold.Label != "worker" {
			t.Errorf("got %v, %v", hold, err)
		}
		c.dismiss(a)
		<-time.After(3 * time.Second)
		cancel()
		if err := <-watched; !errors.Is(err, context.Canceled) || !slices.Equal(counts, []int{0, 2, 0}) {
			t.Errorf("got %d owners, and %v", counts, err)
		}
	})
}

// Counts are those of leases that a process has, gave back and lost. Number reads how many shards
// there are from a member.
func TestShardsCounts(t *testing.T) {
	inCrew(t, 4, func(t *testing.T, c *crew) {
		a, b := c.join(), c.join()
		c.want(time.Second, []*hand{a, b}, 2, 2)
		c.dismiss(b)
		c.want(time.Second, []*hand{a}, 4)
		want := func(h *hand, held, back, lost int) {
			t.Helper()
			got := h.set.Counts()
			if got.Held != held || got.Lost != lost || got.GivenBack < back || got.Taken != held+got.GivenBack+lost {
				t.Errorf("got %+v", got)
			}
		}
		want(a, 4, 0, 0)
		want(b, 0, 2, 0)
		info, err := a.client.Inspect(t.Context(), "s")
		must(t, err)
		none, err := a.client.Inspect(t.Context(), "other")
		if must(t, err); shard.Number(info) != 4 || shard.Number(none) != 0 {
			t.Errorf("got %d and %d shards", shard.Number(info), shard.Number(none))
		}
		hold, err := a.set.Owner(t.Context(), 1)
		must(t, err)
		must(t, a.client.Break(t.Context(), "s/1", hold.Token))
		c.want(time.Second, []*hand{a}, 4)
		want(a, 4, 0, 1)
		c.dismiss(a)
		want(a, 0, 4, 1)
	})
}

// The shard of a key is documented: other programs compute it too.
func TestShardsOf(t *testing.T) {
	set := shard.New(nil, "s", 64)
	for key, want := range map[string]int{"": 0xcbf29ce484222325 % 64, "a": 0xaf63dc4c8601ec8c % 64,
		"foobar": 0x85944171f73967e8 % 64} {
		if got := set.Of(key); got != want {
			t.Errorf("%q: got %d, want %d", key, got, want)
		}
	}
}

// Bad arguments are named, and nothing is sent. A name of another kind is refused.
func TestShardsRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, c := w.client()
		fn := func(context.Context, int) error { t.Error("it runs"); return nil }
		for want, set := range map[string]*shard.Set{
			"Set":                       nil,
			"client is <nil>":           shard.New(nil, "s", 4),
			`name is ""`:                shard.New(client, "", 4),
			"name is":                   shard.New(client, strings.Repeat("n", 1020), 4),
			"n is 0, allowed: from 1":   shard.New(client, "s", 0),
			"n is 4097":                 shard.New(client, "s", 4097),
			"WithWeight is 0":           shard.New(client, "s", 4, shard.WithWeight(0)),
			"WithRetain":                shard.New(client, "s", 4, shard.WithLock(holdfast.WithRetain(time.Second))),
			"WithTTL is 1ns, allowed: ": shard.New(client, "s", 4, shard.WithLock(holdfast.WithTTL(1))),
		} {
			var bad *holdfast.ArgumentError
			if err := set.Run(t.Context(), fn); !errors.As(err, &bad) || !strings.Contains(err.Error(), want) {
				t.Errorf("want %s, got %v", want, err)
			}
		}
		set := shard.New(client, "s", 4)
		var bad *holdfast.ArgumentError
		if err := set.Run(t.Context(), nil); !errors.As(err, &bad) {
			t.Errorf("nil fn: %v", err)
		}
		if _, err := set.Owner(t.Context(), 4); !errors.As(err, &bad) || !strings.Contains(err.Error(), "from 0 to 3") {
			t.Errorf("Owner: %v", err)
		}
		if n := c.total(); n != 0 {
			t.Errorf("%d requests were sent", n)
		}
		for kind, lock := range map[string]func(context.Context) (*holdfast.Lease, error){
			"another kind": client.Mutex("s").Lock,
			"a writer":     client.RWMutex("s").Lock,
			"a reader":     client.RWMutex("s").RLock,
		} {
			lease := w.must(lock(t.Context()))
			if err := set.Run(t.Context(), fn); err == nil {
				t.Errorf("%s: got %v", kind, err)
			}
			w.release(lease)
		}
	})
}

// A quorum is refused, with the reason.
func TestShardsQuorum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world{t, memory.New(protocol.Features{})}
		client, _ := w.client()
		var bad *holdfast.ArgumentError
		err := shard.New(client, "s", 4).Run(t.Context(), func(context.Context, int) error { return nil })
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "a quorum") {
			t.Errorf("got %v", err)
		}
	})
}
