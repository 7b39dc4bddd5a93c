package engine

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

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
