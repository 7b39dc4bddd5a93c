package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func resume() []test {
	return []test{
		{"another process goes on", resumed, token},
		{"of an owner", resumedOwner, token},
		{"by the wrong owner", resumeWrongOwner, token},
		{"with the wrong token", resumeWrongToken, token},
		{"twice", resumeTwice, token},
		{"of what is free", resumeFree, token},
		{"while others wait", resumeWhileWaiting, token},
		{"of what was passed on in the process", resumePassed, token},
		{"of what was let go for another process, and then released", resumeReleased, token},
		{"with what a lease said after it was passed on", resumeLate, token},
		{"of a min hold", resumeMinHold, token},
		{"keeps others out until the former holder has stopped", resumeKeepsOut, token},
		{"keeps others out to the end of a former holder that crashed", resumeCrashed, token},
		{"tells a former holder that listens by message", resumeTells, token},
		{"lets nobody in beside a former holder of another owner", resumeEnters, token},
		{"of one of several holds of an owner, by another owner", resumeBesideOwner, token},
		{"of a hold beside a former holder, by another owner", resumeBesideRemainder, token},
		{"is not a hold to renew, resume or enter any more", resumeRemainder, token},
	}
}

// resuming returns a method that takes a hold over.
func resuming(m *holdfast.Mutex, owner string, token int64) locks {
	return func(ctx context.Context) (*holdfast.Lease, error) { return m.Resume(ctx, owner, token) }
}

// resume takes over a hold that must be there.
func (e *env) resume(m *holdfast.Mutex, owner string, token int64) *holdfast.Lease {
	e.Helper()
	lease, err := e.had(resuming(m, owner, token))
	if err != nil {
		e.Fatalf("Resume: %v", err)
	}
	return lease
}

func resumed(e *env) {
	a, b, other := e.client(label("A")), e.client(label("B")), e.client()
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(3*time.Second)))
	ctx := lease.Context()
	taken := e.resume(b.Mutex(name, holdfast.WithTTL(20*time.Second)), lease.Owner(), lease.Token())
	if taken.Token() <= lease.Token() || taken.Err() != nil || taken.Name() != name {
		e.Errorf("token %d after %d, %v", taken.Token(), lease.Token(), taken.Err())
	}
	if held := e.held(other.Mutex(name)); held.Holder != "B" || held.Holders != 1 || held.Remaining < 5*time.Second {
		e.Errorf("got %+v", held)
	}
	e.lost(e.ended(ctx), holdfast.LossReplaced) // its next renewal says so
	e.lost(lease.Release(e.ctx()), holdfast.LossReplaced)
	e.held(other.Mutex(name))
	if err := e.check(taken); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(taken)
	e.release(e.lock(other.Mutex(name))) // the rest of the lost lease is given back in the background
}

func resumedOwner(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	one := e.lock(a.Mutex(name, holdfast.WithOwner("o")))
	two := e.lock(a.Mutex(name, holdfast.WithOwner("o")))
	taken := e.resume(b.Mutex(name, holdfast.WithOwner("o")), "o", two.Token())
	e.lost(two.Release(e.ctx()), holdfast.LossReplaced) // of the two leases, this one was taken over
	e.release(one)
	e.held(other.Mutex(name))
	e.release(taken)
	e.free(other.Mutex(name))
}

func resumeWrongOwner(e *env) {
	a, b := e.client(label("A")), e.client()
	lease := e.lock(a.Mutex(name))
	owned := e.lock(a.Mutex("owned", holdfast.WithOwner("worker-10")))
	for _, test := range []struct {
		name, owner string
		token       int64
	}{{name, "x", lease.Token()}, {name, lease.Owner() + "x", lease.Token()}, {name, lease.Owner()[1:], lease.Token()},
		{"owned", "worker-1", owned.Token()}, {"owned", lease.Owner(), owned.Token()}, {name, "worker-10", lease.Token()}} {
		taken, err := e.reach(resuming(b.Mutex(test.name), test.owner, test.token))
		if e.is(err, holdfast.ErrHeld); taken != nil {
			e.Errorf("%q took over %q", test.owner, test.name)
		}
	}
	e.release(lease)
	e.release(owned)
}

func resumeWrongToken(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	for _, token := range []int64{1, lease.Token() - 1, lease.Token() + 1, 1<<53 - 1} {
		e.is(e.tried(resuming(b.Mutex(name), lease.Owner(), token)), holdfast.ErrHeld)
	}
	e.refused(second(b.Mutex(name).Resume(e.ctx(), lease.Owner(), 0)), "token")
	e.refused(second(b.Mutex(name).Resume(e.ctx(), lease.Owner(), -1)), "token")
	e.refused(second(b.Mutex(name).Resume(e.ctx(), lease.Owner(), 1<<53)), "token")
	e.refused(second(b.Mutex(name).Resume(e.ctx(), "", lease.Token())), "owner")
	e.release(lease)
}

