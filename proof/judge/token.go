package judge

// IsToken reports whether a number can be a token.
func IsToken(n int64) bool { return 0 < n && n < 1<<53 }

// Tokens are the largest that a name has granted so far.
type Tokens struct {
	Largest   int64 // of all
	Exclusive int64 // of those that do not share
}

// Grow reports whether a token may be the next: a writer's is larger than all before, and a
// reader's larger than those of all writers before.
func (t Tokens) Grow(token int64, shares bool) bool {
	if shares {
		return token > t.Exclusive
	}
	return token > t.Largest
}

// With returns the tokens after one more grant.
func (t Tokens) With(token int64, shares bool) Tokens {
	t.Largest = max(t.Largest, token)
	if !shares {
		t.Exclusive = max(t.Exclusive, token)
	}
	return t
}

// A Grant is a hold as its process saw it begin. Times are readings of one clock.
type Grant struct {
	Claim                   // as it was granted
	Proc             string // its process
	Joined           bool   // readers of its process may join it: it shares, or has done since
	Token            int64
	Called, Returned int64
	Trusted          bool // when it returned, and nothing excused that another was too
}

// Before reports whether the grant surely came before another: it returned before the other was
// called; or both were trusted although they exclude each other, so the first had to end, and
// returned first. Nothing is sure of two readers: they may share one hold.
func (g Grant) Before(other Grant) bool {
	if g.Shares && other.Shares {
		return false
	}
	return g.Returned < other.Called ||
		g.Trusted && other.Trusted && g.Excludes(other.Claim) && g.Returned < other.Returned
}

// JoinedBy reports whether a later reader has entered the hold of g, as readers of one process may:
// it has no grant of its own.
func (g Grant) JoinedBy(later Grant) bool {
	return g.Joined && later.Shares && g.Proc == later.Proc && g.Token == later.Token
}

// A Fault is a grant with a wrong token, and an earlier grant that shows it.
type Fault struct {
	First, Second int    // of the grants
	Text          string // how the second is related to the first
}

// Faults finds every grant with a wrong token: it is not larger than that of a grant before it, or
// another lease has it. The grants are in the order of their returns. Of several that show a fault,
// the one with the largest token is named.
func Faults(grants []Grant) (faults []Fault) {
	var top int64 // the largest token so far: a larger one is right
	for i, later := range grants {
		if later.Token <= top {
			if first, text := Rival(grants[:i], later); text != "" {
				faults = append(faults, Fault{first, i, text})
			}
		}
		top = max(top, later.Token)
	}
	return faults
}

// Rival finds the grant that shows best that the token of a later one is wrong; no text: none does.
func Rival(grants []Grant, later Grant) (first int, text string) {
	for i, g := range grants {
		switch {
		case g.JoinedBy(later):
			return 0, ""
		case text != "" && g.Token <= grants[first].Token:
		case g.Token == later.Token:
			first, text = i, "has the token of"
		case g.Token > later.Token && g.Before(later):
			first, text = i, "was granted later, and has a smaller token than"
		}
	}
	return first, text
}
