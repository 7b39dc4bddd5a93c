package faults

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

type operation = func(context.Context, *victimOf) error

// operations returns all that a client does, each with what must be true when the answer to it was
// lost.
func operations(isQuorum bool) map[string]operation {
	all := map[string]operation{
		"Mutex.Lock": func(ctx context.Context,
			v *victimOf) error {
			return v.lockLost(ctx, v.victim.Mutex(v.name).Lock)
		},
		"RWMutex.Lock": func(ctx context.Context, v *victimOf) error {
			return v.lockLost(ctx, v.victim.RWMutex(v.name+"rw").Lock)
		},
		"Campaign": func(ctx context.Context, v *victimOf) error {
			return v.lockLost(ctx, v.victim.Election(v.name+"e").Campaign)
		},
		"Mutex.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.tryLost(ctx, v.victim.Mutex(v.name).TryLock, v.name)
		},
		"RWMutex.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.tryLost(ctx, v.victim.RWMutex(v.name).TryLock, v.name)
		},
		"RWMutex.TryRLock": func(ctx context.Context, v *victimOf) error {
			return v.tryLost(ctx, v.victim.RWMutex(v.name).TryRLock, v.name)
		},
		"TryCampaign": func(ctx context.Context, v *victimOf) error {
			return v.tryLost(ctx, v.victim.Election(v.name).TryCampaign, v.name)
		},
		"Group.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.tryLost(ctx, v.victim.All([]string{v.name + "1", v.name + "2"}).TryLock, v.name+"1", v.name+"2")
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
	all["Semaphore.TryAcquire"] = func(ctx context.Context, v *victimOf) error {
		return v.tryLost(ctx, func(ctx context.Context) (*holdfast.Lease, error) {
			return v.victim.Semaphore(v.name, 3).TryAcquire(ctx, 2)
		}, v.name)
	}
	all["Semaphore, release"] = releasePermits
	all["Resize"] = resizeLost
	all["Latch.Set"] = setLatch
	all["Latch.CountDown"] = countLatchDown
	all["Latch.Count"] = countLatch
	all["Latch.Wait"] = waitForLatch
	return all
}

// lockLost must get what it waits for; others are kept out until it is given back.
func (v *victimOf) lockLost(ctx context.Context, lock func(context.Context) (*holdfast.Lease, error)) error {
	lease, err := v.takeLost(ctx, lock)
	if err != nil {
		return err
	}
	name := lease.Name()
	// Of another kind it is held as well.
	_, err = v.other.Mutex(name).TryLock(ctx)
	for isUnanswered(err) && !isQuorumError(err) && ctx.Err() == nil {
		_, err = v.other.Mutex(name).TryLock(ctx)
	}
	var foreign *holdfast.StoreError
	if !errors.Is(err, holdfast.ErrHeld) && (!errors.As(err, &foreign) || foreign.Kind != holdfast.StoreForeign) &&
		!isQuorumError(err) {
		return fmt.Errorf("another was answered %w", orNilError(err))
	}
	return errors.Join(checkAndRelease(ctx, lease), v.isFree(ctx, name))
}

func isQuorumError(err error) bool {
	var none *holdfast.QuorumError
	return errors.As(err, &none)
}

// takeLost takes something, and the answer is lost.
func (v *victimOf) takeLost(ctx context.Context, take try) (lease *holdfast.Lease, err error) {
	_ = v.withoutAnswer(func() error { lease, err = take(ctx); return nil })
	return lease, err
}

