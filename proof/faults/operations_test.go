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

// operations are all that a client does, each with what must be true when the answer to it was
// lost.
func operations(isQuorum bool) map[string]operation {
	all := map[string]operation{
		"Mutex.Lock":   func(ctx context.Context, v *victimOf) error { return v.lock(ctx, v.victim.Mutex(v.name).Lock) },
		"RWMutex.Lock": func(ctx context.Context, v *victimOf) error { return v.lock(ctx, v.victim.RWMutex(v.name+"rw").Lock) },
		"Campaign": func(ctx context.Context, v *victimOf) error {
			return v.lock(ctx, v.victim.Election(v.name+"e").Campaign)
		},
		"Mutex.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.try(ctx, v.victim.Mutex(v.name).TryLock, v.name)
		},
		"RWMutex.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.try(ctx, v.victim.RWMutex(v.name).TryLock, v.name)
		},
		"RWMutex.TryRLock": func(ctx context.Context, v *victimOf) error {
			return v.try(ctx, v.victim.RWMutex(v.name).TryRLock, v.name)
		},
		"TryCampaign": func(ctx context.Context, v *victimOf) error {
			return v.try(ctx, v.victim.Election(v.name).TryCampaign, v.name)
		},
		"Group.TryLock": func(ctx context.Context, v *victimOf) error {
			return v.try(ctx, v.victim.All([]string{v.name + "1", v.name + "2"}).TryLock, v.name+"1", v.name+"2")
		},
		"Release":           release,
		"Release, hand on":  handOn,
		"Release, yield":    yield,
		"entry of an owner": entry,
		"RWMutex.RLock":     read,
		"Downgrade":         downgrade,
		"Group.Lock":        group,
		"Check":             check,
		"renewal":           renewal,
		"joining the queue": join,
		"leaving the queue": leave,
		"Leader":            leader,
		"Close":             closing,
	}
	if isQuorum {
		return all
	}
	all["Semaphore.Acquire"] = acquire
	all["Semaphore.TryAcquire"] = func(ctx context.Context, v *victimOf) error {
		return v.try(ctx, func(ctx context.Context) (*holdfast.Lease, error) {
			return v.victim.Semaphore(v.name, 3).TryAcquire(ctx, 2)
		}, v.name)
	}
	all["Semaphore, release"] = permits
	all["Resize"] = resize
	all["Latch.Set"] = latchSet
	all["Latch.CountDown"] = latchCountDown
	all["Latch.Count"] = latchCount
	all["Latch.Wait"] = latchWait
	return all
}

// lock must get what it waits for; others are kept out until it is given back.
func (v *victimOf) lock(ctx context.Context, lock func(context.Context) (*holdfast.Lease, error)) error {
	var lease *holdfast.Lease
	err := v.without(func() (err error) { lease, err = lock(ctx); return err })
	if err != nil {
		return err
	}
	name := lease.Name()
	// Of another kind it is held as well.
	_, err = v.other.Mutex(name).TryLock(ctx)
	for unanswered(err) && !isQuorumError(err) && ctx.Err() == nil {
		_, err = v.other.Mutex(name).TryLock(ctx)
	}
	var foreign *holdfast.StoreError
	if !errors.Is(err, holdfast.ErrHeld) && (!errors.As(err, &foreign) || foreign.Kind != holdfast.StoreForeign) && !isQuorumError(err) {
		return fmt.Errorf("another was answered %w", orNil(err))
	}
	return errors.Join(back(ctx, lease), v.free(ctx, name))
}

func isQuorumError(err error) bool {
	var none *holdfast.QuorumError
	return errors.As(err, &none)
}

