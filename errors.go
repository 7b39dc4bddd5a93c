package holdfast

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// What errors match with errors.Is.
var (
	// ErrHeld: another holds the lock. The error is a *HeldError.
	ErrHeld = errors.New("holdfast: held by another")

	// ErrLost: the lease was lost. The error is a *LostError.
	ErrLost = errors.New("holdfast: lease lost")

	// ErrNotHeld: the lease was released before, or the latch is not set.
	ErrNotHeld = errors.New("holdfast: not held")

	// ErrNoLeader: nobody leads.
	ErrNoLeader = errors.New("holdfast: no leader")

	// ErrClosed: the client is closed.
	ErrClosed = errors.New("holdfast: client closed")

	// ErrUncertain: the server did not confirm a release in time. Joined with the *StoreError that says more.
	ErrUncertain = errors.New("holdfast: not confirmed by the server")

	// ErrUnavailable: the server could not be asked, or cannot serve now. The error is a *StoreError, or a *WaitError
	// that no answer ever reached.
	ErrUnavailable = errors.New("holdfast: server unavailable")
)

// A HeldError says who holds a lock that was tried, or that a latch is set. It matches ErrHeld.
type HeldError struct {
	Name      string
	Kind      string        // "mutex" and so on
	Holder    string        // the label of one who holds; empty when only a min hold is left, whose holder has released it
	Holders   int           // how many hold; of a latch, how many have yet to count down
	Waiters   int           // how many wait in line
	Remaining time.Duration // until the first hold is over, unless it is renewed
}

