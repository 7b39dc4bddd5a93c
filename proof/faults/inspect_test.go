package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// The answers of Inspect under load are compared with what the callers themselves know. Nothing
// fails here, so each knows for certain what it held all the while that an Inspect took, and for
// what it waited.
func TestInspectTellsTheTruth(t *testing.T) {
	for _, topology := range []string{harness.Single, harness.Sentinel, harness.Cluster} {
		t.Run(topology, func(t *testing.T) {
			harness.Long(t)
			t.Parallel()
			truth := newTruth(t, harness.Deploy(t, topology).Under(t, "truth"))
			truth.run(time.Duration(times(t)) * 3 * time.Second)
		})
	}
}

const (
	truthNames   = 6
	truthCallers = 8
	truthPermits = 5
)

// A truth is what all callers know.
type truth struct {
	*testing.T
	bed *harness.Deployment

	mu  sync.Mutex
	now [truthCallers][truthNames]fact

	told, certain atomic.Int64
}

// A fact is what a caller does with a name. Turn grows with each step that the caller makes.
type fact struct {
	turn int
	does doing
	hold *holdfast.Lease // while it holds
}

type doing int

const (
	idle    doing = iota
	calling       // it may wait, or hold, or neither
	waiting       // it stands in the queue, or was handed the name a moment ago
	holding
)

func newTruth(t *testing.T, b *harness.Deployment) *truth { return &truth{T: t, bed: b} }

func (u *truth) run(d time.Duration) {
	ctx, cancel := context.WithTimeout(u.Context(), d)
	defer cancel()
	var all sync.WaitGroup
	for caller := range truthCallers {
		name := atomic.Int64{} // for which it calls just now
		observer := harness.Observer(func(event holdfast.Event) {
			if event.Kind == holdfast.EventWaiting {
				u.step(caller, int(name.Load()), waiting, nil)
			}
		})
		client := u.bed.Client(u.T, holdfast.Config{Label: fmt.Sprint("caller ", caller), Observer: observer}, nil)
		all.Go(func() {
			for ctx.Err() == nil {
				n := rand.IntN(truthNames)
				name.Store(int64(n))
				u.step(caller, n, calling, nil)
				lease, err := u.lock(ctx, client, n)
				if err == nil {
					u.step(caller, n, holding, lease)
					pause(time.Duration(rand.IntN(4_000)) * time.Microsecond)
					u.step(caller, n, calling, nil)
					err = lease.Release()
				}
				if err != nil {
					u.gaveUp(err)
					return // what it won, or had, may be there for a while
				}
				u.step(caller, n, idle, nil)
			}
		})
	}
	for range 3 {
		client := u.bed.Client(u.T, holdfast.Config{}, nil)
		all.Go(func() {
			for ctx.Err() == nil {
				u.inspect(ctx, client, rand.IntN(truthNames))
			}
		})
	}
	all.Wait()
	u.Logf("%d inspections; %d holds and places of which it was certain that they were there", u.told.Load(), u.certain.Load())
	if u.certain.Load() == 0 {
		u.Error("nothing was certain")
	}
}

// gaveUp fails unless an error is of the end, or of a machine that stood still.
func (u *truth) gaveUp(err error) {
	for _, known := range []error{context.DeadlineExceeded, holdfast.ErrLost, holdfast.ErrUncertain, holdfast.ErrUnavailable} {
		if errors.Is(err, known) {
			return
		}
	}
	u.Error(err)
}

// lock takes a name: two are mutexes, two read-write locks and two semaphores.
func (u *truth) lock(ctx context.Context, c *holdfast.Client, n int) (*holdfast.Lease, error) {
	name := fmt.Sprint("name ", n)
	switch {
	case n%3 == 0:
		return c.Mutex(name).Lock(ctx)
	case n%3 == 1 && rand.IntN(3) == 0:
		return c.RWMutex(name).Lock(ctx)
	case n%3 == 1:
		return c.RWMutex(name).RLock(ctx)
	}
	return c.Semaphore(name, truthPermits).Acquire(ctx, 1+rand.Int64N(truthPermits))
}

func (u *truth) step(caller, name int, does doing, lease *holdfast.Lease) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now[caller][name] = fact{u.now[caller][name].turn + 1, does, lease}
}

// of is what all callers do with a name.
func (u *truth) of(name int) (facts [truthCallers]fact) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for caller := range facts {
		facts[caller] = u.now[caller][name]
	}
	return facts
}

// inspect compares what is told with what stayed the same meanwhile.
func (u *truth) inspect(ctx context.Context, c *holdfast.Client, name int) {
	before := u.of(name)
	info, err := c.Inspect(ctx, fmt.Sprint("name ", name))
	after := u.of(name)
	if err != nil {
		u.gaveUp(err)
		return
	}
	u.told.Add(1)
	holds, places := map[string]lockinfo.Hold{}, map[string]lockinfo.Waiter{}
	taken := int64(0)
	for _, hold := range info.Holds {
		holds[hold.Label] = hold
		taken += hold.Permits
	}
	for i, w := range info.Queue {
		places[w.Label] = w
		if w.Place != i+1 || w.Alive == lockinfo.AliveNo || w.Since.After(info.At) {
			u.Errorf("place %d at %v: %+v", i+1, info.At, w)
		}
	}
	for caller := range before {
		label := fmt.Sprint("caller ", caller)
		hold, holds := holds[label]
		_, waits := places[label]
		lease := after[caller].hold
		if before[caller] != after[caller] || lease != nil && lease.Err() != nil {
			continue
		}
		switch after[caller].does {
		case idle:
			if holds || waits {
				u.Errorf("%s does nothing, and is told in %+v", label, info)
			}
		case waiting:
			if !holds && !waits {
				u.Errorf("%s waits, and is not told in %+v", label, info)
			}
			u.certain.Add(1)
		case holding:
			right := holds && !waits && hold.Token <= lease.Token() && lease.Token() <= hold.LastToken && hold.Remaining > 0 && !hold.Since.After(info.At) &&
				(hold.State == lockinfo.StateHeld || hold.State == lockinfo.StateHandedOver) // a message may have handed it over
			if !right || (hold.Mode == lockinfo.ModeExclusive || hold.Mode == lockinfo.ModeWrites) && len(info.Holds) != 1 {
				u.Errorf("%s holds with token %d, which is told as %+v", label, lease.Token(), info)
			}
			u.certain.Add(1)
		}
	}
	if taken != info.Taken || taken > truthPermits || info.Kind == "semaphore" && info.Permits != truthPermits || info.Holders != len(info.Holds) ||
		info.Waiters != len(info.Queue) {
		u.Errorf("%d permits are taken by %+v", taken, info)
	}
}
