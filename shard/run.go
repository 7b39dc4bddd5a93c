package shard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

// resigned is how long a process leaves a shard to others whose function returned nil.
const resigned = time.Second

// A run is one call of Run: a member.
type run struct {
	*Set
	self owner
	fn   func(ctx context.Context, shard int) error

	work      context.Context // that of the functions
	stop      context.CancelCauseFunc
	functions sync.WaitGroup
	wake      chan struct{} // something has changed that the next round should see

	membership             // of the goroutine of Run alone
	hasOthers  atomic.Bool // other members were there when it looked last

	mu        sync.Mutex
	holdings  map[int]*holding
	barred    map[int]time.Time // until then a shard is not taken
	seen      view
	unsettled bool // there may be shards to take
	planning  bool // a plan is made or carried out
	endPlan   context.CancelFunc
	pause     time.Duration // before the next plan; 0: there is a reason for one at once
	planAt    time.Time
	over      time.Time // since when it has more than its share, and gives back none
	panicked  error
}

// A holding is a shard that this process has.
type holding struct {
	lease  *holdfast.Lease
	end    context.CancelCauseFunc
	wanted bool      // by another process, since the lease began
	waited bool      // by another process, when this one looked last
	ended  time.Time // when its function was told to return, as the shard is to move
}

// isRunning reports whether the shard is RUNNING, and not ENDING.
func (h *holding) isRunning() bool { return h.ended.IsZero() && h.lease.Err() == nil }

// Run takes part until ctx ends: it calls fn for each shard that this process holds, in a goroutine
// of its own, and once more each time that it gets the shard again. The ctx of fn ends when the
// shard is to move (its cause is ErrMoved), when its lease is lost (a *holdfast.LostError), and
// when Run ends. It carries the lease (holdfast.LeaseFrom), with the fencing token. Nobody else
// starts before fn has returned, unless the lease was lost.
//
// Run returns when all its functions have returned and their shards are given back. Its error is
// the cause of the end of ctx, which is context.Canceled unless another one was given, the error of
// fn, as the package says, or that of the lock: see holdfast.RWMutex. An *holdfast.ArgumentError
// says what is wrong with the arguments, or that the processes that came before have another number
// of shards.
func (s *Set) Run(ctx context.Context, fn func(ctx context.Context, shard int) error) error {
	if err := s.check(ctx, "Set.Run"); err != nil {
		return err
	}
	if fn == nil {
		return refuse("Set.Run", holdfast.ArgumentProblem{Argument: "fn", Allowed: "not nil"})
	}
	r := &run{
		Set:       s,
		self:      owner{n: s.n, weight: s.weight, id: rand.Text()},
		fn:        fn,
		wake:      make(chan struct{}, 1),
		holdings:  map[int]*holding{},
		barred:    map[int]time.Time{},
		unsettled: true,
	}
	r.work, r.stop = context.WithCancelCause(ctx)
	err := r.balance(r.work)
	r.stop(err)
	r.leave()
	if r.panicked != nil {
		panic(r.panicked)
	}
	return err
}

// signal has the next round begin now.
func (r *run) signal() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *run) options(self owner) []holdfast.Option {
	return append(slices.Clone(r.lock), holdfast.WithOwner(self.String()), holdfast.WithWanted())
}

// take waits for the lease of a shard, and runs the function under it. It has then moved so
// often, and this member left it behind.
func (r *run) take(ctx context.Context, shard int, moves int64, from string,
	ask func(*holdfast.Mutex, context.Context) (*holdfast.Lease, error)) error {
	self := r.self
	self.number, self.more = moves, from
	lease, err := ask(r.client.Mutex(r.nameOf(shard), r.options(self)...), ctx)
	if err != nil {
		return err
	}
	moved, end := context.WithCancelCause(r.work)
	bound, cancel := lease.Bind(moved)
	h := &holding{lease: lease, end: end}
	r.mu.Lock()
	r.holdings[shard] = h
	r.functions.Add(1)
	r.mu.Unlock()
	r.totals.begin(h)
	done := make(chan struct{})
	go r.watch(bound, shard, h, done)
	go func() {
		defer r.functions.Done()
		err := r.call(bound, shard)
		close(done)
		ended := bound.Err() != nil
		cancel()
		end(nil)
		r.keepForOthers(lease, shard)
		_ = lease.Release() // a failure is the engine's, which goes on, and the observer's
		r.totals.end(h)
		r.finish(shard, h, err, ended)
	}()
	return nil
}

