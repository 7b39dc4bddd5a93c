package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// operations returns all that a client does, each with what must be true when the answer to it was
// lost.
func operations(isQuorum bool) map[string]func(*victimOf) {
	all := map[string]func(*victimOf){
		"Mutex.Lock":       func(v *victimOf) { v.lockLost(v.victim.Mutex(v.name).Lock) },
		"RWMutex.Lock":     func(v *victimOf) { v.lockLost(v.victim.RWMutex(v.name + "rw").Lock) },
		"Campaign":         func(v *victimOf) { v.lockLost(v.victim.Election(v.name + "e").Campaign) },
		"Mutex.TryLock":    func(v *victimOf) { v.tryLost(v.victim.Mutex(v.name).TryLock, v.name) },
		"RWMutex.TryLock":  func(v *victimOf) { v.tryLost(v.victim.RWMutex(v.name).TryLock, v.name) },
		"RWMutex.TryRLock": func(v *victimOf) { v.tryLost(v.victim.RWMutex(v.name).TryRLock, v.name) },
		"TryCampaign":      func(v *victimOf) { v.tryLost(v.victim.Election(v.name).TryCampaign, v.name) },
		"Group.TryLock": func(v *victimOf) {
			names := []string{v.name + "1", v.name + "2"}
			v.tryLost(v.victim.All(names).TryLock, names...)
		},
		"Release":           releaseOnce,
		"Release, hand on":  releaseToWaiter,
		"Release, yield":    yieldHold,
		"entry of an owner": enterTwice,
		"RWMutex.RLock":     readBeside,
		"Downgrade":         downgradeLost,
		"Group.Lock":        lockGroup,
		"Check":             checkLost,
		"renewal":           renewLost,
		"joining the queue": joinQueue,
		"leaving the queue": leaveQueue,
		"Leader":            askLeader,
		"Close":             closeClient,
	}
	if isQuorum {
		return all
	}
	all["Semaphore.Acquire"] = acquirePermits
	all["Semaphore.TryAcquire"] = func(v *victimOf) { v.tryLost(tryPermits(v.victim, v.name, 3, 2), v.name) }
	all["Semaphore, release"] = releasePermits
	all["Resize"] = resizeLost
	all["Latch.Set"] = setLatch
	all["Latch.CountDown"] = countLatchDown
	all["Latch.Count"] = countLatch
	all["Latch.Wait"] = waitForLatch
	return all
}

// lockLost must get what it waits for; others are kept out until it is given back.
func (v *victimOf) lockLost(lock try) {
	lease := v.takeLost(lock)
	name := lease.Name()
	isKeptOut := func(err error) bool { // of another kind it is held as well
		var foreign *holdfast.StoreError
		var none *holdfast.QuorumError
		return errors.Is(err, holdfast.ErrHeld) || errors.As(err, &none) ||
			errors.As(err, &foreign) && foreign.Kind == holdfast.StoreForeign
	}
	_, err := v.other.Mutex(name).TryLock(v.ctx)
	for !isKeptOut(err) && isUnanswered(err) && v.ctx.Err() == nil {
		_, err = v.other.Mutex(name).TryLock(v.ctx)
	}
	if !isKeptOut(err) {
		v.failf("another was answered %v", err)
	}
	v.checkAndRelease(lease)
	v.isFree(name)
}

// tryLost is told that nobody knows, and what it won is taken back.
func (v *victimOf) tryLost(try try, names ...string) {
	var lease *holdfast.Lease
	err := v.withoutAnswer(func() (err error) { lease, err = try(v.ctx); return err })
	if err == nil { // of a harness.Quorum, as many answered as it takes
		v.check(lease.Release())
	} else {
		v.isUnknown(err)
	}
	v.isFree(names...)
}

// isUnknown fails unless an error says that nobody knows what was done.
func (v *victimOf) isUnknown(err error) {
	var failure *holdfast.StoreError
	if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrHeld) ||
		errors.As(err, &failure) && !failure.MayHaveApplied {
		v.failf("it was answered %w", err)
	}
}

func releaseOnce(v *victimOf) {
	lease := v.got(v.victim.Mutex(v.name).Lock(v.ctx))
	v.releaseLost(lease.Release)
	if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
		v.failf("a second release: %v", err)
	}
	v.isFree(v.name)
}

// releaseToWaiter releases while another waits.
func releaseToWaiter(v *victimOf) {
	lease := v.got(v.victim.Mutex(v.name).Lock(v.ctx))
	next := harness.Claim(v.ctx, v.other.Mutex(v.name))
	v.awaitWaiter()
	began := time.Now()
	v.releaseLost(lease.Release)
	v.releaseHandedOver(v.follower(lease, next), began)
}

