package lockinfo

import "time"

// A Mode says beside whom a hold is.
type Mode string

// The modes of holds and waiters.
const (
	ModeExclusive Mode = "exclusive" // alone: of a mutex or an election
	ModeWrites    Mode = "writes"    // alone: of a lock that others read
	ModeReads     Mode = "reads"     // beside other readers
	ModePermits   Mode = "permits"   // of a semaphore
)

// A Hold is one hold of a name, or what remains of one.
type Hold struct {
	State     State         `json:"state"`
	By        string        `json:"by,omitempty"`    // the label of the caller that broke it
	Owner     string        `json:"owner,omitempty"` // of WithOwner; else empty
	Label     string        `json:"label"`
	Host      string        `json:"host,omitempty"` // of its process; empty if it is not known
	PID       int           `json:"pid,omitempty"`  // of its process; 0 if it is not known
	Mode      Mode          `json:"mode"`
	Permits   int64         `json:"permits,omitempty"` // that it takes of a semaphore
	Token     int64         `json:"token"`             // the first fencing token of the grant, which Break takes
	LastToken int64         `json:"last_token"`        // the last one that the grant reserved; Break takes any between
	Since     time.Time     `json:"since,omitzero"`    // of the grant; zero if it is not known
	Remaining time.Duration `json:"-"`                 // until it ends, if it is not prolonged
	TTL       time.Duration `json:"-"`
	Fixed     bool          `json:"fixed"`            // it is not renewed
	Ticket    bool          `json:"ticket,omitempty"` // of a kept place: no process need have it
	Renewed   time.Time     `json:"renewed,omitzero"` // when it was last prolonged; zero if it is not known

	// Retains: its process may keep it unused, and gives it back if another asks (WithRetain).
	Retains bool `json:"retains,omitempty"`

	// Late: it is renewed, and was last prolonged more than half a TTL ago. Its process may be
	// stopped or cut off, or its max hold is nearly over.
	Late bool `json:"late"`
}

// Remainder reports whether the hold is over, and only what remains of it keeps others out.
func (h Hold) Remainder() bool { return h.State != StateHeld && h.State != StateHandedOver }

// showRank orders holds by how much they say of their name: 0 says most.
func (h Hold) showRank() int {
	switch h.State {
	case StateHeld:
		return 0
	case StateHandedOver:
		return 1
	case StateMinHold:
		return 3
	}
	return 2
}

// Liveness says whether a waiter lives.
type Liveness string

// Whether a waiter lives, as the server knows it.
const (
	AliveYes     Liveness = "yes"     // it asked in time, and listens
	AliveNo      Liveness = "no"      // it did not ask in time, or does not listen
	AliveUnknown Liveness = "unknown" // it asked in time, and nobody knows whether it listens
)

// A Waiter is one place in the queue of a name.
type Waiter struct {
	ID      string    `json:"id"`    // names the waiter for Client.Evict; it is of no other use
	Place   int       `json:"place"` // from 1; 0 of a kept place where nobody waits
	Owner   string    `json:"owner,omitempty"`
	Label   string    `json:"label"`
	Host    string    `json:"host,omitempty"`
	PID     int       `json:"pid,omitempty"`
	Mode    Mode      `json:"mode"`
	Permits int64     `json:"permits,omitempty"`
	Since   time.Time `json:"since,omitzero"` // when it joined the queue
	Alive   Liveness  `json:"alive"`
	Kept    bool      `json:"kept"`            // a place that stays while no process waits there
	Under   []string  `json:"under,omitempty"` // names that it holds while it waits, of WithDeadlockCheck and WithUnder
}

// A Stack says which call took a hold: that of the lease on it that lasts longest.
type Stack struct {
	Hold   Hold          `json:"hold"`
	Leases int           `json:"leases,omitempty"` // how many its process has on it, such as those of readers
	Age    time.Duration `json:"-"`                // of that lease, by the clock of its process
	Frames []Frame       `json:"frames"`           // the innermost call first
	Why    string        `json:"why,omitempty"`    // why there are no frames; else empty
}

// A Frame is a call in a stack.
type Frame struct {
	Function string `json:"function"` // with the path of its package
	File     string `json:"file"`     // without its directory
	Line     int    `json:"line"`
}

type (
	stackFields Stack

	stackJSON struct {
		stackFields
		Hold   holdJSON `json:"hold"`
		Age    float64  `json:"age_seconds,omitempty"`
		Frames []Frame  `json:"frames"`
	}
)

// MarshalJSON implements json.Marshaler.
func (s Stack) MarshalJSON() ([]byte, error) {
	frames := append([]Frame{}, s.Frames...)
	return encode(stackJSON{stackFields(s), s.Hold.toJSON(), toSeconds(s.Age), frames})
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stack) UnmarshalJSON(text []byte) error { return decode(text, s, accept(stackJSON.toStack)) }

func (s stackJSON) toStack() Stack {
	out := Stack(s.stackFields)
	out.Hold, out.Age, out.Frames = s.Hold.toHold(), fromSeconds(s.Age), nil
	if len(s.Frames) > 0 {
		out.Frames = s.Frames
	}
	return out
}
