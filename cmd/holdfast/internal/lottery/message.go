package lottery

import "time"

// setup is what a worker must know. It goes over the pipe, not the command line, because the URL may hold a password.
type setup struct {
	Worker  int
	URL     string
	Prefix  string
	TTL     time.Duration
	Draw    time.Duration // how long drawing takes
	Without bool          // without the lock
}

// An order goes from the hall to a worker: one of its fields is set.
type order struct {
	Setup *setup `json:",omitempty"`
	Round int    `json:",omitempty"`
	// MaxHold goes with a round: the longest that the lock may be held in it; 0: as long as the holder lives.
	MaxHold time.Duration `json:",omitempty"`
	Answer  *answer       `json:",omitempty"`
}

// An answer is the hall's to the last report of a worker.
type answer struct {
	Drawn    bool   // entered: the round has been drawn
	Refused  string // draw: why the ledger did not take it
	Careless bool   // entered: draw without looking at the lease: somebody may have looked a moment ago, and then been stopped
	Dawdle   bool   // entered: take as long as you may
}

// A step is what a worker reports.
type step string

const (
	ready   step = "ready"
	entered step = "entered"
	drew    step = "drew"
	left    step = "left"
	renewed step = "renewed"
	done    step = "done"
)

// A report goes from a worker to the hall.
type report struct {
	Step   step
	Round  int
	Token  int64     `json:",omitempty"`
	Ticket int       `json:",omitempty"`
	Since  time.Time `json:",omitzero"`  // entered: when it began to wait
	At     time.Time `json:",omitzero"`  // entered: when it got in; done: when it began to release
	Until  time.Time `json:",omitzero"`  // entered, renewed: when its trust ends
	Lost   string    `json:",omitempty"` // left: the lease was lost, and how
	Failed string    `json:",omitempty"` // done: what went wrong
}
