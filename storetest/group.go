package storetest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

func group() []test {
	return []test{
		{"a try takes all or none", groupTry, 0},
		{"no deadlock, whatever the order", groupOrder, 0},
		{"given up at the moment of the grant", groupGivenUpAtGrant, 0},
		{"one that is lost while another is waited for", groupLostWaiting, 0},
		{"reentry", groupReentry, 0},
	}
}

// A busy try leaves nothing behind, and its error names a name that is held.
func groupTry(e *env) {
	a, b := e.client(label("A")), e.client()
	lease := e.lock(a.Mutex("b"))
	held := e.heldError(b.All([]string{"a", "b", "c"}).TryLock)
	checkEqual(e, "name", held.Name, "b")
	checkEqual(e, "holder", held.Holder, "A")
	checkEqual(e, "kind", held.Kind, "mutex")
	e.checkFree(a.Mutex("a"))
	e.checkFree(a.Mutex("c"))
	e.release(lease)
	e.release(e.take(b.All([]string{"a", "b", "c"}).TryLock))
}

// Each name is held by one at a time, and every round ends.
func groupOrder(e *env) {
	names := []string{"a", "b", "c", "d", "e"}
	inside := make(map[string]*atomic.Int64)
	for _, n := range names {
		inside[n] = new(atomic.Int64)
	}
	e.contend(3, 3, 6, func(c *client, _, _ int) {
		mine := make([]string, 2+rand.IntN(2))
		for i, at := range rand.Perm(len(names))[:len(mine)] {
			mine[i] = names[at]
		}
		err := c.All(mine).Do(e.ctx(), func(context.Context) error {
			for _, n := range mine {
				if inside[n].Add(1) != 1 {
					e.Errorf("two hold %q", n)
				}
			}
			for _, n := range mine {
				inside[n].Add(-1)
			}
			return nil
		})
		if err != nil {
			e.Errorf("%v: %v", mine, err)
		}
	})
}

// All names go on to the next waiter.
func groupGivenUpAtGrant(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	names := []string{"a", "b", "c"}
	e.giveUpAtGrant(grantRace{
		rounds: 10, most: 2 * claim, hold: func(round int) lockFunc { return a.Mutex(names[round%3]).Lock },
		leaver: b, leave: b.All(names).Lock, stayer: c, stay: c.All(names).Lock,
	})
}

func groupLostWaiting(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(a.Mutex("b"))
	w := e.startWaiting(e.ctx(), b, b.All([]string{"a", "b"}, holdfast.WithoutRenewal(), holdfast.WithTTL(roomy)).Lock)
	e.busyError(a.Mutex("a"))
	if !soon(func() bool { return len(b.of(holdfast.EventLost)) > 0 }) {
		e.Fatal("a is not lost")
	}
	e.release(lease)
	all := w.await()
	e.checkHolds(all)
	e.release(all)
}

func groupReentry(e *env) {
	a, b := e.client(), e.client()
	outer := e.lock(a.Mutex("b"))
	all := e.takeUnder(outer, a.All([]string{"a", "b", "c"}).TryLock)
	if all.Tokens()["b"] != outer.Token() {
		e.Errorf("tokens %v under %d", all.Tokens(), outer.Token())
	}
	for _, n := range []string{"a", "b", "c"} { // under the group's context each of its names is entered
		e.release(e.takeUnder(all, a.Mutex(n).TryLock))
	}
	again := e.takeUnder(all, a.All([]string{"c", "a"}).TryLock)
	e.release(again)
	e.release(all)
	e.busyError(b.Mutex("b")) // the outer entry is left
	e.checkFree(b.Mutex("a"))
	e.must(outer.Err())
	e.release(outer)
	e.checkFree(b.Mutex("b"))
}
