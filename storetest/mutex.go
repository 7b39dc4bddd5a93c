package storetest

import (
	"sync/atomic"

	"github.com/holdfast-go/holdfast"
)

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
		if token := lease.Token(); last.Swap(token) >= token {
			e.Errorf("the token %d does not grow", token)
		}
		inside.Add(-1)
		e.release(lease)
	})
}