// keepForOthers has a process that leaves keep a shard until another process waits for it, which
// then knows from where it came. It does not wait long.
func (r *run) keepForOthers(lease *holdfast.Lease, shard int) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.work), farewell)
	defer cancel()
	for pause := soon / 2; lease.Err() == nil && r.work.Err() != nil && r.hasOthers.Load(); pause *= 2 {
		info, err := r.client.Inspect(ctx, r.nameOf(shard))
		if err != nil || info.Waiters > 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// call calls the function, unless all is over.
func (r *run) call(ctx context.Context, shard int) (err error) {
	if r.work.Err() != nil {
		return nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("shard: the function of shard %d panicked: %v\n%s", shard, value, debug.Stack())
			r.mu.Lock()
			r.panicked = cmp.Or(r.panicked, err)
			r.mu.Unlock()
			r.stop(err)
		}
	}()
	return r.fn(ctx, shard)
}

// finish notes that a function has returned, and that its shard was given back.
func (r *run) finish(shard int, h *holding, err error, ended bool) {
	expected := ended && (err == nil || errors.Is(err, context.Canceled) || errors.Is(err, ErrMoved) ||
		errors.Is(err, holdfast.ErrLost))
	r.mu.Lock()
	delete(r.holdings, shard)
	switch {
	case expected, !h.ended.IsZero(): // who waited for it may have given up
		r.unsettle()
	case err == nil:
		r.barred[shard] = time.Now().Add(resigned)
		r.unsettle()
	}
	r.mu.Unlock()
	if err != nil && !expected {
		r.stop(err)
	}
	r.signal()
}

// unsettle has the process plan anew, soon. The caller holds the mutex.
func (r *run) unsettle() { r.unsettled, r.pause, r.planAt = true, 0, time.Time{} }

// watch tells the rounds that a shard is wanted, and the logger of a function that goes on although
// its context has ended.
func (r *run) watch(ctx context.Context, shard int, h *holding, done <-chan struct{}) {
	wanted, ended := h.lease.Wanted(), ctx.Done()
	began, pause := time.Now(), time.Until(h.lease.Until())
	var late <-chan time.Time
	for {
		select {
		case <-done:
			return
		case <-wanted:
			wanted = nil
			r.mu.Lock()
			h.wanted = true
			r.mu.Unlock()
			r.signal()
		case <-ended:
			wanted, ended, began, late = nil, nil, time.Now(), time.After(pause)
		case <-late:
			r.logger.Warn("shard: the function goes on although its context has ended", "name", r.name, "shard", shard,
				"for", time.Since(began), "cause", context.Cause(ctx))
			pause *= 2
			late = time.After(pause)
		}
	}
}

// giveBack ends the function of a shard for which another process waits, if this process has more
// than so many. It ends one at a time, but for those that do not end.
func (r *run) giveBack(ctx context.Context, keep int, ttl time.Duration) error {
	waited, wanted := r.toGive(keep, ttl)
	if len(waited) > 0 {
		wanted = waited[:1]
	}
	if err := r.lookForWaiters(ctx, wanted); err != nil { // some may have given up
		return err
	}
	now, _ := r.toGive(keep, ttl)
	switch {
	case len(now) == 0:
	case len(waited) > 0 && now[0] != waited[0]:
		r.signal() // for the next
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		if h := r.holdings[now[0]]; h != nil {
			h.ended = time.Now()
			h.end(ErrMoved)
		}
	}
	return nil
}

// toGive returns the shards that the process may give back now, those that it took last first: for
// which another waited when it looked, and that are wanted since its lease began. There are none if
// it has no more than it keeps, or one is on its way.
func (r *run) toGive(keep int, ttl time.Duration) (waited, wanted []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := 0
	for shard, h := range r.holdings {
		switch {
		case h.isRunning():
			running++
			if h.wanted {
				wanted = append(wanted, shard)
			}
			if h.waited {
				waited = append(waited, shard)
			}
		case time.Since(h.ended) < ttl/3:
			return nil, nil
		}
	}
	if running <= keep {
		return nil, nil
	}
	newest := func(a, b int) int {
		return cmp.Compare(r.holdings[b].lease.Token(), r.holdings[a].lease.Token())
	}
	slices.SortFunc(waited, newest)
	return waited, wanted
}

// lookForWaiters notes for which shards another process waits.
func (r *run) lookForWaiters(ctx context.Context, shards []int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	each(shards, func(i int) {
		info, err := r.client.Inspect(ctx, r.nameOf(i))
		if err != nil {
			cancel(err)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if h := r.holdings[i]; h != nil {
			h.waited = info.Waiters > 0
		}
	})
	return context.Cause(ctx)
}
