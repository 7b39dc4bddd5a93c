package shard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

const (
	patience = time.Second            // after a request that the server did not answer
	soon     = 20 * time.Millisecond  // after a hold should be over
	goodbye  = 2 * time.Second        // for the words of a process that leaves
	glance   = 50 * time.Millisecond  // between its first looks whether others are there
	reminder = 250 * time.Millisecond // after which the holders of shards that are wanted are told once more
	farewell = time.Second            // for others to wait for the shards of a process that leaves
	attempts = 10                     // to see the whole list of members, while it changes
	firstTTL = 100 * time.Millisecond // the least TTL that there is
)

// A membership is the hold of a member on the name of the set.
type membership struct {
	lease    *holdfast.Lease
	first    int64 // the token of its first hold
	number   int   // of its holds
	known    []string
	partial  int  // so many lists in a row had no room for all members
	accepted bool // a list showed that its number of shards is that of the others
}

// balance has the process have its share, until ctx ends.
func (r *run) balance(ctx context.Context) error {
	for {
		wait, err := r.round(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, holdfast.ErrUnavailable):
			wait = patience
		case err != nil:
			return err
		}
		wanted := r.lease.Wanted()
		if err != nil { // also of join, which opens another channel
			wanted = nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-wanted:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// round looks at the members once, and does what follows from them. It returns how long nothing is
// to be done, unless there is a signal.
func (r *run) round(ctx context.Context) (time.Duration, error) {
	if err := r.join(ctx); err != nil {
		return 0, err
	}
	info, err := r.client.Inspect(ctx, r.name)
	if err != nil {
		return 0, err
	}
	if info.Holders > len(info.Holds) { // holds that are renewed count twice for a moment
		if r.partial++; r.partial > attempts && !r.accepted {
			return 0, fmt.Errorf("shard: more than %d processes take part in %q", maxMembers, r.name)
		}
		return firstTTL, nil
	}
	r.partial = 0
	members, err := r.admit(membersOf(info))
	if err != nil {
		return 0, err
	}
	at := slices.IndexFunc(members, func(m member) bool { return m.id == r.self.id })
	if at < 0 { // its hold is over, and it does not know yet
		_ = r.lease.Release()
		return 0, nil
	}
	ttl := members[at].ttl
	if ids := idsOf(members); !slices.Equal(ids, r.known) {
		r.known = ids
		r.hasOthers.Store(len(ids) > 1)
		r.replan()
	}
	mine := sharesOf(r.n, members, nil, nil)[r.self.id]
	if err := r.giveBack(ctx, mine.floor, ttl); err != nil {
		return 0, err
	}
	if r.isOver(mine.ceiling, ttl) {
		_, _ = r.client.Ask(ctx, r.name) // a failure costs a third of a TTL
	}
	wait := min(ttl/3, r.planSoon(view{info.At, ttl, members}))
	for _, m := range members {
		wait = min(wait, m.left+soon)
	}
	return max(wait, time.Millisecond), nil
}

// isOver reports whether the process has had more than its share for a third of the TTL, and gives
// back none. The others may have planned by what they read before it got the last of them.
func (r *run) isOver(ceiling int, ttl time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	running, gives, now := 0, false, time.Now()
	for _, h := range r.holdings {
		if h.isRunning() {
			running++
		}
		gives = gives || now.Sub(h.ended) < ttl/3
	}
	switch {
	case running <= ceiling || gives:
		r.over = time.Time{}
	case r.over.IsZero():
		r.over = now
	case now.Sub(r.over) >= ttl/3:
		r.over = now
		return true
	}
	return false
}

func idsOf(members []member) (ids []string) {
	for _, m := range members {
		ids = append(ids, m.id)
	}
	slices.Sort(ids)
	return ids
}

// join makes the process a member, or renews its hold if another process told it to look. The new
// hold is there before the old one goes, as a process that is no member loses its shards.
func (r *run) join(ctx context.Context) error {
	lost := r.lease == nil || r.lease.Err() != nil
	told := false
	if !lost {
		select {
		case <-r.lease.Wanted():
			told = true
		default:
			return nil
		}
	}
	self := r.self
	self.number, self.more = r.first, strconv.Itoa(r.number)
	lease, err := r.client.RWMutex(r.name, r.options(self)...).TryRLock(ctx)
	if err != nil {
		return err
	}
	if r.first == 0 {
		r.first = lease.Token()
	}
	if r.lease != nil {
		_ = r.lease.Release() // it ends with its TTL, and changes nothing until then
	}
	r.lease = lease
	r.number++
	if told || lost {
		r.lookAnew()
	}
	return nil
}

// lookAnew has the process look for shards to take, and who waits for its own: a lease does not
// tell of those who waited for the one before it already, nor twice. A plan that is under way goes
// on: others see that it waits.
func (r *run) lookAnew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettle()
	for _, h := range r.holdings {
		h.wanted = true
	}
}

// admit returns the members that count. Those that came before decide how many shards there are,
// and other programs that came before have the name.
func (r *run) admit(members []member, foreign string) ([]member, error) {
	if foreign != "" && !r.accepted {
		return nil, fmt.Errorf("shard: %q is in use as an RWMutex, by %q", r.name, foreign)
	}
	for _, m := range members {
		if m.id == r.self.id {
			break
		}
		if m.n != r.n && !r.accepted {
			return nil, refuse("Set.Run", holdfast.ArgumentProblem{Argument: "n", Value: r.n,
				Allowed: fmt.Sprintf("%d, as %q has it for %q", m.n, m.label, r.name)})
		}
	}
	r.accepted = true
	return slices.DeleteFunc(members, func(m member) bool { return m.n != r.n }), nil
}

// A view is what a round saw.
type view struct {
	at      time.Time // by the clock of the server
	ttl     time.Duration
	members []member
}

// replan has the process plan anew. What it waits for now was planned for other members.
func (r *run) replan() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsettle()
	if r.endPlan != nil {
		r.endPlan()
	}
}

