package holdfast

import (
	"context"
	"fmt"
	"strings"
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

// Deadlocks looks at all names for callers that wait for each other, and ends none of them.
func (c *Client) Deadlocks(ctx context.Context) ([]Deadlock, error) {
	return nil, c.operates(ctx, "Client.Deadlocks", "x")
}
