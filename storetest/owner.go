package storetest

import (
	"strings"

	"github.com/holdfast-go/holdfast"
)

func owner() []test {
	return []test{
		{"processes of one owner are in together", ownerShares, 0},
		{"a name that starts with another's", ownerPrefix, 0},
		{"an owner that reads reads again beside a writer that waits", ownerReads, 0},
	}
}

func ownerShares(e *env) {
	a, b, other := e.client(label("A")), e.client(label("B")), e.client()
	one := e.lock(a.Mutex(name, holdfast.WithOwner("o")))
	two := e.tryLock(b.Mutex(name, holdfast.WithOwner("o")))
	if one.Owner() != "o" || two.Owner() != "o" || two.Token() <= one.Token() {
		e.Errorf("owners %q, %q, tokens %d, %d", one.Owner(), two.Owner(), one.Token(), two.Token())
	}
	if held := e.busyError(other.Mutex(name)); held.Holders != 2 || held.Holder != "A" && held.Holder != "B" {
		e.Errorf("got %+v", held)
	}
	w := e.startWaiting(e.ctx(), other, other.Mutex(name).Lock)
	e.release(one)
	if err := e.check(two); err != nil || w.hasReturned() {
		e.Errorf("when one of two is released: %v, another is in: %v", err, w.hasReturned())
	}
	e.busyError(a.Mutex(name))
	e.release(two)
	e.release(w.await())
}

// An RWMutex lets an owner in as a Mutex does. Otherwise an owner that waits for a part of itself
// would wait for a writer that waits for the owner.
func ownerReads(e *env) {
	a, b, other := e.client(), e.client(), e.client()
	owner := holdfast.WithOwner("o")
	one := e.take(a.RWMutex(name, owner).RLock)
	w := e.startWaiting(e.ctx(), other, other.RWMutex(name).Lock)
	two := e.take(b.RWMutex(name, owner).RLock)
	three, err := e.lockWhenFree(b.RWMutex(name, owner).TryRLock)
	if err != nil {
		e.Fatalf("TryRLock: %v", err)
	}
	if !e.backend.NoQueue { // without a queue, new readers may pass a writer that waits
		e.checkIs(e.lockError(b.RWMutex(name).TryRLock), holdfast.ErrHeld)
		e.checkIs(e.lockError(b.RWMutex(name, holdfast.WithOwner("p")).TryRLock), holdfast.ErrHeld)
	}
	e.release(one)
	e.release(three)
	if w.hasReturned() {
		e.Error("the writer is in beside a reader")
	}
	e.release(two)
	e.release(w.await())
}

// Trap 26. Owner and label must not run together either.
func ownerPrefix(e *env) {
	a, b := e.client(), e.client()
	type who struct{ owner, label string }
	long := strings.Repeat("o", 1023)
	for _, test := range []struct{ one, other who }{
		{who{"worker-10", ""}, who{"worker-1", ""}},
		{who{"worker-1", ""}, who{"worker-10", ""}},
		{who{"worker-1", "0"}, who{"worker-10", ""}},
		{who{"a", "bc"}, who{"ab", "c"}},
		{who{"a:1", ""}, who{"a", ":1"}},
		{who{"a\x00b", ""}, who{"a", ""}},
		{who{"%", ""}, who{"%%", ""}},
		{who{"a*", ""}, who{"ab", ""}},
		{who{long + "1", ""}, who{long + "2", ""}},
	} {
		lease := e.lock(a.Mutex(name, holdfast.WithOwner(test.one.owner), holdfast.WithLabel(test.one.label)))
		if got := e.busyError(b.Mutex(name, holdfast.WithOwner(test.other.owner),
			holdfast.WithLabel(test.other.label))); got.Holder != test.one.label {
			e.Errorf("held by %q, want %q", got.Holder, test.one.label)
		}
		same := e.tryLock(b.Mutex(name, holdfast.WithOwner(test.one.owner), holdfast.WithLabel(test.other.label)))
		e.release(same)
		e.release(lease)
	}
}
