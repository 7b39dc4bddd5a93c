package storetest

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast"
)

func mutex() []test {
	return []test{
		{"one at a time", oneAtATime, 0},
		{"goroutines that share a handle exclude each other", sharedHandle, 0},
		{"handles that differ in options exclude each other", differentOptions, 0},
		{"each holder has its own options", ownOptions, 0},
		{"labels", labels, 0},
	}
}

// Clients, handles and goroutines contend, some in the queue, some trying, some in strict order.
// Never two are inside, and tokens grow.
func oneAtATime(e *env) {
	var inside, last atomic.Int64
	e.contend(3, 3, 8, func(c *client, i, _ int) {
		m := c.Mutex(name)
		if i == 0 {
			m = c.Mutex(name, holdfast.WithStrictOrder())
		}
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
	})
}

// Trap 32.
func sharedHandle(e *env) {
	c := e.client()
	m := c.Mutex(name)
	first := e.lock(m)
	e.busyError(m)
	w := e.startWaitingFor(e.ctx(), c, m)
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
	w := e.startWaitingFor(e.ctx(), c, c.Mutex(name, holdfast.WithLabel("second"), holdfast.WithTTL(10*time.Second)))
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