// try is told that nobody knows, and what it won is taken back.
func (v *victimOf) try(ctx context.Context, try try, names ...string) error {
	var lease *holdfast.Lease
	var err error
	_ = v.without(func() error { lease, err = try(ctx); return nil })
	if err := unknown(lease, err); err != nil {
		return err
	}
	for _, name := range names {
		if err := v.free(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// givesBack gives back without an answer. The release is sent again, and finds nothing: nobody
// knows whether the first request gave back. A majority of a harness.Quorum may know.
func (v *victimOf) givesBack(f func() error) error {
	err := v.without(f)
	if errors.Is(err, holdfast.ErrUncertain) || err == nil && v.b.Topology == harness.Quorum {
		return nil
	}
	return fmt.Errorf("a release whose answer was lost: %w", orNil(err))
}

func release(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	if err := v.givesBack(func() error { return lease.Release() }); err != nil {
		return err
	}
	if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
		return fmt.Errorf("a second release: %w", orNil(err))
	}
	return v.free(ctx, v.name)
}

// handOn releases while another waits.
func handOn(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	next := later(func() (*holdfast.Lease, error) { return v.other.Mutex(v.name).Lock(ctx) })
	if err := v.waitersAre(ctx, 1); err != nil {
		return err
	}
	began := time.Now()
	if err := v.givesBack(func() error { return lease.Release() }); err != nil {
		return err
	}
	second, err := next()
	if err != nil {
		return err
	}
	if second.Token() <= lease.Token() {
		return fmt.Errorf("token %d after %d", second.Token(), lease.Token())
	}
	return handed(ctx, second, began)
}

// yield gives back a hold in the request that asks for the next, as another goroutine of the
// process waits.
func yield(ctx context.Context, v *victimOf) error {
	m := v.victim.Mutex(v.name)
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	entered := make(chan struct{})
	next := later(func() (*holdfast.Lease, error) { close(entered); return m.Lock(ctx) })
	<-entered
	pause(10 * time.Millisecond) // longer than a slice
	v.arm()
	if err := lease.Release(); err != nil {
		return err
	}
	second, err := next()
	v.disarm()
	if err != nil {
		return err
	}
	if second.Token() <= lease.Token() {
		return fmt.Errorf("token %d after %d", second.Token(), lease.Token())
	}
	return errors.Join(held(ctx, v.other.Mutex(v.name).TryLock), back(ctx, second), v.free(ctx, v.name))
}

func entry(ctx context.Context, v *victimOf) error {
	m := v.victim.Mutex(v.name, holdfast.WithOwner("me"))
	first, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	var second *holdfast.Lease
	if err := v.without(func() (err error) { second, err = m.Lock(ctx); return err }); err != nil {
		return err
	}
	return errors.Join(back(ctx, second), answered(ctx, first.Check), held(ctx, v.other.Mutex(v.name).TryLock), back(ctx, first), v.free(ctx, v.name))
}

func read(ctx context.Context, v *victimOf) error {
	var mine *holdfast.Lease
	if err := v.without(func() (err error) { mine, err = v.victim.RWMutex(v.name).RLock(ctx); return err }); err != nil {
		return err
	}
	beside, err := granted(ctx, v.other.RWMutex(v.name).TryRLock)
	if err != nil {
		return fmt.Errorf("another reader: %w", err)
	}
	return errors.Join(held(ctx, v.other.RWMutex(v.name).TryLock), back(ctx, beside), held(ctx, v.other.RWMutex(v.name).TryLock),
		back(ctx, mine), v.free(ctx, v.name))
}

func downgrade(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.RWMutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	if err := v.without(func() error { return lease.Downgrade(ctx) }); err != nil {
		return err
	}
	beside, err := granted(ctx, v.other.RWMutex(v.name).TryRLock)
	if err != nil {
		return fmt.Errorf("a reader: %w", err)
	}
	return errors.Join(back(ctx, beside), held(ctx, v.other.RWMutex(v.name).TryLock), back(ctx, lease), v.free(ctx, v.name))
}

func group(ctx context.Context, v *victimOf) error {
	one, two := v.name+"1", v.name+"2"
	var lease *holdfast.Lease
	if err := v.without(func() (err error) { lease, err = v.victim.All([]string{one, two}).Lock(ctx); return err }); err != nil {
		return err
	}
	return errors.Join(held(ctx, v.other.Mutex(one).TryLock), held(ctx, v.other.Mutex(two).TryLock), back(ctx, lease), v.free(ctx, one), v.free(ctx, two))
}

func check(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	err = v.without(func() error { return lease.Check(ctx) })
	if err != nil && (!errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrLost)) {
		return fmt.Errorf("Check: %w", err)
	}
	return errors.Join(back(ctx, lease), v.free(ctx, v.name))
}

func renewal(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Mutex(v.name, holdfast.WithTTL(6*time.Second)).Lock(ctx)
	if err != nil {
		return err
	}
	before := lease.Until()
	v.arm()
	err = v.waitLost(ctx)
	v.disarm()
	for err == nil && lease.Err() == nil && !lease.Until().After(before) {
		pause(time.Millisecond)
	}
	return errors.Join(err, held(ctx, v.other.Mutex(v.name).TryLock), back(ctx, lease), v.free(ctx, v.name))
}

// join stands in the queue without having heard so: once, and is in when its turn comes.
func join(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	v.arm()
	next := later(func() (*holdfast.Lease, error) { return v.victim.Mutex(v.name).Lock(ctx) })
	err = errors.Join(v.waitLost(ctx), v.waitersAre(ctx, 1))
	v.disarm()
	began := time.Now()
	if err := errors.Join(err, back(ctx, lease)); err != nil {
		return err
	}
	mine, err := next()
	if err != nil {
		return err
	}
	return errors.Join(handed(ctx, mine, began), v.free(ctx, v.name))
}

// leave gives its place up, and the next is in at once.
func leave(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Mutex(v.name).Lock(ctx)
	if err != nil {
		return err
	}
	giving, cancel := context.WithCancel(ctx)
	defer cancel()
	gone := later(func() (*holdfast.Lease, error) { return v.victim.Mutex(v.name).Lock(giving) })
	if err := v.waitersAre(ctx, 1); err != nil {
		return err
	}
	v.arm()
	cancel()
	_, err = gone()
	fails := v.waitLost(ctx)
	v.disarm()
	if !errors.Is(err, context.Canceled) || fails != nil {
		return errors.Join(fmt.Errorf("the wait ended with %w", orNil(err)), fails)
	}
	return errors.Join(back(ctx, lease), v.free(ctx, v.name))
}

func leader(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Election(v.name).Campaign(ctx)
	if err != nil {
		return err
	}
	var found holdfast.Leader
	err = v.without(func() (err error) { found, err = v.victim.Election(v.name).Leader(ctx); return err })
	if err == nil && found.Token != lease.Token() {
		err = fmt.Errorf("the leader's token is %d, not %d", found.Token, lease.Token())
	} else if errors.Is(err, holdfast.ErrUnavailable) && !errors.Is(err, holdfast.ErrNoLeader) {
		err = nil
	}
	return errors.Join(err, back(ctx, lease))
}

func closing(ctx context.Context, v *victimOf) error {
	w := v.w
	client, closeAll, err := v.b.Route.Open(&holdfast.Config{Prefix: v.b.Prefix}, nil, w)
	if err != nil {
		return err
	}
	defer func() { _ = closeAll() }()
	if _, err := client.Mutex(v.name).Lock(ctx); err != nil {
		return err
	}
	if err := v.givesBack(client.Close); err != nil {
		return err
	}
	return v.free(ctx, v.name)
}

func acquire(ctx context.Context, v *victimOf) error {
	var lease *holdfast.Lease
	if err := v.without(func() (err error) { lease, err = v.victim.Semaphore(v.name, 3).Acquire(ctx, 2); return err }); err != nil {
		return err
	}
	third, err := granted(ctx, v.permits(3, 1))
	if err != nil {
		return fmt.Errorf("the third permit: %w", err)
	}
	return errors.Join(held(ctx, v.permits(3, 1)), back(ctx, third), held(ctx, v.permits(3, 2)), back(ctx, lease), v.whole(ctx, 3))
}

func permits(ctx context.Context, v *victimOf) error {
	lease, err := v.victim.Semaphore(v.name, 3).Acquire(ctx, 2)
	if err != nil {
		return err
	}
	if err := v.givesBack(func() error { return lease.Release() }); err != nil {
		return err
	}
	return v.whole(ctx, 3)
}

// permits tries to take some of all there are.
func (v *victimOf) permits(all, some int64) try {
	s := v.other.Semaphore(v.name, all)
	return func(ctx context.Context) (*holdfast.Lease, error) { return s.TryAcquire(ctx, some) }
}

// whole tells whether so many permits can be had at once, and no more.
func (v *victimOf) whole(ctx context.Context, n int64) error {
	lease, err := granted(ctx, v.permits(n, n))
	if err != nil {
		return fmt.Errorf("all %d permits: %w", n, err)
	}
	return errors.Join(held(ctx, v.permits(n, 1)), back(ctx, lease))
}

func resize(ctx context.Context, v *victimOf) error {
	lease, err := v.other.Semaphore(v.name, 3).Acquire(ctx, 2)
	if err != nil {
		return err
	}
	err = v.without(func() error { return v.victim.Semaphore(v.name, 5).Resize(ctx, 5) })
	if err != nil { // doing it again does no harm
		if err = unknown(nil, err); err == nil {
			err = answered(ctx, func(ctx context.Context) error { return v.victim.Semaphore(v.name, 5).Resize(ctx, 5) })
		}
	}
	if err != nil {
		return err
	}
	three, err := granted(ctx, v.permits(5, 3))
	if err != nil {
		return fmt.Errorf("the permits that came: %w", err)
	}
	return errors.Join(held(ctx, v.permits(5, 1)), back(ctx, three), back(ctx, lease))
}

// counted is what others see of a latch.
func (v *victimOf) counted(ctx context.Context, want int) error {
	n := 0
	err := answered(ctx, func(ctx context.Context) (err error) { n, err = v.other.Latch(v.name).Count(ctx); return err })
	if err == nil && n != want {
		err = fmt.Errorf("the count is %d, not %d", n, want)
	}
	return err
}

func latchSet(ctx context.Context, v *victimOf) error {
	return errors.Join(v.without(func() error { return v.victim.Latch(v.name, short).Set(ctx, 3) }), v.counted(ctx, 3))
}

func latchCountDown(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 3); err != nil {
		return err
	}
	return errors.Join(v.without(func() error { return v.victim.Latch(v.name, short).CountDown(ctx) }), v.counted(ctx, 2))
}

