package engine

import (
	"context"
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

// ErrRenewed refuses to extend a hold that the watchdog renews.
var ErrRenewed = errors.New("the lease is renewed by itself")

// A BusyError says that others hold.
type BusyError struct {
	Kind   protocol.Kind
	Answer protocol.Answer
}

func (*BusyError) Error() string { return "held by another" }

// A WaitFailure says that the caller's context ended the waiting, or a call of a few requests, or
// that its ticket was evicted.
type WaitFailure struct {
	Kind     protocol.Kind // 0: nothing was waited for
	Err      error         // how the context ended, and its cause; or the *protocol.Evicted or *deadlock.Cycle
	Waited   time.Duration
	Answer   protocol.Answer // the last, if any came
	Answered bool            // whether any came
	Failure  error           // the last failure since then, or nil

	holderContext context.Context // of the caller of the holder, if that is of this process; else nil
}

func (w *WaitFailure) Error() string { return fmt.Sprintf("waited %v: %v", w.Waited, w.Err) }

func (w *WaitFailure) Unwrap() error { return w.Err }

// endedWait reports whether an error is a *WaitFailure.
func endedWait(err error) bool { return errors.As(err, new(*WaitFailure)) }

// Held reports whether the last answer said that others hold.
func (w *WaitFailure) Held() bool {
	return w.Answered && (w.Answer.Status == protocol.Queued || w.Answer.Status == protocol.Busy)
}

// ErrGoneLater says that the hold was not there when a release without an answer was sent again.
// That release may have removed it. Or the hold had ended before, and another held the name.
var ErrGoneLater = errors.New("the first release had no answer, and the next one found no hold")

// An UncertainError says that a release or a downgrade got no answer, or none that says what became
// of the hold (ErrGoneLater).
type UncertainError struct{ Err error }

func (u *UncertainError) Error() string { return "release without an answer: " + u.Err.Error() }

func (u *UncertainError) Unwrap() error { return u.Err }

// A Why says how a lease was lost.
type Why int

// How a lease is lost.
const (
	Expired Why = iota + 1 // no renewal was confirmed before trust ended
	Gone                   // the server said that the hold is not there any more
	MaxHold                // the max hold is over
	Foreign                // the key was overwritten with something else
	Broken                 // an operator ended the hold
)

// A Lost tells how a lease was lost.
type Lost struct {
	Name  string
	Token int64
	Why   Why
	By    string // the label of the operator that broke the hold, if one did
	Err   error  // the last failure of a renewal, if any

	Late time.Duration // how late this process was with its renewal; 0: not so that it matters
}
