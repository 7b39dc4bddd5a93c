package history

import (
	"math"

	"github.com/holdfast-go/holdfast/proof/judge"
)

// never is the time of what has not happened.
const never = math.MaxInt64

// A Hold is one lease, or one entry into a lease, from the return of the lock on.
type Hold struct {
	judge.Claim    // as it was granted
	ID, Name, Proc string
	Called, Start  int64 // of the lock: its call and its return
	Token          int64
	Exclusive      int64 // until when it excludes readers too: End, or its downgrade; of a reader, Start
	End            int64 // when trust ended, or the end of the history; may be before Start
	Cause          Event // Call (of Release), Lost, Trust (its end came), Detach, Close, Kill

	Lock       Record   // the return of the lock
	Trusts     []Record // what the library said while it was held, in order
	Notice     *Record  // of the loss
	Releases   []*Op
	outer      *Hold   // the one entered, if it was
	bad        *Record // its loss was not told as it should be
	asked      Record  // the call of the lock
	detached   *Record
	checks     []*Op
	downgrades []*Op
}

// addNotice takes down what was said of the hold.
func (hold *Hold) addNotice(r *Record) {
	switch {
	case r.Event == Detach:
		hold.detached = r
	case r.Event == Trust:
		hold.Trusts = append(hold.Trusts, *r)
	case r.Result == Failed:
		hold.bad = r
	case hold.Notice == nil:
		hold.Notice = r
	}
}

// addOperation takes down an operation on the hold.
func (hold *Hold) addOperation(op *Op) {
	switch op.Call.Kind {
	case Release:
		hold.Releases = append(hold.Releases, op)
	case Downgrade:
		hold.downgrades = append(hold.downgrades, op)
	case Confirm:
		hold.checks = append(hold.checks, op)
	}
}

// findEnd finds the end of the hold: the earliest of what can end it.
func (h *History) findEnd(hold *Hold) {
	hold.End = never
	end := func(at int64, cause Event) {
		if at < hold.End {
			hold.End, hold.Cause = at, cause
		}
	}
	if n := len(hold.Trusts); n > 0 {
		// A renewal moves the trust end on, so the last one told counts.
		end(hold.Trusts[n-1].Until, Trust)
	} else {
		end(hold.Lock.Until, Trust)
	}
	if len(hold.Releases) > 0 {
		end(hold.Releases[0].Call.At, Call)
	}
	if hold.Notice != nil {
		end(hold.Notice.At, Lost)
	}
	if hold.detached != nil {
		end(hold.detached.At, Detach)
	}
	if at, killed := h.kills[hold.Proc]; killed {
		end(at, Kill)
	}
	if at, closed := h.closes[hold.Proc]; closed {
		end(at, Close)
	}
	hold.Exclusive = hold.End
	for _, op := range hold.downgrades {
		// A server that refused left it as it was; in all other cases it may read from the call on.
		if op.Return == nil || op.Return.Result != Unavailable {
			hold.Exclusive = min(hold.Exclusive, op.Call.At)
		}
	}
	if hold.Shares {
		hold.Exclusive = hold.Start
	}
}

// findRoot finds the root: of a chain of entries, the first hold. A lock under a lease that was
// over, and did not know it yet, is no entry but a new contender; its token tells. The lease that
// was entered has been settled before.
func (hold *Hold) findRoot() {
	hold.Root = hold.ID
	if outer := hold.outer; outer != nil && (hold.Token == outer.Token || hold.Start < outer.End) {
		hold.Root, hold.Owner = outer.Root, outer.Owner
	}
}

// isTrusted reports whether the hold was ever one: a lease that was over when Lock returned,
// because the process stood still in between, excludes nobody.
func (hold *Hold) isTrusted() bool { return hold.Start < hold.End }

// claimAt returns its claim at a moment while it is trusted.
func (hold *Hold) claimAt(moment int64) judge.Claim {
	claim := hold.Claim
	claim.Shares = hold.Exclusive <= moment
	return claim
}

// lastClaim returns its claim when it ended.
func (hold *Hold) lastClaim() judge.Claim {
	claim := hold.Claim
	claim.Shares = hold.Shares || len(hold.downgrades) > 0
	return claim
}