// planSoon begins a plan if there may be shards to take. It returns when it is to be called again.
func (r *run) planSoon(seen view) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = seen
	running := 0
	for _, h := range r.holdings {
		if h.isRunning() {
			running++
		}
	}
	if running >= sharesOf(r.n, seen.members, nil, nil)[r.self.id].ceiling {
		r.unsettled = false
	}
	if !r.unsettled || r.planning {
		return seen.ttl
	}
	if wait := time.Until(r.planAt); wait > 0 {
		return wait
	}
	kick := r.pause >= seen.ttl/6
	r.unsettled, r.planning, r.pause = false, true, max(soon, min(2*r.pause, seen.ttl/3))
	r.functions.Go(func() {
		defer r.signal()
		settled := r.carryOut(kick)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unsettled, r.planning = r.unsettled || !settled, false
		if r.pause > 0 { // else something happened meanwhile
			r.planAt = time.Now().Add(r.pause)
		}
	})
	return seen.ttl
}

// carryOut makes a plan and takes its shards. It reports whether there is nothing more to take. If
// others leave shards free for long, kick has them look.
func (r *run) carryOut(kick bool) (settled bool) {
	holds, err := r.lookAll(r.work)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithCancel(r.work)
	defer cancel()
	s, p := r.plan(holds, cancel)
	bound := max(s.ttl/3, patience)
	stuck := time.AfterFunc(bound, cancel)
	defer stuck.Stop()
	if p.idle && kick {
		_, _ = r.client.Ask(ctx, r.name)
	}
	var failed atomic.Int64
	take := func(i int, from string, moves int64) {
		ask := (*holdfast.Mutex).Lock
		if s.holds[i].Owner == "" { // it is free, or another member was faster
			ask = (*holdfast.Mutex).TryLock
		}
		if r.take(ctx, i, moves, from, ask) != nil {
			failed.Add(1)
			return
		}
		stuck.Reset(bound)
	}
	var all sync.WaitGroup
	all.Go(func() {
		each(p.free, func(i int) { take(i, s.owners[i].id, s.moves(i)+int64(min(1, len(s.owners[i].id)))) })
	})
	planned := len(p.free)
	if len(p.pulls) > 0 {
		late := time.AfterFunc(reminder, func() { r.remind(ctx, p, cancel) })
		defer late.Stop()
	}
	for _, shards := range p.pulls {
		planned += len(shards)
		all.Go(func() {
			each(shards, func(i int) { take(i, nobody, s.moves(i)+min(1, s.moves(i))) })
		})
	}
	all.Wait()
	return !p.idle && planned == p.need && failed.Load() == 0 && !r.hasBarred()
}

// remind tells the holders of shards that are wanted once more, as a lease tells that only once.
// It ends a plan if another one would be made now: others were faster, and what it waits for may
// stay where it is.
func (r *run) remind(ctx context.Context, p plan, end context.CancelFunc) {
	_, _ = r.client.Ask(ctx, r.name)
	holds, err := r.lookAll(ctx)
	if err != nil {
		return
	}
	_, now := r.plan(holds, end)
	stale := now.need == 0 || len(now.free) > 0
	for from, shards := range now.pulls {
		stale = stale || slices.ContainsFunc(shards, func(i int) bool { return !slices.Contains(p.pulls[from], i) })
	}
	if stale {
		end()
	}
}

// plan makes the plan of this process for the members that it saw last. Others that come end it.
func (r *run) plan(holds []lockinfo.Hold, end context.CancelFunc) (*snapshot, plan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endPlan = end
	has, barred := map[int]bool{}, map[int]bool{}
	for i, h := range r.holdings {
		// One that is on its way counts, or the process would take another one in its place.
		has[i], barred[i] = h.lease.Err() == nil, true
	}
	for i, until := range r.barred {
		if barred[i] = time.Now().Before(until); !barred[i] {
			delete(r.barred, i)
		}
	}
	s := newSnapshot(r.self.id, r.seen, holds, has, barred)
	return s, s.planFor(r.self.id)
}

// hasBarred reports whether there are shards that the process may take later.
func (r *run) hasBarred() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.barred) > 0
}

// leave ends the membership and tells the others, which take the shards as the functions return.
func (r *run) leave() {
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.work))
	defer cancel()
	if r.lease != nil && r.lease.Release() == nil {
		ctx, cancel := context.WithTimeout(ctx, goodbye)
		_, _ = r.client.Ask(ctx, r.name) // without it they look a third of a TTL later
		cancel()
	}
	var looks sync.WaitGroup
	looks.Go(func() { r.lookForOthers(ctx) })
	r.functions.Wait()
	cancel()
	looks.Wait()
}

// lookForOthers notes when no other member is left: others may leave at the same time.
func (r *run) lookForOthers(ctx context.Context) {
	for pause := glance; r.hasOthers.Load(); pause = min(2*pause, farewell/2) {
		if info, err := r.client.Inspect(ctx, r.name); err == nil {
			members, _ := membersOf(info)
			r.hasOthers.Store(len(members) > 0)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
