package holdfast

import (
	"context"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Deadlocks returns the deadlocks that WithDeadlockCheck sees, the first 1,000, and ends none of
// them. It looks at all names of the servers, so it needs the permission to SCAN, and lasts as long
// as that takes. If there seem to be deadlocks, it waits for up to 10 s and looks at these again:
// it returns those in which all callers still wait. The errors are as for Inspect. A quorum refuses
// it with an *ArgumentError.
func (c *Client) Deadlocks(ctx context.Context) ([]lockinfo.Deadlock, error) {
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
	out := make([]lockinfo.Deadlock, len(found))
	for i, d := range found {
		out[i] = deadlockOf(d)
	}
	return out, nil
}

// deadlockOf translates a cycle.
func deadlockOf(found *deadlock.Cycle) (d lockinfo.Deadlock) {
	for i := range found.Members {
		m := &found.Members[i]
		member := lockinfo.Member{Label: m.Place.Party.Label, Holds: m.Holds, Token: m.Hold.Token, Waits: m.Waits}
		member.Host, member.PID = processOf(m.Place.Process)
		d.Members = append(d.Members, member)
	}
	return d
}