// tryLost is told that nobody knows, and what it won is taken back.
func (v *victimOf) tryLost(ctx context.Context, try try, names ...string) error {
	if err := isUnknown(v.takeLost(ctx, try)); err != nil {
		return err
	}
	for _, name := range names {
		if err := v.isFree(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// releaseLost gives back without an answer. The release is sent again, and finds nothing: nobody
// knows whether the first request gave back. A majority of a harness.Quorum may know.
func (v *victimOf) releaseLost(f func() error) error {
	err := v.withoutAnswer(f)
	if errors.Is(err, holdfast.ErrUncertain) || err == nil && v.b.Topology == harness.Quorum {
		return nil
	}
	return fmt.Errorf("a release whose answer was lost: %w", orNilError(err))
}

func releaseOnce(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	if err := v.releaseLost(func() error { return lease.Release() }); err != nil {
		return err
	}
	if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
		return fmt.Errorf("a second release: %w", orNilError(err))
	}
	return v.isFree(ctx, v.name)
}

// releaseToWaiter releases while another waits.
func releaseToWaiter(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	next := goLater(func() (*holdfast.Lease, error) { return v.other.Mutex(v.name).Lock(ctx) })
	if err := v.awaitWaiters(ctx, 1); err != nil {
		return err
	}
	began := time.Now()
	if err := v.releaseLost(func() error { return lease.Release() }); err != nil {
		return err
	}
	second, err := next()
	if err != nil {
		return err
	}
	if second.Token() <= lease.Token() {
		return fmt.Errorf("token %d after %d", second.Token(), lease.Token())
	}
	return releaseHandedOver(ctx, second, began)
}

// yieldHold gives back a hold in the request that asks for the next, as another goroutine of the
// process waits.
func yieldHold(ctx context.Context, v *victimOf) error {
	m := v.victim.Mutex(v.name)
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	entered := make(chan struct{})
	next := goLater(func() (*holdfast.Lease, error) { close(entered); return m.Lock(ctx) })
	<-entered
	pause(10 * time.Millisecond) // longer than a slice
	v.loseAnswers()
	if err := lease.Release(); err != nil {
		return err
	}
	second, err := next()
	v.endLosses()
	if err != nil {
		return err
	}
	if second.Token() <= lease.Token() {
		return fmt.Errorf("token %d after %d", second.Token(), lease.Token())
	}
	return errors.Join(isHeld(ctx, v.other.Mutex(v.name).TryLock), checkAndRelease(ctx, second), v.isFree(ctx, v.name))
}

func enterTwice(ctx context.Context, v *victimOf) error {
	m := v.victim.Mutex(v.name, holdfast.WithOwner("me"))
	first, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	second, err := v.takeLost(ctx, m.Lock)
	if err != nil {
		return err
	}
	return errors.Join(checkAndRelease(ctx, second), askUntilAnswered(ctx, first.Check),
		isHeld(ctx, v.other.Mutex(v.name).TryLock), checkAndRelease(ctx, first), v.isFree(ctx, v.name))
}

func readBeside(ctx context.Context, v *victimOf) error {
	mine, err := v.takeLost(ctx, v.victim.RWMutex(v.name).RLock)
	if err != nil {
		return err
	}
	beside, err := tryUntilGranted(ctx, v.other.RWMutex(v.name).TryRLock)
	if err != nil {
		return fmt.Errorf("another reader: %w", err)
	}
	return errors.Join(isHeld(ctx, v.other.RWMutex(v.name).TryLock), checkAndRelease(ctx, beside),
		isHeld(ctx, v.other.RWMutex(v.name).TryLock),
		checkAndRelease(ctx, mine), v.isFree(ctx, v.name))
}

func downgradeLost(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.RWMutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	if err := v.withoutAnswer(func() error { return lease.Downgrade(ctx) }); err != nil {
		return err
	}
	beside, err := tryUntilGranted(ctx, v.other.RWMutex(v.name).TryRLock)
	if err != nil {
		return fmt.Errorf("a reader: %w", err)
	}
	return errors.Join(checkAndRelease(ctx, beside), isHeld(ctx, v.other.RWMutex(v.name).TryLock),
		checkAndRelease(ctx, lease), v.isFree(ctx, v.name))
}

func lockGroup(ctx context.Context, v *victimOf) error {
	one, two := v.name+"1", v.name+"2"
	lease, err := v.takeLost(ctx, v.victim.All([]string{one, two}).Lock)
	if err != nil {
		return err
	}
	return errors.Join(isHeld(ctx, v.other.Mutex(one).TryLock), isHeld(ctx, v.other.Mutex(two).TryLock),
		checkAndRelease(ctx, lease), v.isFree(ctx, one), v.isFree(ctx, two))
}

func checkLost(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	err = v.withoutAnswer(func() error { return lease.Check(ctx) })
	if err != nil && (!errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrLost)) {
		return fmt.Errorf("Check: %w", err)
	}
	return errors.Join(checkAndRelease(ctx, lease), v.isFree(ctx, v.name))
}

func renewLost(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name, holdfast.WithTTL(6*time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	before := lease.Until()
	v.loseAnswers()
	err = v.awaitLoss(ctx)
	v.endLosses()
	for err == nil && lease.Err() == nil && !lease.Until().After(before) {
		pause(time.Millisecond)
	}
	return errors.Join(err, isHeld(ctx, v.other.Mutex(v.name).TryLock), checkAndRelease(ctx, lease),
		v.isFree(ctx, v.name))
}

// joinQueue stands in the queue without having heard so: once, and is in when its turn comes.
func joinQueue(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	v.loseAnswers()
	next := goLater(func() (*holdfast.Lease, error) { return v.victim.Mutex(v.name).Lock(ctx) })
	err = errors.Join(v.awaitLoss(ctx), v.awaitWaiters(ctx, 1))
	v.endLosses()
	began := time.Now()
	if err := errors.Join(err, checkAndRelease(ctx, lease)); err != nil {
		return err
	}
	mine, err := next()
	if err != nil {
		return err
	}
	return errors.Join(releaseHandedOver(ctx, mine, began), v.isFree(ctx, v.name))
}

// leaveQueue gives its place up, and the next is in at once.
func leaveQueue(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	giving, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := goLater(func() (*holdfast.Lease, error) { return v.victim.Mutex(v.name).Lock(giving) })
	if err := v.awaitWaiters(ctx, 1); err != nil {
		return err
	}
	v.loseAnswers()
	cancel()
	_, err = gone()
	fails := v.awaitLoss(ctx)
	v.endLosses()
	if !errors.Is(err, context.Canceled) || fails != nil {
		return errors.Join(fmt.Errorf("the wait ended with %w", orNilError(err)), fails)
	}
	return errors.Join(checkAndRelease(ctx, lease), v.isFree(ctx, v.name))
}

func askLeader(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Election(v.name).Campaign(ctx)
	if err != nil {
		return err
	}
	var found holdfast.Leader
	err = v.withoutAnswer(func() (err error) { found, err = v.victim.Election(v.name).Leader(ctx); return err })
	if err == nil && found.Token != lease.Token() {
		err = fmt.Errorf("the leader's token is %d, not %d", found.Token, lease.Token())
	} else if errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrNoLeader) {
		err = nil
	}
	return errors.Join(err, checkAndRelease(ctx, lease))
}

func closeClient(ctx context.Context, v *victimOf) error {
	w := v.w
	client, closeAll, err := v.b.Route.Open(&holdfast.Config{Prefix: v.b.Prefix}, nil, w)
	if err != nil {
		return err
	}
	defer func() { _ = closeAll() }()
	if _, err := client.Mutex(v.name).Lock(ctx); err != nil {
		return err
	}
	if err := v.releaseLost(client.Close); err != nil {
		return err
	}
	return v.isFree(ctx, v.name)
}

func acquirePermits(ctx context.Context, v *victimOf) error {
	semaphore := v.victim.Semaphore(v.name, 3)
	lease, err := v.takeLost(ctx,
		func(ctx context.Context) (*holdfast.Lease, error) { return semaphore.Acquire(ctx, 2) })
	if err != nil {
		return err
	}
	third, err := tryUntilGranted(ctx, v.tryPermits(3, 1))
	if err != nil {
		return fmt.Errorf("the third permit: %w", err)
	}
	return errors.Join(isHeld(ctx, v.tryPermits(3, 1)), checkAndRelease(ctx, third), isHeld(ctx, v.tryPermits(3, 2)),
		checkAndRelease(ctx, lease), v.hasPermits(ctx, 3))
}

func releasePermits(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Semaphore(v.name, 3).Acquire(ctx, 2)
	if err != nil {
		return err
	}
	if err := v.releaseLost(func() error { return lease.Release() }); err != nil {
		return err
	}
	return v.hasPermits(ctx, 3)
}

// tryPermits tries to take some of all there are.
func (v *victimOf) tryPermits(all, some int64) try {
	s := v.other.Semaphore(v.name, all)
	return func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, some) }
}

