package snapshot

import (
	"fmt"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/show"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// A Follower tells the differences between looks at names.
type Follower struct {
	Limit int // how many names it follows
	Full  bool

	known map[string]lockinfo.Info // a summary of each
}

// Look looks at all names, and tells what is different. It follows a name that it knows as long as
// the name is there, and a new one if there is room; Full says that there was none. After an error,
// names that were not told are taken to be as before.
func (f *Follower) Look(names iter.Seq2[lockinfo.Info, error], tell func(lockinfo.Change)) error {
	if f.known == nil {
		f.known = map[string]lockinfo.Info{}
	}
	seen := make(map[string]bool, len(f.known))
	var last time.Time
	for info, err := range names {
		if err != nil {
			return err
		}
		if info.At.IsZero() { // a key that is no lock's: the server was not asked about it
			info.At = last
			if last.IsZero() {
				info.At = time.Now()
			}
		} else {
			last = info.At
		}
		before, known := f.known[info.Name]
		if !known && len(f.known) >= f.Limit {
			f.Full = true
			continue
		}
		f.tellChanges(before, info, tell)
		now := info.Summary()
		f.known[now.Name], seen[now.Name] = now, true
	}
	for name, before := range f.known {
		if !seen[name] {
			delete(f.known, name)
			f.tellChanges(before, lockinfo.Info{Name: name, At: last}, tell)
		}
	}
	return nil
}

func (f *Follower) tellChanges(before, after lockinfo.Info, tell func(lockinfo.Change)) {
	for _, change := range lockinfo.Compare(before, after) {
		tell(change)
	}
}

// Sentence says what a change is, without the name, safe for a terminal.
func Sentence(c lockinfo.Change) (string, show.Style) {
	now, _ := c.After.Holder()
	switch c.Event {
	case lockinfo.EventHeld:
		text := fmt.Sprintf("held by %s, token %d", show.Text(now.Label), now.Token)
		before := heldBefore(c)
		if held := c.After.At.Sub(now.Since); before == "" && !now.Since.IsZero() && held > 2*time.Second {
			text += ", for " + show.Age(held)
		}
		return text + before, show.Good
	case lockinfo.EventFreed:
		return "free" + heldBefore(c), show.Faint
	case lockinfo.EventEnded:
		text := show.Lines(string(c.After.State()))
		if now.By != "" {
			text += " by " + show.Text(now.By)
		}
		return text + heldBefore(c), show.Bad
	case lockinfo.EventWaiting:
		return fmt.Sprintf("%d waiting, before %d", c.After.Waiters, c.Before.Waiters), show.Plain
	case lockinfo.EventHolders:
		return fmt.Sprintf("%d holders, before %d", c.After.Holders, c.Before.Holders), show.Plain
	case lockinfo.EventLate:
		return lateText(c.After), show.Warning
	case lockinfo.EventRenewed:
		return "renewed again", show.Good
	case lockinfo.EventCounted:
		return fmt.Sprintf("%s, %d to count down", show.Lines(string(c.After.State())), c.After.Count), show.Plain
	case lockinfo.EventForeign:
		return "foreign: " + show.Lines(c.After.Foreign), show.Warning
	}
	return show.Lines(string(c.Event)), show.Plain
}

// heldBefore says who held the name before, and for how long as far as it was seen.
func heldBefore(c lockinfo.Change) string {
	before, held := c.Before.Holder()
	if !held || before.Remainder() {
		return ""
	}
	text := "; was held by " + show.Text(before.Label)
	if !before.Since.IsZero() {
		text += ", for " + show.Age(c.Before.At.Sub(before.Since)) + " or more"
	}
	return text
}

func lateText(info lockinfo.Info) string {
	for _, h := range info.Holds {
		if h.Late {
			return fmt.Sprintf("late: %s renewed it %s ago, %s left", show.Text(h.Label),
				show.Age(info.At.Sub(h.Renewed)), show.Age(h.Remaining))
		}
	}
	return "late"
}
