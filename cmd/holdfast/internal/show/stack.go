package show

import (
	"fmt"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// Stacks writes which call took each hold, the innermost frame first, or why that is not known.
func (p Page) Stacks(stacks []lockinfo.Stack) error {
	for _, s := range stacks {
		lines := []string{"", fmt.Sprintf("%s, token %d", holderProcess(s.Hold), s.Hold.Token)}
		switch {
		case s.Why != "":
			lines[1] += ": " + Lines(s.Why)
		case s.Leases > 1:
			lines[1] += fmt.Sprintf(": the oldest of %d leases was taken %s ago by", s.Leases, Age(s.Age))
		default:
			lines[1] += fmt.Sprintf(": taken %s ago by", Age(s.Age))
		}
		for _, f := range s.Frames {
			lines = append(lines, fmt.Sprintf("  %s %s:%d", Text(f.Function), Text(f.File), f.Line))
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(p.Out, line); err != nil {
				return err
			}
		}
	}
	return nil
}
