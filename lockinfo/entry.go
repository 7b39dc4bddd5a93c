package lockinfo

import "time"

// An Entry is one thing of the history of a name, as the client wrote it that did it.
type Entry struct {
	// At is when it happened, by the server's clock, as well as a request tells that: a millisecond
	// and the time of the request. Of entries of two processes, tokens say the order.
	At time.Time `json:"at"`

	Kind     EntryKind     `json:"event"`
	Name     string        `json:"name"`
	LockKind Kind          `json:"kind,omitempty"`
	Owner    string        `json:"owner,omitempty"` // of WithOwner; else empty
	Label    string        `json:"label"`           // of the caller
	Host     string        `json:"host,omitempty"`  // of its process
	PID      int           `json:"pid,omitempty"`   // of its process
	Token    int64         `json:"token,omitempty"` // of the lease; of a break that of the hold
	Waited   time.Duration `json:"-"`               // of EntryGranted, if the caller had to wait, and of EntryGaveUp
	Held     time.Duration `json:"-"`               // of EntryReleased, EntryDetached and EntryLost

	// Holder is the label of the holder that the caller waited for, as far as it knew. By is that
	// of the client that broke the hold or evicted the waiter.
	Holder string `json:"holder,omitempty"`
	By     string `json:"by,omitempty"`

	// Reason is the code of the Reason why a lease was lost or a wait ended, such as "expired", or
	// "uncertain" of a release that the server did not confirm.
	Reason string `json:"reason,omitempty"`
}

// An EntryKind says what happened.
type EntryKind string

// The kinds of entries.
const (
	EntryGranted  EntryKind = "granted"  // a lease began
	EntryReleased EntryKind = "released" // a lease was given back, or its ticket was
	EntryDetached EntryKind = "detached" // a lease left its process, and its hold goes on as a ticket
	EntryLost     EntryKind = "lost"     // a lease was lost
	EntryBroken   EntryKind = "broken"   // the caller broke the hold of another
	EntryGaveUp   EntryKind = "gave up"  // the caller waited for long, and got no lease
)

// End reports whether the hold of the entry's token ended, as far as its process knew.
func (e Entry) End() bool { return e.Kind == EntryReleased || e.Kind == EntryLost }

type (
	entryFields Entry

	entryJSON struct {
		entryFields
		NameBase64 []byte  `json:"name_base64,omitempty"`
		Waited     float64 `json:"waited_seconds,omitempty"`
		Held       float64 `json:"held_seconds,omitempty"`
	}
)

// MarshalJSON implements json.Marshaler.
func (e Entry) MarshalJSON() ([]byte, error) {
	e.At = e.At.UTC()
	return encode(entryJSON{entryFields(e), nonTextBytes(e.Name), toSeconds(e.Waited), toSeconds(e.Held)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Entry) UnmarshalJSON(text []byte) error { return decode(text, e, accept(entryJSON.toEntry)) }

func (e entryJSON) toEntry() Entry {
	out := Entry(e.entryFields)
	out.Name, out.Waited, out.Held = decodeName(e.Name, e.NameBase64), fromSeconds(e.Waited), fromSeconds(e.Held)
	return out
}
