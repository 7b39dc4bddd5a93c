package lockinfo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Kind says what a name is used as. The kind of a name that nobody uses is empty.
type Kind string

// The kinds of names.
const (
	KindMutex     Kind = "mutex"
	KindRWMutex   Kind = "rwmutex"
	KindSemaphore Kind = "semaphore"
	KindElection  Kind = "election"
	KindLatch     Kind = "latch"
)

// An Info is what the servers said of a name at one moment.
type Info struct {
	Name  string    `json:"name"`
	Kind  Kind      `json:"kind,omitempty"`
	Class string    `json:"class,omitempty"` // what Config.Class of the client makes of the name
	At    time.Time `json:"at"`              // the server's time; the other times are of the same clock

	// Holds are the first 100 holds, and Queue the first 100 waiters. Client.Queue streams all
	// waiters. A quorum has no queue.
	Holders int      `json:"holders"` // how many holds there are in all, with what remains of holds
	Waiters int      `json:"waiters"` // how many wait in all
	Holds   []Hold   `json:"holds"`
	Queue   []Waiter `json:"queue"`

	Permits int64 `json:"-"` // of a semaphore: how many there are
	Taken   int64 `json:"-"` // of a semaphore: how many are held
	Count   int64 `json:"-"` // of a latch: how many have yet to count down

	// WaitingSince is when the waiter that waits for longest joined the queue; zero: none waits.
	WaitingSince time.Time `json:"waiting_since,omitzero"`

	Foreign string `json:"foreign,omitempty"` // what stands at the key, if holdfast did not write it; it is left alone

	// Masters is what each master of a quorum says. Holds are the verdict: what a majority of all
	// masters knows. Masters that do not count or do not answer may know a hold, so a hold is told
	// as well if a majority knows it together with them.
	Masters []Master `json:"masters,omitempty"`
}

// A State says how a name is used, or what a hold is. The states of a hold are StateHeld,
// StateHandedOver, StateBroken and StateMinHold. The last two are remainders: they keep others out,
// and are no leases.
type State string

// The states of names and holds.
const (
	StateFree       State = "free"
	StateHeld       State = "held"
	StateHandedOver State = "handed over" // to a waiter that is not known to have taken it up
	StateBroken     State = "broken"      // by Client.Break, and kept from others until its holder has stopped
	StateMinHold    State = "min hold"    // released, and kept from others until its min hold is over
	StateSet        State = "set"         // a latch that waits for its count
	StateOpen       State = "open"        // a latch whose count is 0
	StateForeign    State = "foreign"     // the key is none of ours
	StateUnknown    State = "unknown"     // of a quorum: fewer masters than a majority answered, of those that count
)

// State returns the state of the name: that of its Holder, or why there is none.
func (i Info) State() State {
	switch {
	case i.Foreign != "":
		return StateForeign
	case i.Kind == KindLatch && i.Count > 0:
		return StateSet
	case i.Kind == KindLatch:
		return StateOpen
	}
	if hold, ok := i.Holder(); ok {
		return hold.State
	}
	if counting, majority := Counting(i.Masters); counting < majority {
		return StateUnknown
	}
	return StateFree
}

// Holder returns the hold that says most of a name: the oldest that is held, or else handed over,
// broken, or in its min hold. It reports false if there is none.
func (i Info) Holder() (Hold, bool) {
	if len(i.Holds) == 0 {
		return Hold{}, false
	}
	return i.Holds[i.holderIndex()], true
}

// holderIndex returns the place of the Holder among the holds, of which there is at least one.
func (i Info) holderIndex() int {
	best := 0
	for at, h := range i.Holds {
		first := i.Holds[best]
		if cmp.Or(cmp.Compare(h.showRank(), first.showRank()), h.Since.Compare(first.Since)) < 0 {
			best = at
		}
	}
	return best
}

// LongestWait returns how long the waiter that waits for longest has waited; 0: none waits.
func (i Info) LongestWait() time.Duration {
	if i.WaitingSince.IsZero() {
		return 0
	}
	return max(i.At.Sub(i.WaitingSince), 0)
}

