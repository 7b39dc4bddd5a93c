package show

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// mostIndents is how many levels of a chain are told apart by their indentation.
const mostIndents = 12

// Chain writes why a name is waited for: a line for its waiters, a line for each hold, and one for
// each root.
func (p Page) Chain(c lockinfo.Chain) error {
	lines := []string{Text(c.Lock.Name) + ": " + waitersText(c.Lock)}
	for _, link := range c.Links {
		line := strings.Repeat("  ", min(link.Depth+1, mostIndents)) + Text(link.Name) + ": " + holdText(link)
		var waits []string
		for _, w := range link.Waits {
			waits = append(waits, waitText(w, link.At))
		}
		if len(waits) > 0 {
			line += "; it " + strings.Join(waits, ", and ")
		}
		lines = append(lines, line)
	}
	if c.Cyclic() {
		lines = append(lines, "a cycle: callers above wait for each other, and break or evict ends that")
	}
	if c.Waits() {
		for _, root := range c.Roots() {
			lines = append(lines, "root: "+Text(root.Name)+" is "+holdText(root))
		}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(p.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// waitersText says how many wait for a name, and for how long.
func waitersText(info lockinfo.Info) string {
	switch {
	case info.Masters != nil:
		return "a quorum has no queue, so nobody knows who waits"
	case info.Waiters == 0:
		return "nobody waits"
	case info.Waiters == 1:
		return "1 waits, for " + Age(info.LongestWait())
	}
	return fmt.Sprintf("%d wait, the longest for %s", info.Waiters, Age(info.LongestWait()))
}

// holdText says in a sentence what a hold is, whose, and for how long.
func holdText(l lockinfo.Link) string {
	h := l.Hold
	by := holderProcess(h)
	if h.Label != "" && h.Host != "" {
		by += " (" + processName(h.Host, h.PID) + ")"
	}
	switch h.State {
	case lockinfo.StateBroken:
		return fmt.Sprintf("broken by %s, and kept from others for %s until %s has stopped", Text(h.By), Age(h.Remaining), by)
	case lockinfo.StateMinHold:
		return "released, and kept from others by its min hold for " + Age(h.Remaining)
	case lockinfo.StateHandedOver:
		return fmt.Sprintf("handed over to %s, which has not taken it up, token %d", by, h.Token)
	}
	text := fmt.Sprintf("held by %s", by)
	if !h.Since.IsZero() {
		text += " for " + Age(l.At.Sub(h.Since))
	}
	text += fmt.Sprintf(", token %d", h.Token)
	if h.Late {
		text += fmt.Sprintf(", late: last renewed %s ago", ageText(h.Renewed, l.At))
	}
	return text
}

// waitText says what a caller waits for.
func waitText(w lockinfo.Wait, now time.Time) string {
	text := "waits for " + Text(w.Name)
	if w.Perhaps {
		text = "perhaps " + text
	}
	if !w.Waiter.Since.IsZero() {
		text += " for " + Age(now.Sub(w.Waiter.Since))
	}
	switch w.Holds {
	case lockinfo.LocationAbove:
		return text + " (above: a cycle)"
	case lockinfo.LocationElsewhere:
		return text + " (told elsewhere)"
	}
	return text
}

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