func second(_ *holdfast.Lease, err error) error { return err }

func resumeTwice(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, owner := range []string{"", "o"} {
		var options []holdfast.Option
		if owner != "" {
			options = append(options, holdfast.WithOwner(owner))
		}
		lease := e.lock(a.Mutex(name, options...))
		taken := e.resume(b.Mutex(name, options...), lease.Owner(), lease.Token())
		e.is(e.tried(resuming(c.Mutex(name, options...), lease.Owner(), lease.Token())), holdfast.ErrHeld)
		again := e.resume(c.Mutex(name, options...), taken.Owner(), taken.Token())
		e.lost(taken.Release(e.ctx()), holdfast.LossReplaced)
		e.lost(lease.Release(e.ctx()), holdfast.LossReplaced)
		e.release(again)
		e.free(a.Mutex(name))
	}
}

func resumeFree(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	e.release(lease)
	e.is(e.tried(resuming(b.Mutex(name), lease.Owner(), lease.Token())), holdfast.ErrHeld)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	e.is(second(b.Mutex(name).Resume(over, lease.Owner(), lease.Token())), context.Canceled)
	e.free(a.Mutex(name))
}

func resumeWhileWaiting(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	lease := e.lock(a.Mutex(name))
	w := e.wait(e.ctx(), c, c.Mutex(name))
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	e.lost(lease.Release(e.ctx()), holdfast.LossReplaced)
	if w.over() {
		e.Error("another is in")
	}
	if err := e.check(taken); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(taken)
	e.release(w.in())
}

// A hold that passed from goroutine to goroutine has had several tokens. The last one names it.
func resumePassed(e *env) {
	a, b := e.client(), e.client()
	first := e.lock(a.Mutex(name))
	w, next := e.wait(e.ctx(), a, a.Mutex(name)), e.wait(e.ctx(), a, a.Mutex(name))
	e.release(first)
	e.release(w.in())
	lease := next.in()
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	e.lost(lease.Release(e.ctx()), holdfast.LossReplaced)
	if taken.Token() <= lease.Token() {
		e.Errorf("token %d after %d", taken.Token(), lease.Token())
	}
	e.release(taken)
}

// A holder that offered its hold and then released it has no hold any more, although its process
// may still have the lock. Another goroutine of the process is in, and must not lose the lock to a
// caller with the old token.
func resumeReleased(e *env) {
	a, b := e.client(), e.client()
	first, w := e.passedOn(a)
	owner, token := first.Owner(), first.Token()
	e.release(first)
	next := w.in()
	taken, err := e.reach(resuming(b.Mutex(name), owner, token))
	if e.is(err, holdfast.ErrHeld); taken != nil {
		e.Errorf("token %d was taken over from token %d", next.Token(), token)
	}
	if err := e.check(next); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(next)
}

func resumeLate(e *env) {
	a := e.client()
	first, w := e.passedOn(a)
	e.release(first)
	next := w.in()
	if owner := first.Owner(); owner == next.Owner() {
		e.Errorf("%q names a hold that is another's now", owner)
	}
	e.release(next)
}

// A min hold goes on to keep other contenders out, but not the holder that resumed.
func resumeMinHold(e *env) {
	a, b := e.client(), e.client()
	const least = 2 * time.Second
	before := time.Now()
	lease := e.lock(a.Mutex(name, holdfast.WithMinHold(least)))
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	e.lost(lease.Release(e.ctx()), holdfast.LossReplaced)
	if err := e.check(taken); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(taken)
	w := e.enter(e.ctx(), a.Mutex(name))
	next := w.in()
	if took := w.at.Sub(before); took < least-slack {
		e.Errorf("another was in after %v of %v", took, least)
	}
	e.release(next)
}

// Rule 1: no contender is let in while the former holder may still trust its lease, even if the
// holder that resumed is gone. The remainder ends when the former holder's process has ended the
// lease.
func resumeKeepsOut(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	former := e.lock(a.Mutex(name, holdfast.WithTTL(roomy)))
	ctx := former.Context()
	w := e.wait(e.ctx(), other, other.Mutex(name))
	taken := e.resume(b.Mutex(name), former.Owner(), former.Token())
	e.release(taken)
	next := w.in()
	if ctx.Err() == nil {
		e.Error("another is in, and the former lease is trusted")
	}
	e.lost(context.Cause(ctx), holdfast.LossReplaced)
	e.release(next)
}

