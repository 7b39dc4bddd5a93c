package lockinfo

import (
	"fmt"
	"strings"
)

// A Deadlock is a cycle of callers of which each waits for what the next one holds. The last waits
// for what the first holds. None of them can go on.
type Deadlock struct {
	Members []Member `json:"members"`
}

// A Member is one caller of a Deadlock. It waits for a name while it holds another, which the
// member before it waits for.
type Member struct {
	Label string `json:"label"`          // of the caller
	Host  string `json:"host,omitempty"` // of its process; empty if it is not known
	PID   int    `json:"pid,omitempty"`  // of its process; 0 if it is not known
	Holds string `json:"holds"`          // the name that it holds
	Token int64  `json:"token"`          // the first fencing token of that hold
	Waits string `json:"waits"`          // the name that it waits for

	// Perhaps: the waiter for Waits has the process or the owner of the hold of Holds, and nothing
	// else tells that it is the same caller.
	Perhaps bool `json:"perhaps,omitempty"`
}

// String returns the cycle in one line, with long texts cut.
func (d Deadlock) String() string {
	const longest = 64
	cut := func(text string) string {
		if len(text) <= longest {
			return text
		}
		return fmt.Sprintf("%s... (%d bytes)", text[:40], len(text))
	}
	texts := make([]string, len(d.Members))
	for i, m := range d.Members {
		texts[i] = fmt.Sprintf("%q holds %q and waits for %q", cut(m.Label), cut(m.Holds), cut(m.Waits))
	}
	return strings.Join(texts, ", ")
}