// follower returns the lease of the next, whose token is larger.
func (v *victimOf) follower(lease *holdfast.Lease, next *harness.Claimant) *holdfast.Lease {
	<-next.Done
	second := v.got(next.Lease, next.Err)
	if second.Token() <= lease.Token() {
		v.failf("token %d after %d", second.Token(), lease.Token())
	}
	return second
}

// yieldHold gives back a hold in the request that asks for the next, as another goroutine of the
// process waits.
func yieldHold(v *victimOf) {
	m := v.victim.Mutex(v.name)
	lease := v.got(m.Lock(v.ctx))
	next := harness.Claim(v.ctx, m)
	pause(20 * time.Millisecond) // longer than a slice
	var second *holdfast.Lease
	v.check(v.withoutAnswer(func() error {
		err := lease.Release()
		if err == nil {
			second = v.follower(lease, next)
		}
		return err
	}))
	v.isHeld(v.other.Mutex(v.name).TryLock)
	v.checkAndRelease(second)
	v.isFree(v.name)
}

func enterTwice(v *victimOf) {
	m := v.victim.Mutex(v.name, holdfast.WithOwner("me"))
	first := v.got(m.Lock(v.ctx))
	v.checkAndRelease(v.takeLost(m.Lock))
	v.check(askUntilAnswered(v.ctx, first.Check))
	v.isHeld(v.other.Mutex(v.name).TryLock)
	v.checkAndRelease(first)
	v.isFree(v.name)
}

func readBeside(v *victimOf) {
	mine := v.takeLost(v.victim.RWMutex(v.name).RLock)
	beside := v.take(v.other.RWMutex(v.name).TryRLock)
	v.isHeld(v.other.RWMutex(v.name).TryLock)
	v.checkAndRelease(beside)
	v.isHeld(v.other.RWMutex(v.name).TryLock)
	v.checkAndRelease(mine)
	v.isFree(v.name)
}

func downgradeLost(v *victimOf) {
	lease := v.got(v.victim.RWMutex(v.name).Lock(v.ctx))
	v.check(v.withoutAnswer(func() error { return lease.Downgrade(v.ctx) }))
	v.checkAndRelease(v.take(v.other.RWMutex(v.name).TryRLock))
	v.isHeld(v.other.RWMutex(v.name).TryLock)
	v.checkAndRelease(lease)
	v.isFree(v.name)
}

func lockGroup(v *victimOf) {
	one, two := v.name+"1", v.name+"2"
	lease := v.takeLost(v.victim.All([]string{one, two}).Lock)
	v.isHeld(v.other.Mutex(one).TryLock)
	v.isHeld(v.other.Mutex(two).TryLock)
	v.checkAndRelease(lease)
	v.isFree(one, two)
}

func checkLost(v *victimOf) {
	lease := v.got(v.victim.Mutex(v.name).Lock(v.ctx))
	err := v.withoutAnswer(func() error { return lease.Check(v.ctx) })
	if err != nil && (!errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrLost)) {
		v.failf("Check: %w", err)
	}
	v.checkAndRelease(lease)
	v.isFree(v.name)
}

func renewLost(v *victimOf) {
	lease := v.got(v.victim.Mutex(v.name, holdfast.WithTTL(6*time.Second)).Lock(v.ctx))
	before := lease.Until()
	v.loseInBackground(func() {})
	for lease.Err() == nil && !lease.Until().After(before) {
		pause(time.Millisecond)
	}
	v.isHeld(v.other.Mutex(v.name).TryLock)
	v.checkAndRelease(lease)
	v.isFree(v.name)
}

// joinQueue stands in the queue without having heard so: once, and is in when its turn comes.
func joinQueue(v *victimOf) {
	lease := v.got(v.other.Mutex(v.name).Lock(v.ctx))
	var next *harness.Claimant
	v.loseInBackground(func() { next = harness.Claim(v.ctx, v.victim.Mutex(v.name)) })
	v.awaitWaiter()
	began := time.Now()
	v.checkAndRelease(lease)
	v.releaseHandedOver(v.follower(lease, next), began)
	v.isFree(v.name)
}

// leaveQueue gives its place up, and the next is in at once.
func leaveQueue(v *victimOf) {
	lease := v.got(v.other.Mutex(v.name).Lock(v.ctx))
	giving, cancel := context.WithCancel(v.ctx)
	defer cancel()
	gone := harness.Claim(giving, v.victim.Mutex(v.name))
	v.awaitWaiter()
	v.loseInBackground(cancel)
	if <-gone.Done; !errors.Is(gone.Err, context.Canceled) {
		v.failf("the wait ended with %v", gone.Err)
	}
	v.checkAndRelease(lease)
	v.isFree(v.name)
}