func resumeCrashed(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	// No message and no renewal tells the former holder.
	former := e.lock(a.Mutex(name, holdfast.WithTTL(500*time.Millisecond), holdfast.WithoutRenewal()))
	trusted := former.Until()
	taken := e.resume(b.Mutex(name), former.Owner(), former.Token())
	e.release(taken)
	w := e.enter(e.ctx(), other.Mutex(name))
	next := w.in()
	if w.at.Before(trusted) {
		e.Errorf("another was in %v before the end of the former holder's trust", trusted.Sub(w.at))
	}
	e.release(next)
}

// A fixed lease has no renewal that could learn of the resume, so the message makes its process
// ask. The process listens because it waits for the same name. With sharded channels it hears of no
// other name.
func resumeTells(e *env) {
	a, b := e.client(), e.client(label("B"))
	lease := e.lock(a.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute)))
	ctx := lease.Context()
	w := e.wait(e.ctx(), a, a.Mutex(name))
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	err := e.ended(ctx)
	e.lost(err, holdfast.LossReplaced)
	if lost := (*holdfast.LostError)(nil); !errors.As(err, &lost) || lost.By != "B" {
		e.Errorf("got %v, want by B", err)
	}
	e.release(taken)
	e.release(w.in()) // one margin after the former lease has ended
}

// The former hold excluded the owner "o". Its remainder therefore excludes the callers of "o",
// except the caller that resumed.
func resumeEnters(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	former := e.lock(a.Mutex(name))
	owner := holdfast.WithOwner("o")
	taken := e.resume(b.Mutex(name, owner), former.Owner(), former.Token())
	e.held(c.Mutex(name, owner))
	e.lost(former.Release(e.ctx()), holdfast.LossReplaced)
	beside := e.lock(c.Mutex(name, owner))
	e.release(beside)
	e.release(taken)
}

// The other holds of the owner exclude the caller, as they exclude every caller but their owner.
func resumeBesideOwner(e *env) {
	a, b := e.client(), e.client()
	owner := holdfast.WithOwner("o")
	one, two := e.lock(a.Mutex(name, owner)), e.lock(a.Mutex(name, owner))
	taken, err := e.reach(resuming(b.Mutex(name), "o", one.Token()))
	if e.is(err, holdfast.ErrHeld); taken != nil {
		e.Error("taken over beside another hold")
	}
	e.release(two)
	e.release(e.resume(b.Mutex(name), "o", one.Token()))
	e.lost(one.Release(e.ctx()), holdfast.LossReplaced)
}

// A remainder excludes all callers, with two exceptions: the caller that took the hold over, and
// callers that take over from that caller. A caller that takes over another hold of the same owner
// is no exception.
func resumeBesideRemainder(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	owner := holdfast.WithOwner("o")
	former := e.lock(a.Mutex(name, owner, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute)))
	taken := e.resume(b.Mutex(name, owner), "o", former.Token())
	beside := e.lock(c.Mutex(name, owner))
	e.release(taken)
	again, err := e.reach(resuming(b.Mutex(name), "o", beside.Token()))
	if e.is(err, holdfast.ErrHeld); again != nil {
		e.Error("taken over beside a lease of another owner that is trusted")
	}
	e.lost(former.Release(e.ctx()), holdfast.LossReplaced)
	last := e.resume(b.Mutex(name), "o", beside.Token())
	e.lost(beside.Release(e.ctx()), holdfast.LossReplaced)
	e.release(last)
}

func resumeRemainder(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	owner := holdfast.WithOwner("o")
	former := e.lock(a.Mutex(name, owner, holdfast.WithoutRenewal(), holdfast.WithTTL(time.Minute)))
	e.release(e.resume(b.Mutex(name, owner), "o", former.Token()))
	e.is(e.tried(resuming(c.Mutex(name, owner), "o", former.Token())), holdfast.ErrHeld)
	if held := e.held(c.Mutex(name, owner)); held.Holder != "" || held.Holders != 1 {
		e.Errorf("got %+v, want a remainder", held)
	}
	e.lost(e.check(former), holdfast.LossReplaced)
	e.release(e.lock(c.Mutex(name, owner)))
}

// passedOn returns a lease that was granted while others waited in its process, so that the hold
// may be passed on there. It also returns a waiter.
func (e *env) passedOn(c *client) (*holdfast.Lease, *waiter) {
	e.Helper()
	first := e.lock(c.Mutex(name))
	second, third := e.wait(e.ctx(), c, c.Mutex(name)), e.wait(e.ctx(), c, c.Mutex(name))
	e.release(first)
	return second.in(), third
}
