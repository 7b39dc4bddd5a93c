package quorum

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The verdict of Inspect under load is compared with what the callers themselves know. Nothing
// fails here, so each knows for certain what it held all the while that an Inspect took.
func TestInspectTellsTheTruth(t *testing.T) {
	u := &truth{rig: newRig(t, 5)}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for caller := range truthCallers {
		w := u.client(holdfast.Config{Label: fmt.Sprint("caller ", caller)}, nil)
		all.Go(func() {
			for ctx.Err() == nil && u.use(w, caller, rand.IntN(truthNames)) {
			}
		})
	}
	for range 3 {
		inspector := u.client(holdfast.Config{}, nil)
		all.Go(func() {
			for ctx.Err() == nil {
				u.inspect(ctx, inspector.Client, rand.IntN(truthNames))
			}
		})
	}
	all.Wait()
	t.Logf("told of %d holds for certain, and of none %d times; %v", u.held.Load(), u.idle.Load(), u.check())
	if u.held.Load() == 0 || u.idle.Load() == 0 {
		t.Error("nothing was certain")
	}
}

const (
	truthCallers = 6
	truthNames   = 4
)

type truth struct {
	*rig

	mu  sync.Mutex
	now [truthCallers][truthNames]claim

	held, idle atomic.Int64 // of how many callers it was certain, each time
}

// A claim is what a caller knows of a name: the lease that it holds, if it does. Turn grows with
// each step.
type claim struct {
	turn  int
	busy  bool // a call is under way: it may hold or not
	lease *holdfast.Lease
}

func (u *truth) step(caller, name int, busy bool, lease *holdfast.Lease) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.now[caller][name] = claim{u.now[caller][name].turn + 1, busy, lease}
}

func (u *truth) of(name int) (claims [truthCallers]claim) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for caller := range claims {
		claims[caller] = u.now[caller][name]
	}
	return claims
}

// use locks and releases a name. After a failure it returns false: what it won may be there for a
// while.
func (u *truth) use(w *worker, caller, name int) bool {
	u.step(caller, name, true, nil)
	h, err := w.lock(fmt.Sprint("name ", name), time.Second)
	if err != nil {
		return false
	}
	u.step(caller, name, false, h.Lease)
	_ = h.Keep(rand.N(20 * time.Millisecond))
	u.step(caller, name, true, nil)
	if h.GiveBack(releaseLimit) != nil {
		return false
	}
	u.step(caller, name, false, nil)
	return true
}

// inspect compares what is told with what stayed the same meanwhile.
func (u *truth) inspect(ctx context.Context, c *holdfast.Client, name int) {
	before := u.of(name)
	info, err := c.Inspect(ctx, fmt.Sprint("name ", name))
	after := u.of(name)
	silent := func(m lockinfo.Master) bool { return m.Err != nil || !m.Counts }
	if err != nil || slices.ContainsFunc(info.Masters, silent) {
		return // a machine stood still
	}
	for caller, claim := range before {
		if claim == after[caller] && !claim.busy {
			label := fmt.Sprint("caller ", caller)
			told := slices.IndexFunc(info.Holds, func(h lockinfo.Hold) bool { return h.Label == label })
			u.compare(info, claim.lease, told)
		}
	}
}

// compare compares the hold that is told of one caller, -1: none, with the lease that it has; nil:
// it has none.
func (u *truth) compare(info lockinfo.Info, lease *holdfast.Lease, told int) {
	switch {
	case lease == nil && told >= 0:
		u.Errorf("a caller that holds nothing is told as %+v", info.Holds[told])
	case lease == nil:
		u.idle.Add(1)
	case lease.Err() != nil:
	case told < 0 || info.State() != lockinfo.StateHeld || len(info.Holds) != 1 ||
		info.Holds[told].Token > lease.Token() || lease.Token() > info.Holds[told].LastToken:
		u.Errorf("a hold with token %d is told as %+v", lease.Token(), info)
	default:
		u.held.Add(1)
	}
}
