package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast"
)

func order() []test {
	return []test{
		{"first come, first served between clients", orderOfClients, queue},
		{"first come, first served between goroutines", orderOfGoroutines, 0},
		{"strict order between goroutines of two clients", strictOrder, queue},
		{"who gives up leaves the others in order", orderWithoutOne, queue},
		{"a goroutine takes over the place of one that gives up", placeIsKept, queue},
		{"what is in order stays so after an expiry", orderAfterExpiry, queue},
		{"many goroutines", manyGoroutines, 0},
	}
}

// A served notes the order in which goroutines came in.
type served struct {
	mu    sync.Mutex
	order []string
	all   sync.WaitGroup
}

// next starts a goroutine that waits. When the goroutine is in, it notes that and releases.
func (s *served) next(e *env, c *client, who string, m *holdfast.Mutex) {
	w := e.wait(e.ctx(), c, m)
	s.all.Go(func() {
		<-w.done
		if w.err != nil {
			e.Errorf("%s: %v", who, w.err)
			return
		}
		s.mu.Lock()
		s.order = append(s.order, who)
		s.mu.Unlock()
		e.release(w.lease)
	})
}

// were waits for all goroutines and compares the order.
func (s *served) were(e *env, want ...string) {
	e.Helper()
	s.all.Wait()
	if !slices.Equal(s.order, want) {
		e.Errorf("served %q, want %q", s.order, want)
	}
}

// Trap 19: the order is that of coming, also within one second.
func orderOfClients(e *env) {
	lease := e.lock(e.client().Mutex(name))
	var s served
	var want []string
	for i := range 6 {
		c, who := e.client(), fmt.Sprint(i)
		s.next(e, c, who, c.Mutex(name))
		want = append(want, who)
	}
	e.release(lease)
	s.were(e, want...)
}

func orderOfGoroutines(e *env) {
	c := e.client()
	lease := e.lock(c.Mutex(name))
	var s served
	var want []string
	for i := range 12 {
		who := fmt.Sprint(i)
		s.next(e, c, who, c.Mutex(name))
		want = append(want, who)
	}
	e.release(lease)
	s.were(e, want...)
}

func strictOrder(e *env) {
	a, b := e.client(), e.client()
	lease := e.lock(e.client().Mutex(name))
	var s served
	for _, who := range []string{"a1", "b1", "a2", "b2", "a3", "b3"} {
		c := a
		if who[0] == 'b' {
			c = b
		}
		s.next(e, c, who, c.Mutex(name, holdfast.WithStrictOrder()))
	}
	e.release(lease)
	s.were(e, "a1", "b1", "a2", "b2", "a3", "b3")
}

// Trap 20.
func orderWithoutOne(e *env) {
	lease := e.lock(e.client().Mutex(name))
	ctx, cancel := context.WithCancel(e.ctx())
	var s served
	var leaving []*waiter
	for _, who := range []string{"leaves", "1", "leaves", "3", "4", "leaves"} {
		if c := e.client(); who == "leaves" {
			leaving = append(leaving, e.wait(ctx, c, c.Mutex(name)))
		} else {
			s.next(e, c, who, c.Mutex(name))
		}
	}
	cancel()
	for _, w := range leaving {
		w.gaveUp(context.Canceled)
	}
	e.release(lease)
	s.were(e, "1", "3", "4")
}

// A process stands in the queue once. The place does not belong to its first goroutine alone.
func placeIsKept(e *env) {
	lease := e.lock(e.client().Mutex(name))
	var s served
	b, c := e.client(), e.client()
	ctx, cancel := context.WithCancel(e.ctx())
	defer cancel()
	first := e.wait(ctx, b, b.Mutex(name))
	s.next(e, b, "b2", b.Mutex(name))
	s.next(e, c, "c", c.Mutex(name))
	cancel()
	first.gaveUp(context.Canceled)
	e.release(lease)
	s.were(e, "b2", "c")
}

// Trap 18: the first waiter in the queue is next, even if the holder never releases.
func orderAfterExpiry(e *env) {
	a := e.client()
	clients := []*client{e.client(), e.client(), e.client()}
	for _, c := range clients { // connecting may take longer than the lease lasts
		e.release(e.lock(c.Mutex(name)))
	}
	e.lock(a.Mutex(name, holdfast.WithoutRenewal(), holdfast.WithTTL(roomy)))
	var s served
	for i, c := range clients {
		s.next(e, c, fmt.Sprint(i), c.Mutex(name))
	}
	s.were(e, "0", "1", "2")
}

// Many goroutines of one process take turns, and none is forgotten.
func manyGoroutines(e *env) {
	c := e.client()
	const n = 64
	var all sync.WaitGroup
	inside := 0 // the lock guards inside: within one process the race detector sees that it does
	for range n {
		all.Go(func() {
			lease, err := c.Mutex(name).Lock(e.ctx())
			if err != nil {
				e.Errorf("Lock: %v", err)
				return
			}
			inside++
			e.release(lease)
		})
	}
	all.Wait()
	if inside != n {
		e.Errorf("%d were in, want %d", inside, n)
	}
}