// Late reports whether one of the holds is late.
func (i Info) Late() bool { return i.lateIndex() >= 0 }

// lateIndex returns the place of the first late hold; -1: there is none.
func (i Info) lateIndex() int { return slices.IndexFunc(i.Holds, func(h Hold) bool { return h.Late }) }

// Cut returns the Info with at most so many holds, at least two, and at most so many waiters. The
// totals stay, and so do State, Holder and Late. Of the holds that are left out none is the Holder,
// nor the first that is late.
func (i Info) Cut(holds, waiters int) Info {
	i.Queue = i.Queue[:min(len(i.Queue), max(waiters, 0))]
	if holds = max(holds, 2); len(i.Holds) > holds {
		first := i.firstIndexes()
		kept := make([]Hold, 0, holds)
		for _, at := range first {
			kept = append(kept, i.Holds[at])
		}
		for at := 0; len(kept) < holds; at++ {
			if !slices.Contains(first, at) {
				kept = append(kept, i.Holds[at])
			}
		}
		i.Holds = kept
	}
	return i
}

// firstIndexes returns the places of the Holder and of the first late hold, if there are.
func (i Info) firstIndexes() (places []int) {
	if len(i.Holds) == 0 {
		return nil
	}
	places = []int{i.holderIndex()}
	if late := i.lateIndex(); late >= 0 && late != places[0] {
		places = append(places, late)
	}
	return places
}

// Summary returns what a list shows of a name, and what Compare looks at: the totals, the Holder,
// and the first late hold if that is another. It has no queue, and no masters unless they are why
// the state is unknown. Of its holds it shares no memory with the Info.
func (i Info) Summary() Info {
	short := i
	short.Name, short.Holds, short.Queue = strings.Clone(i.Name), nil, nil
	if i.State() != StateUnknown {
		short.Masters = nil
	}
	for _, at := range i.firstIndexes() {
		h := i.Holds[at]
		for _, text := range []*string{&h.By, &h.Owner, &h.Label, &h.Host} {
			*text = strings.Clone(*text)
		}
		short.Holds = append(short.Holds, h)
	}
	return short
}

// isUsed reports whether somebody uses the name, or something stands at its key.
func (i Info) isUsed() bool { return i.Kind != "" || i.Waiters > 0 || i.State() != StateFree }

// A Master is what one master of a quorum says of itself, and of a name if it was asked for one.
type Master struct {
	Node   string `json:"node"`          // "node 1" is the first store given to NewQuorum
	Counts bool   `json:"counts"`        // whether it counts towards a majority; false if it did not answer
	Why    string `json:"why,omitempty"` // why it does not count
	// the node that is the same server, such as "node 1"; it does not count
	SameAs  string        `json:"same_as,omitempty"`
	Err     error         `json:"-"`                 // of a master that did not answer
	Age     time.Duration `json:"-"`                 // since its memory began; 0 if it was not asked, or has not begun
	Answer  string        `json:"answer,omitempty"`  // to a request that failed, about its lock, in words
	Holds   []Hold        `json:"holds"`             // of the name
	Foreign string        `json:"foreign,omitempty"` // what stands at the key, if holdfast did not write it
}

// String returns the node and what it said, in one line.
func (m Master) String() string {
	switch {
	case m.Err != nil:
		return m.Node + ": " + m.Why
	case !m.Counts:
		return fmt.Sprintf("%s does not count: %s", m.Node, m.Why)
	case m.Answer != "":
		return m.Node + ": " + m.Answer
	}
	return m.Node + " counts"
}

// Counting returns how many of the masters of a quorum count, and how many are a majority. Both are
// 0 if there is no quorum.
func Counting(masters []Master) (counting, majority int) {
	if len(masters) == 0 {
		return 0, 0
	}
	for _, m := range masters {
		if m.Counts {
			counting++
		}
	}
	return counting, len(masters)/2 + 1
}
