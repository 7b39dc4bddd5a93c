package lockinfo

import "time"

// An Event says what has changed about a name.
type Event string

// The events.
const (
	EventHeld    Event = "held"    // its Holder has another token
	EventEnded   Event = "ended"   // its hold ended, and waiters or a remainder are there
	EventFreed   Event = "freed"   // nothing is left of the name
	EventWaiting Event = "waiting" // another number waits
	EventHolders Event = "holders" // another number holds, beside the same Holder
	EventLate    Event = "late"    // a hold was not renewed in time
	EventRenewed Event = "renewed" // no hold is late any more
	EventCounted Event = "counted" // a latch was set, or has another count
	EventForeign Event = "foreign" // its key is none of ours
)

// A Change is one difference between two snapshots of a name.
type Change struct {
	Event Event

	// Before is how the name was: the zero Info if nobody used it. After is how it is. Of
	// EventFreed it has the name and the time alone.
	Before, After Info
}

// Changes returns the differences between two snapshots of all names. A name that comes twice in
// one counts once. The time of EventFreed is the latest of the second snapshot.
func Changes(before, after []Info) []Change {
	gone := make(map[string]*Info, len(before))
	for i := range before {
		gone[before[i].Name] = &before[i]
	}
	var changes []Change
	seen, last := make(map[string]bool, len(after)), Info{}
	for i := range after {
		now := &after[i]
		if seen[now.Name] {
			continue
		}
		seen[now.Name] = true
		if now.At.After(last.At) {
			last.At = now.At
		}
		was := Info{}
		if known := gone[now.Name]; known != nil {
			was = *known
		}
		delete(gone, now.Name)
		changes = append(changes, Compare(was, *now)...)
	}
	for i := range before {
		if was := &before[i]; gone[was.Name] != nil {
			delete(gone, was.Name)
			changes = append(changes, Compare(*was, Info{Name: was.Name, At: last.At})...)
		}
	}
	return changes
}

// Compare returns the differences between two snapshots of a name. An Info that nobody uses, such
// as the zero Info, is a name that is not there. The time of EventFreed is that of after, or of
// before if that is later. Both may be summaries.
func Compare(before, after Info) []Change {
	if !before.isUsed() {
		before = Info{}
	}
	if !after.isUsed() {
		return freedChange(before, after.At)
	}
	was, now := summarize(before), summarize(after)
	var changes []Change
	note := func(is bool, event Event) {
		if is {
			changes = append(changes, Change{event, before, after})
		}
	}
	same := now.held != 0 && now.held == was.held
	note(now.state == StateForeign && was.state != StateForeign, EventForeign)
	note(now.held != 0 && !same, EventHeld)
	note(now.hasEndedSince(was), EventEnded)
	note(same && after.Holders != before.Holders, EventHolders)
	note(same && now.late && !was.late, EventLate)
	note(same && !now.late && was.late, EventRenewed)
	note(now.latch && (after.Count != before.Count || !was.latch), EventCounted)
	note(after.Waiters != before.Waiters, EventWaiting)
	return changes
}

// freedChange returns the change of a name that is not there any more, if it was.
func freedChange(before Info, at time.Time) []Change {
	if before.Name == "" {
		return nil
	}
	if at.Before(before.At) {
		at = before.At
	}
	return []Change{{EventFreed, before, Info{Name: before.Name, At: at}}}
}

// A summary is what Compare derives of an Info.
type summary struct {
	state State
	latch bool  // it is set or open
	token int64 // of the Holder; 0: there is none
	held  int64 // the same; 0 if it is a remainder
	late  bool
}

func summarize(i Info) summary {
	s := summary{state: i.State(), late: i.Late()}
	s.latch = s.state == StateSet || s.state == StateOpen
	if hold, ok := i.Holder(); ok {
		s.token = hold.Token
		if !hold.Remainder() {
			s.held = hold.Token
		}
	}
	return s
}

// hasEndedSince reports whether a hold ended: the one that was there, or one that was never seen
// and left a remainder.
func (s summary) hasEndedSince(was summary) bool {
	return s.held == 0 && (was.held != 0 || s.token != 0 && s.token != was.token)
}