func (e *HeldError) Error() string {
	if e.Kind == protocol.Latch.String() {
		return fmt.Sprintf("holdfast: %s %q is set: %d have yet to count down", e.Kind, shortened(e.Name), e.Holders)
	}
	how := "kept from others"
	switch {
	case e.Holder != "":
		how = fmt.Sprintf("held by %q", shortened(e.Holder))
	case e.Holders == 0:
		return fmt.Sprintf("holdfast: %s %q is held by nobody, %d waiting", e.Kind, shortened(e.Name), e.Waiters)
	}
	if e.Remaining > 0 { // else it is being handed on
		how += fmt.Sprintf(" for another %v", e.Remaining.Round(time.Millisecond))
	}
	return fmt.Sprintf("holdfast: %s %q is %s, %d waiting", e.Kind, shortened(e.Name), how, e.Waiters)
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// A WaitError says that ctx ended the waiting for a lock. It matches what ctx.Err said
// (context.Canceled or context.DeadlineExceeded), the cause of ctx, and ErrUnavailable if no answer
// of the server ever came. It never matches ErrHeld.
type WaitError struct {
	Name   string
	Holder string        // the label of one who held when the server was last heard; empty when not known
	Waited time.Duration // since Lock was called
	Err    error         // how ctx ended, and its cause; and the last *StoreError if the server was away
}

func (e *WaitError) Error() string {
	holder := ""
	if e.Holder != "" {
		holder = fmt.Sprintf(", held by %q", shortened(e.Holder))
	}
	waited := e.Waited.Round(time.Millisecond)
	return fmt.Sprintf("%swaited %v for %q%s: %s", prefix, waited, shortened(e.Name), holder, inner(e.Err))
}

// Unwrap is what ended the waiting.
func (e *WaitError) Unwrap() error { return e.Err }

// A LossReason says how a lease was lost.
type LossReason string

// How a lease is lost.
const (
	LossExpired LossReason = "no renewal was confirmed in time"
	LossGone    LossReason = "the hold is not there any more" // deleted, or the server forgot it
	LossMaxHold LossReason = "the max hold is over"
	LossForeign LossReason = "the key was overwritten"

	// LossReplaced: another process took the hold over with Mutex.Resume. Others are kept out until this process has ended the
	// lease's context.
	LossReplaced LossReason = "another process took it over"
)

// A LostError says how a lease was lost. It matches ErrLost.
type LostError struct {
	Name   string
	Token  int64
	Reason LossReason
	By     string // the label of the process that took the hold over, if one did
	Err    error  // the last failure of a renewal, if any
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("holdfast: lost %q (token %d): %s", shortened(e.Name), e.Token, e.Reason)
	if e.By != "" {
		text += fmt.Sprintf(", %q", shortened(e.By))
	}
	if e.Err != nil {
		text += ": " + inner(e.Err)
	}
	return text
}

// Is matches ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// Unwrap is the last failure of a renewal.
func (e *LostError) Unwrap() error { return e.Err }

// A StoreError is a request that got no answer, or that the server refused. Node is the address of
// the server that was asked, where the store knows it for sure: of a single server, and of a
// cluster's where one has answered or refused a connection. Of a quorum's master it is "node 1" and
// so on.
type StoreError struct {
	Op      string    // what was asked
	Name    string    // the lock
	Node    string    // empty where it is not known
	Kind    StoreKind // why
	Applied Applied   // whether the request took effect
	Err     error     // what the client library or the server said
}

func (e *StoreError) Error() string {
	text := prefix + e.Op
	if e.Name != "" {
		text += fmt.Sprintf(" %q", shortened(e.Name))
	}
	if e.Node != "" {
		text += " at " + shortened(e.Node)
	}
	return text + ": " + e.why()
}

// why is the error without what was asked of whom.
func (e *StoreError) why() string {
	return fmt.Sprintf("%s (%s): %s", e.Kind, e.Applied, inner(e.Err))
}

// Is matches ErrUnavailable where the server could not be asked or cannot serve now.
func (e *StoreError) Is(target error) bool {
	return target == ErrUnavailable && e.Kind != StoreDenied && e.Kind != StoreForeign && e.Kind != StoreUnsupported && e.Kind != StoreOther
}

// Unwrap is what the client library or the server said.
func (e *StoreError) Unwrap() error { return e.Err }

// A StoreKind says why a request failed.
type StoreKind string

// Why requests fail, and may succeed later: what waits goes on asking.
const (
	StoreUnreachable   StoreKind = "unreachable"
	StoreNoAnswer      StoreKind = "no answer"
	StoreLoading       StoreKind = "loading"
	StoreReadOnly      StoreKind = "read-only"
	StoreOutOfMemory   StoreKind = "out of memory"
	StoreNoReplicas    StoreKind = "too few replicas"
	StoreMisconfigured StoreKind = "cannot persist"
	StoreClusterDown   StoreKind = "cluster down"
)

// Why requests fail until somebody changes something: the waiting ends.
const (
	StoreDenied      StoreKind = "denied"      // password or permission
	StoreForeign     StoreKind = "foreign key" // of another type, kind or format; it was not touched
	StoreUnsupported StoreKind = "unsupported" // the server lacks what is needed
	StoreOther       StoreKind = "refused"
)

// Applied says whether a request that failed took effect.
type Applied string

// Whether a request took effect.
const (
	NotApplied     Applied = "not applied"
	AppliedUnknown Applied = "may have been applied"
)

// An ArgumentError says all that is wrong with the arguments of a call. Nothing was sent, but for two that the server alone can
// judge, and did without changing anything: a number of permits that is not the name's, and an owner that reads
// what it asks to write.
type ArgumentError struct {
	Call     string
	Problems []ArgumentProblem
}

// An ArgumentProblem is one bad argument.
type ArgumentProblem struct {
	Argument string
	Value    any
	Allowed  string
}

func (e *ArgumentError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		value := fmt.Sprintf("%v", p.Value)
		if s, ok := p.Value.(string); ok {
			value = fmt.Sprintf("%q", s)
		}
		texts[i] = fmt.Sprintf("%s is %s, allowed: %s", p.Argument, value, p.Allowed)
	}
	return fmt.Sprintf("holdfast: %s: %s", e.Call, strings.Join(texts, "; "))
}

// problems collects what is wrong.
type problems []ArgumentProblem

func (p *problems) add(argument string, value any, allowed string) {
	*p = append(*p, ArgumentProblem{argument, value, allowed})
}

func (p *problems) check(ok bool, argument string, value any, allowed string) {
	if !ok {
		p.add(argument, value, allowed)
	}
}

