package holdfast

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// A DeadlockMember is one caller of a deadlock. It waits for a name while it holds another, which
// the member before it waits for.
type DeadlockMember struct {
	Label string // of the caller
	Host  string // of its process; empty if it is not known
	PID   int    // of its process; 0 if it is not known
	Holds string // the name that it holds
	Token int64  // the first fencing token of that hold
	Waits string // the name that it waits for
}

// A Deadlock is a cycle of callers of which each waits for what the next one holds. The last waits
// for what the first holds. None of them can go on.
type Deadlock struct {
	Members []DeadlockMember
}

// String returns the cycle in one line.
func (d Deadlock) String() string {
	texts := make([]string, len(d.Members))
	for i, m := range d.Members {
		texts[i] = fmt.Sprintf("%q holds %q and waits for %q", shortened(m.Label), shortened(m.Holds), shortened(m.Waits))
	}
	return strings.Join(texts, ", ")
}

// A DeadlockError says that a wait ended because the caller was part of a deadlock
// (WithDeadlockCheck). The error of the call is a *WaitError that holds it. The caller is the first
// member, and holds what the last one waits for.
type DeadlockError struct {
	Deadlock Deadlock
}

func (e *DeadlockError) Error() string { return prefix + "deadlock: " + e.Deadlock.String() }

// Deadlocks returns the deadlocks of callers that wait with WithDeadlockCheck, and ends none of
// them. It looks at all names of the servers, so it needs the permission to SCAN, and lasts as long
// as that takes. If there seem to be deadlocks, it waits for up to 10 s and looks at these again:
// it returns those in which all callers still wait, the first 1,000. Each of them ends by itself,
// so the result is for people. What WithDeadlockCheck does not see, it does not see either.
//
// The errors are as for Inspect. A client of a quorum is refused with an *ArgumentError, as a
// quorum has no queue.
func (c *Client) Deadlocks(ctx context.Context) ([]Deadlock, error) {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if len(bad) == 0 {
		bad.check(c.engine.Queues(), "Client", "made by NewQuorum", "made by New: a quorum has no queue")
	}
	if err := bad.err("Client.Deadlocks"); err != nil {
		return nil, err
	}
	found, err := c.engine.Deadlocks(ctx)
	if err != nil {
		return nil, operated("inspect", "", err)
	}
	out := make([]Deadlock, len(found))
	for i, d := range found {
		out[i] = deadlockOf(d)
	}
	return out, nil
}

// deadlockOf translates a cycle.
func deadlockOf(found *engine.Deadlock) (d Deadlock) {
	for i := range found.Members {
		m := &found.Members[i]
		member := DeadlockMember{Label: m.Place.Party.Label, Holds: m.Holds, Token: m.Hold.Token, Waits: m.Waits}
		member.Host, member.PID = processOf(m.Place.Process)
		d.Members = append(d.Members, member)
	}
	return d
}
