package snapshot

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// An Event is a kind of difference between two looks.
type Event string

// The events of a name.
const (
	Held    Event = "held"    // somebody holds it who did not before
	Freed   Event = "freed"   // nobody holds it, waits for it or is kept out any more
	Ended   Event = "ended"   // its hold is over, and something keeps others out, or they wait
	Waiting Event = "waiting" // another number waits
	Holders Event = "holders" // another number holds it
	Late    Event = "late"    // its hold was not renewed in time
	Renewed Event = "renewed" // its late hold was renewed
	Counted Event = "counted" // a latch has another count
	Foreign Event = "foreign" // its key is none of ours
)

// A Change is one difference between two looks.
type Change struct {
	Event  Event
	Name   string
	Now    holdfast.LockInfo // of Freed only its name and time
	Before Brief             // zero for a name that is seen for the first time
}

// A Brief is what a Follower remembers of a name.
type Brief struct {
	State   holdfast.LockState
	Holder  string // the label of its oldest hold
	Token   int64
	Since   time.Time
	At      time.Time // of the look
	Holders int
	Waiters int
	Count   int64
	Late    bool
}

// brief is what is remembered of a name.
func brief(info holdfast.LockInfo) Brief {
	b := Brief{State: info.State, At: info.At, Holders: info.Holders, Waiters: info.Waiters, Count: info.Count}
	if h, ok := holderOf(info); ok {
		// A copy, as the label may be a part of a larger text.
		b.Holder, b.Token, b.Since = strings.Clone(h.Label), h.Token, h.Since
	}
	b.Late = slices.ContainsFunc(info.Holds, func(h holdfast.HoldInfo) bool { return h.Late })
	return b
}

// holderOf is the oldest hold that is no remainder.
func holderOf(info holdfast.LockInfo) (oldest holdfast.HoldInfo, found bool) {
	for _, h := range info.Holds {
		if h.State != holdfast.HoldHeld && h.State != holdfast.HoldHandedOver {
			continue
		}
		if !found || h.Since.Before(oldest.Since) {
			oldest, found = h, true
		}
	}
	return oldest, found
}

// A Follower tells the differences between looks at names.
type Follower struct {
	Limit int // how many names it follows
	Full  bool

	known map[string]Brief
}

// Look looks at all names, and tells what is different. It follows a name that it knows as long as
// the name is there, and a new one if there is room; Full says that there was none. After an error,
// names that were not told are taken to be as before.
func (f *Follower) Look(names iter.Seq2[holdfast.LockInfo, error], tell func(Change)) error {
	if f.known == nil {
		f.known = map[string]Brief{}
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
		now := brief(info)
		for _, event := range differences(before, now) {
			tell(Change{Event: event, Name: info.Name, Now: info, Before: before})
		}
		f.known[info.Name], seen[info.Name] = now, true
	}
	for name, before := range f.known {
		if !seen[name] {
			delete(f.known, name)
			at := last
			if at.Before(before.At) {
				at = before.At
			}
			tell(Change{Event: Freed, Name: name, Before: before, Now: holdfast.LockInfo{Name: name, State: holdfast.StateFree, At: at}})
		}
	}
	return nil
}

// differences are the events between two looks at a name that is there.
func differences(before, now Brief) []Event {
	var events []Event
	add := func(is bool, event Event) {
		if is {
			events = append(events, event)
		}
	}
	add(now.State == holdfast.StateForeign && before.State != now.State, Foreign)
	add(now.Token != 0 && now.Token != before.Token, Held)
	add(now.Token == 0 && before.Token != 0, Ended)
	if now.Token != 0 && now.Token == before.Token {
		add(now.Holders != before.Holders, Holders)
		add(now.Late && !before.Late, Late)
		add(!now.Late && before.Late, Renewed)
	}
	latch := now.State == holdfast.StateSet || now.State == holdfast.StateOpen
	add(latch && (now.Count != before.Count || now.State != before.State), Counted)
	add(now.Waiters != before.Waiters, Waiting)
	return events
}
