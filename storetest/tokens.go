package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

// checkAbove fails unless a lease has a token above the last one, which storage can read as a
// number.
func (e *env) checkAbove(last *int64, lease *holdfast.Lease) {
	e.Helper()
	token := lease.Token()
	if token <= *last || token >= 1<<53 || lease.Tokens()[name] != token {
		e.Errorf("token %d after %d, %v", token, *last, lease.Tokens())
	}
	*last = token
}

func tokensHandedOn(e *env) {
	var last int64
	lease := e.lock(e.client().Mutex(name))
	var waiters []*waiter
	for range 5 {
		c := e.client()
		waiters = append(waiters, e.startWaiting(e.ctx(), c, c.Mutex(name, holdfast.WithTTL(time.Minute)).Lock))
	}
	for _, w := range waiters {
		e.checkAbove(&last, lease)
		e.release(lease)
		lease = w.await()
	}
	e.checkAbove(&last, lease)
	e.release(lease)
}