// hasPermits reports whether so many permits can be had at once, and no more.
func (v *victimOf) hasPermits(ctx context.Context, n int64) error {
	lease, err := tryUntilGranted(ctx, v.tryPermits(n, n))
	if err != nil {
		return fmt.Errorf("all %d permits: %w", n, err)
	}
	return errors.Join(isHeld(ctx, v.tryPermits(n, 1)), checkAndRelease(ctx, lease))
}

func resizeLost(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Semaphore(v.name, 3).Acquire(ctx, 2)
	if err != nil {
		return err
	}
	err = v.withoutAnswer(func() error { return v.victim.Semaphore(v.name, 5).Resize(ctx, 5) })
	if err != nil { // doing it again does no harm
		if err = isUnknown(nil, err); err == nil {
			err = askUntilAnswered(ctx,
				func(ctx context.Context) error { return v.victim.Semaphore(v.name, 5).Resize(ctx, 5) })
		}
	}
	if err != nil {
		return err
	}
	three, err := tryUntilGranted(ctx, v.tryPermits(5, 3))
	if err != nil {
		return fmt.Errorf("the permits that came: %w", err)
	}
	return errors.Join(isHeld(ctx, v.tryPermits(5, 1)), checkAndRelease(ctx, three), checkAndRelease(ctx, lease))
}

