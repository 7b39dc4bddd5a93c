package holdfast

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
)

// An Observer receives what happens to the locks of a client. Many goroutines call Observe, and go
// on when it returns. Observe must therefore be safe for concurrent use, return quickly, and not
// call the client.
type Observer interface {
	Observe(Event)
}

// An EventKind says what happened.
type EventKind int

// The kinds of events. Each comment names the durations and the error that the kind sets.
const (
	EventWaiting  EventKind = iota + 1 // a caller has to wait; in the queue it listens by now, if permitted
	EventGranted                       // a lease began on an answer or a message of the server, also by Attach; Waited
	EventRenewed                       // a renewal was confirmed; Headroom is how much trust had been left
	EventRetried                       // a request failed and will be tried again; Err, and Headroom of a lease
	EventPassed                        // a lease began on a hold that this process had; Waited
	EventLost                          // a lease was lost; Held, and Err is its *LostError
	EventReleased                      // a hold was given back, or detached; Held, and Err if the former is not certain
)

// String returns the kind in lower case, as it is used for metrics.
func (k EventKind) String() string {
	names := [...]string{"", "waiting", "granted", "renewed", "retried", "passed", "lost", "released"}
	if k <= 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// An Event is one thing that happened to one lock. Durations and errors that its kind does not name
// are zero.
type Event struct {
	Kind     EventKind
	Name     string
	Token    int64
	Waited   time.Duration
	Held     time.Duration
	Headroom time.Duration
	Err      error
}

func eventOf(e engine.Event) Event {
	out := Event{Kind: EventKind(e.Kind), Name: e.Name, Token: e.Token, Headroom: e.Left, Err: public("background", e.Name, e.Err)}
	switch e.Kind {
	case engine.Granted, engine.Passed:
		out.Waited = e.Took
	case engine.Released, engine.LostHold:
		out.Held = e.Took
	case engine.Waiting:
		out.Headroom = 0
	}
	return out
}
