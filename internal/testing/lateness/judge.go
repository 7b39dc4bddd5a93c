package lateness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Ticket is what one ticket did at the server.
type Ticket struct {
	ID      protocol.ID
	Process int
	Entered time.Time     // when the server made it a holder; zero: never
	Late    time.Duration // after it could have entered

	spec   protocol.Spec
	weight int64
	joined time.Time
	heard  time.Time // since when messages reach its process: until then it may be passed
	left   time.Time // the queue, without a hold
	ends   time.Time // of its hold, or of what its min hold keeps
}

// Slack is how late a waiter may be: each place in the queue asks 20 ms later than the one before
// it, a server counts whole milliseconds, and requests and messages take their time.
const Slack = 250 * time.Millisecond

// moment is less than lies between two steps of a mix, and more than one step at the server seems
// to take.
const moment = 10 * time.Microsecond

// Faults returns the tickets that entered too late, too early or before another that came first,
// and the callers that did not enter; empty when there are none.
func (r *Run) Faults() (faults []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told()
	faults = slices.Clone(r.failed)
	for i, t := range r.tickets {
		if t.Entered.IsZero() {
			continue
		}
		earliest, passed := r.earliest(i)
		if t.Late = t.Entered.Sub(earliest); t.Late > Slack || t.Late < -2*time.Millisecond || passed != "" {
			faults = append(faults, fmt.Sprintf("%s of process %d entered %v after it could, at %v%s", t.ID[:4],
				t.Process, t.Late, t.Entered.Sub(r.began), passed))
		}
	}
	return faults
}

// String returns the story of the run.
func (r *Run) String() string {
	r.logMu.Lock()
	defer r.logMu.Unlock()
	return r.mix.String() + strings.Join(r.log, "\n")
}

// earliest returns when a ticket could have entered: all before it are in or have left, and there
// is room for it. A ticket that it passed is told.
func (r *Run) earliest(i int) (at time.Time, passed string) {
	t := r.tickets[i]
	at = t.joined
	if r.beside(t) {
		return at, ""
	}
	for _, before := range r.tickets[:i] {
		done := before.Entered
		if done.IsZero() {
			done = before.left
		}
		switch {
		case !done.IsZero() && !done.After(t.Entered.Add(moment)):
			if done.After(at) {
				at = done
			}
		case !before.heard.IsZero() && before.heard.Add(4*r.mix.Delay).Before(t.Entered): // it asks again once it hears
			passed = ", before " + string(before.ID[:4])
		}
	}
	for {
		room, change := r.room(i, at)
		if room {
			return at, passed
		}
		at = change
	}
}

// beside reports whether the owner of a ticket excluded others when it came: then it does not wait.
func (r *Run) beside(t *Ticket) bool {
	return t.spec.Owner != "" && slices.ContainsFunc(r.tickets, func(other *Ticket) bool {
		return other != t && !other.spec.Shared && other.spec.Owner == t.spec.Owner && !other.Entered.After(t.joined) &&
			other.ends.After(t.joined)
	})
}

// room reports whether a ticket has room beside the holds of others at a moment, or when the first
// of them ends.
func (r *Run) room(i int, at time.Time) (room bool, change time.Time) {
	t := r.tickets[i]
	taken := t.weight
	room = true
	for j, other := range r.tickets {
		in := other.Entered.Add(moment).Before(t.Entered)
		if j < i {
			in = !other.Entered.After(t.Entered.Add(moment))
		}
		if j == i || other.Entered.IsZero() || !in || !other.ends.After(at) {
			continue
		}
		taken += other.weight
		room = room && t.spec.Shared && other.spec.Shared
		if change.IsZero() || other.ends.Before(change) {
			change = other.ends
		}
	}
	if r.mix.Kind == protocol.Semaphore {
		room = taken <= r.mix.Permits
	}
	return room || change.IsZero(), change
}