func (p problems) err(call string) error {
	if len(p) == 0 {
		return nil
	}
	return &ArgumentError{Call: call, Problems: p}
}

// joinArguments makes one error of two of the same call.
func joinArguments(first, second error) error {
	var a, b *ArgumentError
	if errors.As(first, &a) && errors.As(second, &b) {
		return &ArgumentError{Call: a.Call, Problems: append(a.Problems, b.Problems...)}
	}
	if first == nil {
		return second
	}
	return first
}

// lostError is the cause that ends a lease's context.
func lostError(lost engine.Lost) error {
	reason := map[engine.Why]LossReason{engine.Expired: LossExpired, engine.Gone: LossGone, engine.MaxHold: LossMaxHold,
		engine.Foreign: LossForeign, engine.Replaced: LossReplaced}[lost.Why]
	return &LostError{Name: lost.Name, Token: lost.Token, Reason: reason, By: lost.By, Err: public("renew", lost.Name, lost.Err)}
}

// public is the documented form of an error of the inner packages.
func public(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return published(op, name, err)
}

func published(op, name string, err error) error {
	if _, ok := err.(*compound); ok {
		return err
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, err := range several.Unwrap() {
			errs = append(errs, public(op, name, err))
		}
		return errors.Join(errs...)
	}
	var part *engine.PartError
	if errors.As(err, &part) {
		name, err = part.Name, part.Err
	}
	var (
		busy      *engine.Busy
		ended     *engine.WaitEnded
		uncertain *engine.Uncertain
		failure   *protocol.Failure
		foreign   *protocol.Foreign
	)
	switch {
	case errors.Is(err, engine.ErrNotHeld):
		return ErrNotHeld
	case errors.As(err, &busy):
		a := busy.Answer
		return &HeldError{Name: name, Kind: busy.Kind.String(), Holder: a.Holder.Label, Holders: a.Holders, Waiters: a.Waiters, Remaining: a.Remaining}
	case errors.As(err, &ended):
		return waitError(name, ended)
	case errors.As(err, &uncertain):
		return compose(": ", ErrUncertain, public(op, name, uncertain.Err))
	case errors.As(err, &foreign):
		return &StoreError{Op: foreign.Op, Name: foreign.Name, Node: foreign.Node, Kind: StoreForeign, Applied: NotApplied,
			Err: errors.New(foreign.Text())}
	case errors.As(err, &failure):
		if e := quorumError(failure); e != nil {
			return e
		}
		e := &StoreError{Op: failure.Op, Name: failure.Name, Node: failure.Node, Kind: kindOf(failure.Reason), Applied: NotApplied, Err: failure.Err}
		if failure.Unknown {
			e.Applied = AppliedUnknown
		}
		return e
	}
	return err
}

func waitError(name string, ended *engine.WaitEnded) error {
	out := &WaitError{Name: name, Holder: ended.Answer.Holder.Label, Waited: ended.Waited, Err: ended.Err}
	if ended.Failure != nil {
		out.Err = compose("; ", out.Err, public("lock", name, ended.Failure))
	}
	if !ended.Answered && !errors.Is(out.Err, ErrUnavailable) {
		out.Err = compose("; ", out.Err, ErrUnavailable)
	}
	return out
}

func kindOf(r protocol.Reason) StoreKind {
	kinds := map[protocol.Reason]StoreKind{
		protocol.Unreachable: StoreUnreachable, protocol.NoAnswer: StoreNoAnswer, protocol.Denied: StoreDenied,
		protocol.Loading: StoreLoading, protocol.ReadOnly: StoreReadOnly, protocol.OutOfMemory: StoreOutOfMemory,
		protocol.NoReplicas: StoreNoReplicas, protocol.Misconfigured: StoreMisconfigured, protocol.ClusterDown: StoreClusterDown,
		protocol.Unsupported: StoreUnsupported, protocol.ForeignKey: StoreForeign,
	}
	if kind, ok := kinds[r]; ok {
		return kind
	}
	return StoreOther
}
