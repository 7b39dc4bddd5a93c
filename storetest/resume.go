package storetest

import (
	"context"
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
	}
}

// resuming is taking a hold over as a method.
func resuming(m *holdfast.Mutex, owner string, token int64) locks {
	return func(ctx context.Context) (*holdfast.Lease, error) { return m.Resume(ctx, owner, token) }
}

// resume takes a hold over that must be there.
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
	e.lost(e.ended(ctx), holdfast.LossGone) // told by its next renewal
	e.lost(lease.Release(e.ctx()), holdfast.LossGone)
	e.held(other.Mutex(name))
	if err := e.check(taken); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(taken)
	e.free(other.Mutex(name))
}

func resumedOwner(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	one := e.lock(a.Mutex(name, holdfast.WithOwner("o")))
	two := e.lock(a.Mutex(name, holdfast.WithOwner("o")))
	taken := e.resume(b.Mutex(name, holdfast.WithOwner("o")), "o", two.Token())
	e.lost(two.Release(e.ctx()), holdfast.LossGone) // of the two, it was this one
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
		e.lost(taken.Release(e.ctx()), holdfast.LossGone)
		e.lost(lease.Release(e.ctx()), holdfast.LossGone)
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
	e.lost(lease.Release(e.ctx()), holdfast.LossGone)
	if w.over() {
		e.Error("another is in")
	}
	if err := e.check(taken); err != nil {
		e.Errorf("Check: %v", err)
	}
	e.release(taken)
	e.release(w.in())
}

// A hold that passed from goroutine to goroutine has had several tokens; the last one names it.
func resumePassed(e *env) {
	a, b := e.client(), e.client()
	first := e.lock(a.Mutex(name))
	w, next := e.wait(e.ctx(), a, a.Mutex(name)), e.wait(e.ctx(), a, a.Mutex(name))
	e.release(first)
	e.release(w.in())
	lease := next.in()
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	e.lost(lease.Release(e.ctx()), holdfast.LossGone)
	if taken.Token() <= lease.Token() {
		e.Errorf("token %d after %d", taken.Token(), lease.Token())
	}
	e.release(taken)
}

// Who released what it had offered has no hold any more, although its process may still have the lock: another goroutine
// of it is in, and must not lose it to one who comes with the old token.
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

// The options are those of the handle that resumes: nothing is kept from others after its release.
func resumeMinHold(e *env) {
	a, b := e.client(), e.client()
	// Of a quorum, a master where the resume comes behind the release that is refused keeps it, alone and to its end.
	lease := e.lock(a.Mutex(name, holdfast.WithMinHold(3*time.Second)))
	taken := e.resume(b.Mutex(name), lease.Owner(), lease.Token())
	e.lost(lease.Release(e.ctx()), holdfast.LossGone)
	e.release(taken)
	e.free(a.Mutex(name))
}

// passedOn is a lease that was granted while others waited in its process, so that it may be passed on there, and who waits.
func (e *env) passedOn(c *client) (*holdfast.Lease, *waiter) {
	e.Helper()
	first := e.lock(c.Mutex(name))
	second, third := e.wait(e.ctx(), c, c.Mutex(name)), e.wait(e.ctx(), c, c.Mutex(name))
	e.release(first)
	return second.in(), third
}
