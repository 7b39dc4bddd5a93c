package lockinfo

import (
	"fmt"
	"time"
)

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
