package storetest

import (
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
	w := e.startWaiting(e.ctx(), c, m.Lock)
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
func (e *env) checkServedInOrder(clients []*client, options ...holdfast.Option) {
	e.Helper()
	lease := e.lock(e.client().Mutex(name))
	var s served
	var want []string
	for i, c := range clients {
		want = append(want, fmt.Sprint(i))
		s.next(e, c, want[i], c.Mutex(name, options...))
	}
	e.release(lease)
	s.were(e, want...)
}

func orderOfClients(e *env) {
	e.checkServedInOrder([]*client{e.client(), e.client(), e.client(), e.client(), e.client(), e.client()})
}

func orderOfGoroutines(e *env) { e.checkServedInOrder(slices.Repeat([]*client{e.client()}, 12)) }

func strictOrder(e *env) {
	e.checkServedInOrder(slices.Repeat([]*client{e.client(), e.client()}, 3), holdfast.WithStrictOrder())
}
