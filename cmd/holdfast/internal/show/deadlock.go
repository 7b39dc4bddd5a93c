package show

import (
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// Cycle shows a cycle in a line for each caller.
func Cycle(d lockinfo.Deadlock) string {
	var out strings.Builder
	for _, m := range d.Members {
		label := Text(m.Label)
		if m.Label == "" {
			label = processName(m.Host, m.PID)
		}
		waits := "waits"
		if m.Perhaps {
			waits = "perhaps waits"
		}
		fmt.Fprintf(&out, "  %s holds %s (token %d) and %s for %s\n", label, Text(m.Holds), m.Token, waits,
			Text(m.Waits))
	}
	return out.String()
}
