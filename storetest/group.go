package storetest

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
)

func group() []test {
	return []test{
		{"a try takes all or none", groupTry, 0},
		{"no deadlock, whatever the order", groupOrder, 0},
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