func latchCount(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 3); err != nil {
		return err
	}
	n := 0
	err := v.without(func() (err error) { n, err = v.victim.Latch(v.name).Count(ctx); return err })
	if err == nil && n != 3 || err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
		return fmt.Errorf("Count: %d, %w", n, orNil(err))
	}
	return v.counted(ctx, 3)
}

func latchWait(ctx context.Context, v *victimOf) error {
	if err := v.other.Latch(v.name, short).Set(ctx, 1); err != nil {
		return err
	}
	v.arm()
	done := later(func() (*holdfast.Lease, error) { return nil, v.victim.Latch(v.name).Wait(ctx) })
	err := v.waitLost(ctx)
	v.disarm()
	if err := errors.Join(err, v.other.Latch(v.name, short).CountDown(ctx)); err != nil {
		return err
	}
	_, err = done()
	return err
}

// short is how long the latches of these tests stay.
var short = holdfast.WithTTL(10 * time.Second)

// later does something in the background.
func later(f func() (*holdfast.Lease, error)) (result func() (*holdfast.Lease, error)) {
	type got struct {
		lease *holdfast.Lease
		err   error
	}
	done := make(chan got, 1)
	go func() { lease, err := f(); done <- got{lease, err} }()
	return func() (*holdfast.Lease, error) { g := <-done; return g.lease, g.err }
}

// waitersAre waits until so many wait for the name, as one who tries is told.
func (v *victimOf) waitersAre(ctx context.Context, n int) error {
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
