package engine

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The times of the package document, as far as they do not depend on a TTL.
const (
	passFor          = 5 * time.Millisecond   // of passing inside a process
	askEvery         = 5 * time.Second        // while waiting, +-20 %; see protocol.PlaceLife
	askPace          = 100 * time.Millisecond // from one ask to the next at least, after the first few
	askApart         = 20 * time.Millisecond  // how much later each waiter behind the first asks
	checkEvery       = 250 * time.Millisecond // while goroutines wait for a hold of this process
	lookUnsubscribed = 500 * time.Millisecond // while watching without messages, +-20 %
	linger           = 10 * time.Second       // of the subscription after the last waiter left
	passBlock        = 1000                   // tokens reserved for passing
	walkEvery        = time.Minute            // the longest pause between two walks, +-20 %
)

// margin is how much earlier trust ends than the hold at the server. It covers the drift of two
// clocks over a TTL, and the time that telling a holder takes.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

// claim is how long a hand-over waits to be taken up.
func claim(ttl time.Duration) time.Duration { return min(ttl/3, 500*time.Millisecond) }

// pace bounds how often one caller asks. A waiter that no message reaches must find a hand-over
// within its claim.
func pace(ttl time.Duration) protocol.Pace {
	return protocol.Pace{Every: min(askPace, claim(ttl)/3)}
}

// timeout is how long one request may take.
func timeout(ttl time.Duration) time.Duration { return min(ttl/6, time.Second) }

// renewalDelay is how long after a confirmation a hold is renewed that was promised for a time. A
// holder that was promised less than a TTL, such as the claim of a hand-over, needs more soon.
func renewalDelay(promised, ttl time.Duration) time.Duration {
	if promised < ttl {
		return promised / 10
	}
	return ttl / 3
}

// retry is how soon a renewal that failed is tried again.
func retry(ttl time.Duration) time.Duration { return jitter(min(ttl/30, 250*time.Millisecond)) }

// jitter spreads a duration by 20 % either way.
func jitter(d time.Duration) time.Duration {
	return d - d/5 + time.Duration(rand.Int64N(int64(d)*2/5+1))
}

// isPast reports whether a moment is over, by either clock: the monotonic one stands still while
// the machine sleeps, and the wall clock may be set. The one that is ahead counts.
func isPast(end, now time.Time) bool {
	return !now.Before(end) || !now.Round(0).Before(end.Round(0))
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// earlier is the earlier of two moments. Zero stands for no moment: then the other one is it.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// A clockSample pairs the clock of the server with that of this process. A request that was sent at
// the local moment sent was answered at the server's time server, in microseconds: so the server's
// clock showed that time after sent.
type clockSample struct {
	sent   time.Time
	server int64 // 0: there is no sample yet
}

func (c clockSample) isKnown() bool { return c.server != 0 }

// earliest is the earliest local moment at which the server's clock can have shown a later time. It
// cannot have gone on, since the sample, for less than the time between the two that it showed,
// less a hundredth, by which the rates of the two clocks may differ.
func (c clockSample) earliest(serverTime int64) time.Time {
	elapsed := time.Duration(serverTime-c.server) * time.Microsecond
	return c.sent.Add(elapsed - elapsed/100)
}

// trustsGrant reports whether a hand-over is worth trust without another round trip, and from which
// local moment its claim counts, which is certainly before the grant. Where it is not, the server
// has to confirm the hand-over.
func (a *attempt) trustsGrant(g *protocol.Grant) (from time.Time, ok bool) {
	o := &a.lock.options
	now := time.Now()
	from = a.clock.earliest(g.At)
	end := from.Add(g.Claim - margin(g.Claim))
	stepped := g.At < a.clock.server || from.After(now) // its clock was set between answer and grant
	forged := g.Claim > a.lock.spec.Claim               // no server gives more than was asked for
	young := end.Sub(now) >= g.Claim/2 && !isPast(end, now)
	// A lease with a fixed end or a min hold needs more than the claim at once, and a protocol may
	// want each hand-over confirmed.
	byMessage := !o.Fixed && o.MinHold == 0 && !a.engine.features.Confirm
	return from, !stepped && !forged && young && byMessage
}