func askLeader(v *victimOf) {
	lease := v.got(v.other.Election(v.name).Campaign(v.ctx))
	var found holdfast.Leader
	err := v.withoutAnswer(func() (err error) { found, err = v.victim.Election(v.name).Leader(v.ctx); return err })
	if err == nil && found.Token != lease.Token() {
		err = fmt.Errorf("the leader's token is %d, not %d", found.Token, lease.Token())
	} else if errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrNoLeader) {
		err = nil
	}
	v.check(err)
	v.checkAndRelease(lease)
}

func closeClient(v *victimOf) {
	client, closeAll, err := v.b.Route.Open(&holdfast.Config{Prefix: v.b.Prefix}, nil, v.w)
	v.check(err)
	defer func() { _ = closeAll() }()
	v.got(client.Mutex(v.name).Lock(v.ctx))
	v.releaseLost(client.Close)
	v.isFree(v.name)
}

// tryPermits tries to take some of all permits there are.
func tryPermits(c *holdfast.Client, name string, all, some int64) try {
	s := c.Semaphore(name, all)
	return func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, some) }
}

func (v *victimOf) tryPermits(all, some int64) try { return tryPermits(v.other, v.name, all, some) }

// hasPermits fails unless so many permits can be had at once, and no more.
func (v *victimOf) hasPermits(n int64) {
	lease := v.take(v.tryPermits(n, n))
	v.isHeld(v.tryPermits(n, 1))
	v.checkAndRelease(lease)
}

func acquirePermits(v *victimOf) {
	semaphore := v.victim.Semaphore(v.name, 3)
	lease := v.takeLost(func(ctx context.Context) (*holdfast.Lease, error) { return semaphore.Acquire(ctx, 2) })
	third := v.take(v.tryPermits(3, 1))
	v.isHeld(v.tryPermits(3, 1))
	v.checkAndRelease(third)
	v.isHeld(v.tryPermits(3, 2))
	v.checkAndRelease(lease)
	v.hasPermits(3)
}

func releasePermits(v *victimOf) {
	v.releaseLost(v.got(v.victim.Semaphore(v.name, 3).Acquire(v.ctx, 2)).Release)
	v.hasPermits(3)
}

func resizeLost(v *victimOf) {
	lease := v.got(v.other.Semaphore(v.name, 3).Acquire(v.ctx, 2))
	resize := func(ctx context.Context) error { return v.victim.Semaphore(v.name, 5).Resize(ctx, 5) }
	if err := v.withoutAnswer(func() error { return resize(v.ctx) }); err != nil {
		v.isUnknown(err)
		v.check(askUntilAnswered(v.ctx, resize)) // doing it again does no harm
	}
	three := v.take(v.tryPermits(5, 3))
	v.isHeld(v.tryPermits(5, 1))
	v.checkAndRelease(three)
	v.checkAndRelease(lease)
}

// short is how long the latches of these tests stay.
var short = holdfast.WithTTL(10 * time.Second)

func (v *victimOf) checkCount(want int) {
	n := 0
	v.check(askUntilAnswered(v.ctx,
		func(ctx context.Context) (err error) { n, err = v.other.Latch(v.name).Count(ctx); return err }))
	if n != want {
		v.failf("the count is %d, not %d", n, want)
	}
}

func setLatch(v *victimOf) {
	v.check(v.withoutAnswer(func() error { return v.victim.Latch(v.name, short).Set(v.ctx, 3) }))
	v.checkCount(3)
}

func countLatchDown(v *victimOf) {
	v.check(v.other.Latch(v.name, short).Set(v.ctx, 3))
	v.check(v.withoutAnswer(func() error { return v.victim.Latch(v.name, short).CountDown(v.ctx) }))
	v.checkCount(2)
}

func countLatch(v *victimOf) {
	v.check(v.other.Latch(v.name, short).Set(v.ctx, 3))
	n := 0
	err := v.withoutAnswer(func() (err error) { n, err = v.victim.Latch(v.name).Count(v.ctx); return err })
	if err == nil && n != 3 || err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		v.failf("Count: %d, %v", n, err)
	}
	v.checkCount(3)
}

func waitForLatch(v *victimOf) {
	v.check(v.other.Latch(v.name, short).Set(v.ctx, 1))
	done := make(chan error, 1)
	v.loseInBackground(func() { go func() { done <- v.victim.Latch(v.name).Wait(v.ctx) }() })
	v.check(v.other.Latch(v.name, short).CountDown(v.ctx))
	v.check(<-done)
}

// awaitWaiter waits until one waits for the name, as another who tries is told.
func (v *victimOf) awaitWaiter() {
	for v.ctx.Err() == nil {
		var busy *holdfast.HeldError
		lease, err := v.other.Mutex(v.name).TryLock(v.ctx)
		if err == nil {
			v.check(errors.Join(errors.New("nobody held it"), lease.Release()))
		}
		if errors.As(err, &busy) && busy.Waiters == 1 {
			return
		}
		pause(time.Millisecond)
	}
	v.check(errors.New("nobody waits"))
}
