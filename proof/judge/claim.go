package judge

import (
	"time"
)

// A Claim is how a hold holds its name. It says which other holds must not be trusted beside it.
type Claim struct {
	Root   string // the first of the leases that entered one another; empty: none entered another
	Owner  string // of WithOwner
	Shares bool   // a reader, or a writer since its downgrade
	Weight int64  // its permits; 0: the name is no semaphore
}

// Together reports whether two holds may be held at one moment whatever their modes: leases that
// entered one another may, and so may those of one owner.
func (c Claim) Together(other Claim) bool {
	return c.Root != "" && c.Root == other.Root || c.Owner != "" && c.Owner == other.Owner
}

// Contends reports whether one of two holds has to wait for the other while there is no room for
// both.
func (c Claim) Contends(other Claim) bool {
	return !c.Together(other) && !(c.Shares && other.Shares)
}

// Excludes reports whether two holds must not be trusted at one moment. Permits do not exclude each
// other; their sum has a bound.
func (c Claim) Excludes(other Claim) bool {
	return c.Contends(other) && c.Weight == 0 && other.Weight == 0
}

// A Holder is a lease that somebody watches while it lasts.
type Holder interface {
	Claim() Claim  // Claim is how it holds now.
	Trusted() bool // Trusted reports whether it may be trusted now.
}

// Trusted returns those of some holders that are trusted now.
func Trusted[H Holder](holders []H) (trusted []H) {
	for _, h := range holders {
		if h.Trusted() {
			trusted = append(trusted, h)
		}
	}
	return trusted
}

// Sum returns how many permits holders have together.
func Sum[H Holder](holders []H) (permits int64) {
	for _, h := range holders {
		permits += h.Claim().Weight
	}
	return permits
}

// A Kept is the min hold of a hold. It keeps out what the hold excludes, however the hold ended.
type Kept struct {
	Claim
	Until time.Duration // since any moment
}

// Early returns how long before the end of the min hold another hold began; not positive: it did
// not.
func (k Kept) Early(other Claim, began time.Duration) time.Duration {
	if !k.Excludes(other) {
		return 0
	}
	return k.Until - began
}

// A Wait is a call that waits in a queue, from its call to its return. Times are readings of one
// clock.
type Wait struct{ Called, Returned int64 }

// PassedBy reports whether a later caller returned first. Calls that were sent and answered at
// nearly the same moment prove nothing: the later call must have begun so much later, and returned
// so much sooner.
func (w Wait) PassedBy(other Wait, later, sooner int64) bool {
	return other.Called > w.Called+later && other.Returned < w.Returned-sooner
}
