package simulate

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A breakAttempt is one to end the hold that has a token of these.
type breakAttempt struct{ first, last int64 }

// matches reports whether the attempt may have been made on a hold.
func (a breakAttempt) matches(h *holding, name string) bool {
	return a.first <= h.tokens[name] && h.tokens[name] <= a.last
}

// block is more tokens than a grant reserves.
const block = 1 << 12

// A breaking is a hold that was ended. Its code has not stopped before its release.
type breaking struct {
	name  string
	until time.Time // how long others are kept out at least, unless it is released
}

// mayBeBroken reports whether somebody has tried to end a hold, by a token of the same block. mu is
// held.
func (l *ledger) mayBeBroken(h *holding) bool {
	return slices.ContainsFunc(h.op.Names, func(name string) bool {
		return slices.ContainsFunc(l.breaks[name], func(a breakAttempt) bool { return a.matches(h, name) })
	})
}

// mayBeEnded reports whether an operator may have ended a hold: the lease says so, or has not been
// told. mu is held.
func (l *ledger) mayBeEnded(h *holding, lost *holdfast.LostError) bool {
	return (lost == nil || lost.Reason == holdfast.LossBroken) && l.mayBeBroken(h)
}

// noteLoss notes that a hold was lost. A hold that was broken keeps others out until its release,
// or its end. mu is held.
func (l *ledger) noteLoss(h *holding, lost *holdfast.LostError) {
	r := l.classes[class(h.op.Names[0])]
	if r.noteEnd(h); lost.Reason == holdfast.LossBroken {
		r.idle = time.Now().Add(h.op.TTL * 101 / 100)
	}
}

// checkBroken checks that a new hold does not begin before the code of one that was broken has
// stopped, or its time is over. mu is held.
func (l *ledger) checkBroken(name string, h *holding) {
	held := judge.Sum(judge.Trusted(l.live[name]))
	for _, other := range l.granted[name] {
		if !other.stillRuns(name) || time.Now().Before(l.excusedUntil) {
			continue
		}
		held += other.op.Weight
		if h.overlaps(other) || held > maxPermits {
			l.addViolation(judge.Overlap, "%s: %v got in while %v, which was broken, had not stopped", name, h, other)
		}
	}
}

// stillRuns reports whether a hold of a name was broken, and its code may still run.
func (h *holding) stillRuns(name string) bool {
	return h.broken != nil && h.broken.name == name && !h.released && !h.excused && h.lease.Err() != nil &&
		time.Now().Before(h.broken.until)
}