// checkCount returns what others see of a latch.
func (v *victimOf) checkCount(ctx context.Context, want int) error {
	n := 0
	err := askUntilAnswered(ctx,
		func(ctx context.Context) (err error) { n, err = v.other.Latch(v.name).Count(ctx); return err })
	if err == nil && n != want {
		err = fmt.Errorf("the count is %d, not %d", n, want)
	}
	return err
}

func setLatch(ctx context.Context, v *victimOf) error {
	return errors.Join(v.withoutAnswer(func() error { return v.victim.Latch(v.name, short).Set(ctx, 3) }),
		v.checkCount(ctx, 3))
}

func countLatchDown(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 3); err != nil {
		return err
	}
	return errors.Join(v.withoutAnswer(func() error { return v.victim.Latch(v.name, short).CountDown(ctx) }),
		v.checkCount(ctx, 2))
}

func countLatch(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 3); err != nil {
		return err
	}
	n := 0
	err := v.withoutAnswer(func() (err error) { n, err = v.victim.Latch(v.name).Count(ctx); return err })
	if err == nil && n != 3 || err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		return fmt.Errorf("Count: %d, %w", n, orNilError(err))
	}
	return v.checkCount(ctx, 3)
}

func waitForLatch(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 1); err != nil {
		return err
	}
	v.loseAnswers()
	done := goLater(func() (*holdfast.Lease, error) { return nil, v.victim.Latch(v.name).Wait(ctx) })
	err := v.awaitLoss(ctx)
	v.endLosses()
	if err := errors.Join(err, v.other.Latch(v.name, short).CountDown(ctx)); err != nil {
		return err
	}
	_, err = done()
	return err
}

// short is how long the latches of these tests stay.
var short = holdfast.WithTTL(10 * time.Second)

// goLater does something in the background.
func goLater(f func() (*holdfast.Lease, error)) (result func() (*holdfast.Lease, error)) {
	type got struct {
		lease *holdfast.Lease
		err   error
	}
	done := make(chan got, 1)
	go func() { lease, err := f(); done <- got{lease, err} }()
	return func() (*holdfast.Lease, error) { g := <-done; return g.lease, g.err }
}

// awaitWaiters waits until so many wait for the name, as one who tries is told.
func (v *victimOf) awaitWaiters(ctx context.Context, n int) error {
	for ctx.Err() == nil {
		var busy *holdfast.HeldError
		lease, err := v.other.Mutex(v.name).TryLock(ctx)
		if err == nil {
			return errors.Join(errors.New("nobody held it"), lease.Release())
		}
		if errors.As(err, &busy) && busy.Waiters == n {
			return nil
		}
		pause(time.Millisecond)
	}
	return fmt.Errorf("never waited: %d", n)
}
