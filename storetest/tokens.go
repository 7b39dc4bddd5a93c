package storetest

import (
	"time"

	"github.com/holdfast-go/holdfast"
)

func tokens() []test {
	return []test{
		{"grow through an expiry", tokensExpiry, token},
		{"grow through hand-overs", tokensHandedOn, token | queue},
		{"grow inside a process", tokensPassed, token},
	}
}

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

func tokensExpiry(e *env) {
	a, b := e.client(), e.client()
	var last int64
	for range 2 {
		lease := e.takeFixed(a, name, ttl)
		e.checkAbove(&last, lease)
		next := e.lock(b.Mutex(name))
		e.checkAbove(&last, next)
		e.release(next)
	}
}

func tokensHandedOn(e *env) {
	var last int64
	lease := e.lock(e.client().Mutex(name))
	var waiters []*waiter
	for range 5 {
		c := e.client()
		waiters = append(waiters, e.startWaitingFor(e.ctx(), c, c.Mutex(name, holdfast.WithTTL(time.Minute))))
	}
	for _, w := range waiters {
		e.checkAbove(&last, lease)
		e.release(lease)
		lease = w.await()
	}
	e.checkAbove(&last, lease)
	e.release(lease)
}

func tokensPassed(e *env) {
	a, b := e.client(), e.client()
	var last int64
	lease := e.lock(a.Mutex(name))
	var waiters []*waiter
	for range 20 {
		waiters = append(waiters, e.startWaitingFor(e.ctx(), a, a.Mutex(name)))
	}
	elsewhere := e.startWaitingFor(e.ctx(), b, b.Mutex(name))
	gone := make(chan struct{})
	go func() { // when the waiter is in, somewhere between the others, it releases
		defer close(gone)
		<-elsewhere.done
		if elsewhere.err != nil {
			e.Errorf("Lock: %v", elsewhere.err)
			return
		}
		e.release(elsewhere.lease)
	}()
	for _, w := range waiters {
		e.checkAbove(&last, lease)
		e.release(lease)
		lease = w.await()
	}
	e.checkAbove(&last, lease)
	e.release(lease)
	<-gone
	after := e.lock(b.Mutex(name))
	e.checkAbove(&last, after)
	e.release(after)
}
