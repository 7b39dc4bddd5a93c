package show

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast"
)

// A Deadlock is a cycle as JSON.
type Deadlock struct {
	Version int      `json:"version,omitempty"` // of a document; a part of one has none
	Members []Member `json:"members"`
}

// A Member is a caller of a cycle as JSON.
type Member struct {
	Label string `json:"label"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Holds string `json:"holds"`
	Token int64  `json:"token"`
	Waits string `json:"waits"`
}

// DeadlockOf is a cycle as JSON.
func DeadlockOf(d holdfast.Deadlock) Deadlock {
	out := Deadlock{Members: []Member{}}
	for _, m := range d.Members {
		out.Members = append(out.Members, Member{Label: m.Label, Host: m.Host, PID: m.PID, Holds: m.Holds, Token: m.Token, Waits: m.Waits})
	}
	return out
}

// Cycle shows a cycle in a line for each caller.
func Cycle(d holdfast.Deadlock) string {
	var out strings.Builder
	for _, m := range d.Members {
		label := Text(m.Label)
		if m.Label == "" {
			label = process(m.Host, m.PID)
		}
		fmt.Fprintf(&out, "  %s holds %s (token %d) and waits for %s\n", label, Text(m.Holds), m.Token, Text(m.Waits))
	}
	return out.String()
}
