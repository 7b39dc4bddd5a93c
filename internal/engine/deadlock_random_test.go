package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A counter counts the inspections of all walks.
type counter struct {
	protocol.Protocol
	inspections *atomic.Int64
}

func (c counter) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	c.inspections.Add(1)
	return c.Protocol.Inspect(ctx, name, page)
}

// An orderer is a caller that locks several names, one under the other, again and again.
type orderer struct {
	*crowd
	engine *engine.Engine
	label  string
	random *rand.Rand

	// Guarded by the mutex of the crowd.
	holds map[string]bool
	waits string // the name that it waits for, or waited for when a deadlock ended that
}

// A crowd is orderers in several processes.
type crowd struct {
	*testing.T
	sorted bool // all lock the names in one order

	mu        sync.Mutex
	orderers  map[string]*orderer
	deadlocks int
}

// run makes every orderer lock names so often, and returns how often walks inspected a name.
func (c *crowd) run(server *memory.Server, seed uint64, processes, each int, times int64) int64 {
	var inspections atomic.Int64
	var all sync.WaitGroup
	c.orderers = make(map[string]*orderer)
	for p := range processes {
		e := newEngine(counter{server.Connect("test"), &inspections})
		c.Cleanup(func() { _ = e.Close() })
		for i := range each {
			o := &orderer{crowd: c, engine: e, label: fmt.Sprint(p, "/", i),
				random: rand.New(rand.NewPCG(seed, uint64(p*each+i))), holds: make(map[string]bool)}
			c.orderers[o.label] = o
		}
	}
	for _, o := range c.orderers {
		all.Go(func() {
			for range times {
				o.lockSome()
			}
		})
	}
	all.Wait()
	return inspections.Load()
}

// lockSome locks two to four names, works, and gives them back.
func (o *orderer) lockSome() {
	names := o.random.Perm(8)[:2+o.random.IntN(3)]
	if o.sorted {
		slices.Sort(names)
	}
	ctx, held := o.Context(), []*engine.Lease(nil)
	for _, n := range names {
		lease, err := o.lock(ctx, name(n))
		if err != nil {
			break
		}
		held, ctx = append(held, lease), lease.Context()
		<-time.After(time.Duration(o.random.IntN(2000)) * time.Millisecond)
	}
	if len(held) == len(names) {
		<-time.After(time.Duration(o.random.IntN(3000)) * time.Millisecond)
	}
	o.mu.Lock()
	o.holds, o.waits = make(map[string]bool), ""
	o.mu.Unlock()
	for _, lease := range slices.Backward(held) {
		if err := lease.Release(); err != nil {
			o.Errorf("%s: release of %q: %v", o.label, lease.Name(), err)
		}
	}
}

// lock locks a name, which others read or write. The error is that of a deadlock.
func (o *orderer) lock(ctx context.Context, of string) (*engine.Lease, error) {
	o.mu.Lock()
	o.waits = of
	o.mu.Unlock()
	spec := protocol.Spec{Name: of, Kind: protocol.ReadWrite, Shared: o.random.IntN(3) == 0, Label: o.label}
	lease, err := o.engine.NewLock(spec, engine.Options{TTL: 2 * time.Second, DeadlockCheck: true}).Acquire(ctx)
	o.mu.Lock()
	defer o.mu.Unlock()
	var cycle *deadlock.Cycle
	switch {
	case err == nil:
		o.holds[of], o.waits = true, ""
	case errors.As(err, &cycle):
		o.deadlocks++
		o.checkTrue(cycle)
	default:
		o.Errorf("%s: lock of %q: %v", o.label, of, err)
	}
	return lease, err
}

// checkTrue fails unless the members of a cycle hold and wait for what it says. None of them can go
// on before this one releases, unless it is the victim of another cycle at the same time.
func (o *orderer) checkTrue(found *deadlock.Cycle) {
	if found.Members[0].Place.Party.Label != o.label {
		o.Errorf("the victim is %q, and %q is told", found.Members[0].Place.Party.Label, o.label)
	}
	for _, m := range found.Members {
		other := o.orderers[m.Place.Party.Label]
		if !other.holds[m.Holds] || other.waits != m.Waits {
			o.Errorf("%q holds %v and waits for %q, and is told to hold %q and to wait for %q", other.label,
				other.holds, other.waits, m.Holds, m.Waits)
		}
	}
}

// Nobody ends where all lock the names in one order, however long they wait.
func TestDeadlockIsNotSeenInRandomOrders(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		c := &crowd{T: t, sorted: true}
		const processes, each = 4, 5
		times := int64(50) // 1,000 orders
		if os.Getenv("HOLDFAST_PROOF") == "1" {
			times = 500
		}
		inspections := c.run(server, 1, processes, each, times)
		t.Logf("%d lock orders, %d inspections, %d deadlocks", processes*each*times, inspections, c.deadlocks)
		if inspections < processes*each*times/2 {
			t.Error("nobody looked")
		}
		if c.deadlocks > 0 {
			t.Errorf("%d deadlocks were told", c.deadlocks)
		}
	})
}

// Everybody goes on where the names are locked in any order, and every cycle that is told is one.
func TestDeadlockEndsEveryRandomCycle(t *testing.T) {
	for seed := range uint64(5) {
		runBubble(t, fmt.Sprint(seed), func(t *testing.T, server *memory.Server) {
			c := &crowd{T: t}
			if c.run(server, seed, 3, 3, 60); c.deadlocks == 0 {
				t.Error("no deadlock was told")
			}
		})
	}
}
