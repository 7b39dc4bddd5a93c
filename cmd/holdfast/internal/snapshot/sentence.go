package snapshot

import (
	"fmt"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
)

// Sentence says what a change is, without the name, safe for a terminal.
func (c Change) Sentence() (string, show.Style) {
	now, _ := holderOf(c.Now)
	switch c.Event {
	case Held:
		text := fmt.Sprintf("held by %s, token %d", show.Text(now.Label), now.Token)
		if c.Before.Token == 0 && !now.Since.IsZero() && c.Now.At.Sub(now.Since) > 2e9 {
			text += ", for " + show.Age(c.Now.At.Sub(now.Since))
		}
		return text + c.held(), show.Good
	case Freed:
		return "free" + c.held(), show.Faint
	case Ended:
		text := string(c.Now.State)
		if len(c.Now.Holds) > 0 {
			h := c.Now.Holds[0]
			text = show.Lines(string(h.State))
			if h.By != "" {
				text += " by " + show.Text(h.By)
			}
		}
		return text + c.held(), show.Bad
	case Waiting:
		return fmt.Sprintf("%d waiting, before %d", c.Now.Waiters, c.Before.Waiters), show.Plain
	case Holders:
		return fmt.Sprintf("%d holders, before %d", c.Now.Holders, c.Before.Holders), show.Plain
	case Late:
		return late(c.Now), show.Warning
	case Renewed:
		return "renewed again", show.Good
	case Counted:
		return fmt.Sprintf("%s, %d to count down", show.Lines(string(c.Now.State)), c.Now.Count), show.Plain
	case Foreign:
		return "foreign: " + show.Lines(c.Now.Foreign), show.Warning
	}
	return show.Lines(string(c.Event)), show.Plain
}

// held says who held the name before, and for how long as far as it was seen.
func (c Change) held() string {
	if c.Before.Token == 0 {
		return ""
	}
	text := "; was held by " + show.Text(c.Before.Holder)
	if !c.Before.Since.IsZero() {
		text += ", for " + show.Age(c.Before.At.Sub(c.Before.Since)) + " or more"
	}
	return text
}

func late(info holdfast.LockInfo) string {
	for _, h := range info.Holds {
		if h.Late {
			return fmt.Sprintf("late: %s renewed it %s ago, %s left", show.Text(h.Label), show.Age(info.At.Sub(h.Renewed)), show.Age(h.Remaining))
		}
	}
	return "late"
}
