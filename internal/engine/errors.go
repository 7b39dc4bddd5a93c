package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ErrNotHeld is the error of a lease that was released before.
var ErrNotHeld = errors.New("not held: released before")

// ErrReader refuses to exclude others under the context of a lease that shares the same name.
var ErrReader = errors.New("the context comes from a lease that only reads this name")

// ErrNotWriter refuses to downgrade what does not exclude others, or can do nothing else.
var ErrNotWriter = errors.New("not a lease that writes")

// A Busy says that others hold.
type Busy struct {
	Kind   protocol.Kind
	Answer protocol.Answer
}

func (*Busy) Error() string { return "held by another" }

// A WaitEnded says that the caller's context ended the waiting.
type WaitEnded struct {
	Err      error // how the context ended, and its cause
	Waited   time.Duration
	Answer   protocol.Answer // the last, if any came
	Answered bool            // whether any came
	Failure  error           // the last failure since then, or nil
}

func (w *WaitEnded) Error() string { return fmt.Sprintf("waited %v: %v", w.Waited, w.Err) }

func (w *WaitEnded) Unwrap() error { return w.Err }

// An Uncertain says that a release or a downgrade got no answer.
type Uncertain struct{ Err error }

func (u *Uncertain) Error() string { return "release without an answer: " + u.Err.Error() }

func (u *Uncertain) Unwrap() error { return u.Err }

// A Why says how a lease was lost.
type Why int

// How a lease is lost.
const (
	Expired  Why = iota + 1 // no renewal was confirmed before trust ended
	Gone                    // the server said that the hold is not there any more
	MaxHold                 // the max hold is over
	Foreign                 // the key was overwritten with something else
	Replaced                // another caller took the hold over
)

// A Lost tells how a lease was lost.
type Lost struct {
	Name  string
	Token int64
	Why   Why
	By    string // the label of the caller that took the hold over, if one did
	Err   error  // the last failure of a renewal, if any
}

// An EventKind is what happened.
type EventKind int

// What happens.
const (
	Waiting  EventKind = iota + 1 // a caller has to wait
	Granted                       // a lease began; Took is how long it was waited for
	Renewed                       // Left is how much trust was left when the answer came
	Retried                       // a request of a waiter or a renewal failed and will be tried again: Err
	Passed                        // a lease began on a hold of this process
	LostHold                      // a lease was lost: Err is its cause, Took is how long the hold lasted
	Released                      // a hold was given back, or detached; Took is how long it lasted, Err why that is not certain
)

// An Event is one thing that happened.
type Event struct {
	Kind  EventKind
	Name  string
	Token int64
	Took  time.Duration
	Left  time.Duration
	Err   error
}
