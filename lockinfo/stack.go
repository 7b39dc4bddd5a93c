package lockinfo

import (
	"encoding/json"
	"time"
)

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
func (s *Stack) UnmarshalJSON(text []byte) error {
	var in stackJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	out := Stack(in.stackFields)
	out.Hold, out.Age, out.Frames = in.Hold.toHold(), fromSeconds(in.Age), nil
	if len(in.Frames) > 0 {
		out.Frames = in.Frames
	}
	*s = out
	return nil
}
