package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// mayPass reports whether a failure may pass, so that it is worth asking again. A queued attempt
// keeps its place through every failure but a missing permission.
func (a *attempt) mayPass(err error) bool {
	var failure *protocol.Failure
	switch {
	case !errors.As(err, &failure):
		return false
	case failure.Reason.Passing():
		return true
	case failure.Reason == protocol.Denied:
		return false
	}
	return a.state == attemptKnown
}

// askAfter is how long to wait before asking again: the slow, jittered rate that is the sign of
// life, or until the known end of the hold. A waiter behind the first asks a little later, in case
// the first is dead.
func (a *attempt) askAfter(answer protocol.Answer, subscribed bool) time.Duration {
	slow := jitter(askEvery)
	if !subscribed { // no message tells of a hand-over, so asking must find it within its claim
		slow = jitter(claim(a.lock.options.TTL) / 3)
	}
	end := answer.Remaining + time.Millisecond
	if answer.Remaining < 0 { // not told: it may be a hand-over that nobody takes up
		end = jitter(claim(a.lock.options.TTL))
	}
	end += time.Duration(answer.Waiters) * askApart
	if !a.engine.features.Queue { // all waiters are first
		end += jitter(10 * time.Millisecond)
	}
	return min(slow, end)
}

// lastAsk is when to ask once more before ctx ends, with time for the answer. So a caller that
// waited in vain learns the present holder, or that the server does not answer any more.
func (a *attempt) lastAsk(ctx context.Context) (at time.Time, ok bool) {
	end, ok := ctx.Deadline()
	return end.Add(-a.lock.timeout - 100*time.Millisecond), ok
}
