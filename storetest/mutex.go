package storetest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

func mutex() []test {
	return []test{
		{"one at a time", oneAtATime, 0},
		{"a try of what is free", tryFree, 0},
		{"a try tells who holds", tryHeld, 0},
		{"a try counts who waits", tryCountsWaiters, queue},
		{"names and prefixes do not touch each other", otherNames, 0},
		{"goroutines that share a handle exclude each other", sharedHandle, 0},
		{"handles that differ in options exclude each other", differentOptions, 0},
		{"each holder has its own options", ownOptions, 0},
		{"labels", labels, 0},
	}
}

// Rule 1: clients, handles and goroutines contend, some in the queue, some trying, some in strict
// order. Never two are inside, and tokens grow.
func oneAtATime(e *env) {
	const clients, goroutines, rounds = 3, 3, 8
	var inside, last atomic.Int64
	var all sync.WaitGroup
	for range clients {
		c := e.client()
		for i := range goroutines {
			m := c.Mutex(name)
			if i == 0 {
				m = c.Mutex(name, holdfast.WithStrictOrder())
			}
			all.Go(func() {
				for range rounds {
					lease, err := m.Lock(e.ctx())
					if err != nil {
						e.Errorf("Lock: %v", err)
						return
					}
					if n := inside.Add(1); n != 1 {
						e.Errorf("%d hold at once", n)
					}
					if token := lease.Token(); last.Swap(token) >= token && !e.backend.NoTokens {
						e.Errorf("the token %d does not grow", token)
					}
					inside.Add(-1)
					e.release(lease)
				}
			})
		}
	}
	all.Wait()
}

func tryFree(e *env) {
	c := e.client()
	lease := e.tryLock(c.Mutex(name))
	if lease.Name() != name || lease.Err() != nil || leased.Context(lease).Err() != nil {
		e.Errorf("got a lease of %q with %v, %v", lease.Name(), lease.Err(), leased.Context(lease).Err())
	}
	if waits := c.of(holdfast.EventWaiting); len(waits) > 0 {
		e.Errorf("it waited: %v", waits)
	}
	e.release(lease)
	e.release(e.tryLock(c.Mutex(name)))
}

// Trap 22: "held" is an error of its own, and names the holder.
func tryHeld(e *env) {
	a, b := e.client(label("A")), e.client(label("B"))
	lease := e.lock(a.Mutex(name, holdfast.WithTTL(20*time.Second)))
	held := e.busyError(b.Mutex(name))
	if held.Name != name || held.Kind != "mutex" || held.Holder != "A" || held.Holders != 1 || held.Waiters != 0 {
		e.Errorf("got %+v", held)
	}
	if held.Remaining <= 0 || held.Remaining > 20*time.Second {
		e.Errorf("%v remain of 20s", held.Remaining)
	}
	if text := held.Error(); !strings.Contains(text, name) || !strings.Contains(text, `"A"`) {
		e.Errorf("the text does not say it: %s", text)
	}
	e.busyError(a.Mutex(name)) // the holder's own process is no better
	e.release(lease)
	e.checkFree(b.Mutex(name))
}

func tryCountsWaiters(e *env) {
	a := e.client(label("A"))
	lease := e.lock(a.Mutex(name))
	var waiters []*waiter
	for range 3 {
		c := e.client()
		waiters = append(waiters, e.startLock(e.ctx(), c, c.Mutex(name)))
	}
	if held := e.busyError(a.Mutex(name)); held.Waiters != 3 || held.Holders != 1 || held.Holder != "A" {
		e.Errorf("got %+v, want three who wait for A", held)
	}
	e.release(lease)
	e.releaseAll(waiters)
}

func otherNames(e *env) {
	a, b, c := e.client(), e.client(), e.client(func(c *holdfast.Config) { c.Prefix += "-b" })
	one := e.lock(a.Mutex("one"))
	other, prefixed := e.tryLock(b.Mutex("other")), e.tryLock(c.Mutex("one"))
	e.release(one)
	e.busyError(a.Mutex("other"))
	e.busyError(c.Mutex("one"))
	e.release(other, prefixed)
}

// Trap 32.
func sharedHandle(e *env) {
	c := e.client()
	m := c.Mutex(name)
	first := e.lock(m)
	e.busyError(m)
	w := e.startLock(e.ctx(), c, m)
	e.release(first)
	second := w.await()
	if first == second || !e.backend.NoTokens && second.Token() <= first.Token() {
		e.Errorf("token %d after %d", second.Token(), first.Token())
	}
	e.checkIs(first.Release(), holdfast.ErrNotHeld) // and not the other lease
	e.busyError(m)
	e.release(second)
}

func differentOptions(e *env) {
	c := e.client()
	for i, first := range []holdfast.Option{nil, holdfast.WithTTL(20 * time.Second), holdfast.WithoutRenewal(),
		holdfast.WithLabel("x"),
		holdfast.WithOwner("o"), holdfast.WithStrictOrder(), holdfast.WithMaxHold(time.Minute)} {
		lease := e.lock(c.Mutex(name, first))
		for j, second := range []holdfast.Option{nil, holdfast.WithTTL(30 * time.Second),
			holdfast.WithMaxHold(time.Minute),
			holdfast.WithPolling(time.Millisecond, 1), holdfast.WithOwner("p"), holdfast.WithStrictOrder(),
			holdfast.WithLabel("y")} {
			if lease, err := e.lockUntilAnswered(c.Mutex(name, second).TryLock); err == nil {
				e.Errorf("%d and %d are in together", i, j)
				e.release(lease)
			}
		}
		e.release(lease)
	}
}

// Goroutines of one process wait in one queue only if their options are equal.
func ownOptions(e *env) {
	c, other := e.client(), e.client()
	first := e.lock(c.Mutex(name, holdfast.WithLabel("first"), holdfast.WithTTL(time.Minute)))
	w := e.startLock(e.ctx(), c, c.Mutex(name, holdfast.WithLabel("second"), holdfast.WithTTL(10*time.Second)))
	e.release(first)
	second := w.await()
	e.checkHolds(second)
	if held := e.busyError(other.Mutex(name)); held.Holder != "second" || held.Remaining > 10*time.Second ||
		time.Until(second.Until()) > 10*time.Second {
		e.Errorf("got %+v, trusted for %v", held, time.Until(second.Until()))
	}
	e.release(second)
}

func labels(e *env) {
	c := e.client()
	odd := "a:b|{c}\n\x00\xff%"
	for _, test := range []struct {
		option holdfast.Option
		want   string
	}{{holdfast.WithLabel("worker 7"), "worker 7"}, {holdfast.WithLabel(odd), odd}, {holdfast.WithLabel(""), ""},
		{holdfast.WithLabel(strings.Repeat("l", 1024)), strings.Repeat("l", 1024)}} {
		lease := e.lock(c.Mutex(name, test.option))
		if held := e.busyError(c.Mutex(name)); held.Holder != test.want {
			e.Errorf("held by %q, want %q", held.Holder, test.want)
		}
		e.release(lease)
	}
	lease := e.lock(c.Mutex(name))
	if held := e.busyError(c.Mutex(name)); !strings.Contains(held.Holder, "@") ||
		!strings.HasSuffix(held.Holder, fmt.Sprintf("/%d", os.Getpid())) {
		e.Errorf("by default held by %q, want program@host/pid", held.Holder)
	}
	e.release(lease)
}
