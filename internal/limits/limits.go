// Package limits has the bounds of what users of the module may ask for.
package limits

import "time"

// The bounds of a lock, and of the place of a ticket.
const (
	MinTTL = 100 * time.Millisecond
	MaxTTL = 24 * time.Hour

	MinKeep = time.Second
	MaxKeep = 10 * time.Minute

	MaxText  = 1 << 10 // bytes of a name, owner, label or prefix
	MaxGroup = 1000    // names of a group
)

// IsKeep reports whether a place may be kept for so long without a process that waits there.
func IsKeep(keep time.Duration) bool {
	return keep >= MinKeep && keep <= MaxKeep && keep%time.Millisecond == 0
}
