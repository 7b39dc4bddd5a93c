package holdfast

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Errors that errors.Is matches.
var (
	ErrLost     = errors.New("holdfast: lease lost")               // the error is a *LostError
	ErrNotHeld  = errors.New("holdfast: not held")                 // released or detached, or the latch is not set
	ErrNoLeader = errors.New("holdfast: no leader")                // of an Election
	ErrClosed   = errors.New("holdfast: client closed")            // by Client.Close
	ErrTicket   = errors.New("holdfast: ticket of no use")         // the error is a *TicketError
	ErrWaitOver = errors.New("holdfast: the time to wait is over") // a server answered; the error is a *WaitError

	// ErrHeld means that another contender holds the lock: one test for tries and for waits whose
	// time is over. The error is a *HeldError, or a *WaitError that holds one.
	ErrHeld = errors.New("holdfast: held by another")

	// ErrUncertain means that the server did not confirm a release or a downgrade, as Lease.Release
	// says. It is joined with the error that says more, such as a *StoreError.
	ErrUncertain = errors.New("holdfast: not confirmed by the server")

	// ErrUnavailable means that the server could not be asked, or cannot serve now. The error is a
	// *StoreError, a *QuorumError, or a *WaitError that says so.
	ErrUnavailable = errors.New("holdfast: server unavailable")
)

// A HeldError names the holder of a lock that was tried, or says that a latch is set. It matches
// ErrHeld.
type HeldError struct {
	Name      string
	Kind      string        // "mutex" and so on
	Holder    string        // the label of a holder; empty if only a remainder is left
	Owner     string        // of that holder, if it was taken with WithOwner; else empty
	Token     int64         // the first fencing token of its hold; 0 if it is not told
	Since     time.Time     // when its hold was granted, by the server's clock; zero if that is not known
	Holders   int           // how many holders there are; of a latch, how many have yet to count down
	Waiters   int           // how many wait in the queue
	Remaining time.Duration // until the first hold is over, unless it is renewed, as most holds are

	// Remainder is what keeps others out if nobody holds: lockinfo.StateBroken or StateMinHold. It
	// is empty if somebody holds. BrokenBy is the label of the client that broke the hold.
	Remainder lockinfo.State
	BrokenBy  string

	// Ticket says that the holder is the ticket of a place, and that Holder made it. No process
	// need have it.
	Ticket bool

	// Retains says that the holder's process may keep its hold unused (WithRetain). It was told
	// that another asks, and did not give it back in time.
	Retains bool
}

func (e *HeldError) Error() string {
	if e.Kind == protocol.Latch.String() {
		return fmt.Sprintf("holdfast: %s %q is set, and its count is %d", e.Kind, shorten(e.Name), e.Holders)
	}
	how := e.holderText()
	switch {
	case e.Holder != "":
		if more := e.Holders - 1; more > 0 {
			how += fmt.Sprintf(", with %d more", more)
		}
		if e.Retains {
			how += ", which may keep it unused and was asked to give it back"
		}
		if e.Remaining > 0 { // otherwise the hold is being handed on
			how += fmt.Sprintf(", %v left unless renewed", e.Remaining.Round(time.Millisecond))
		}
	case e.Holders == 0:
		return fmt.Sprintf("holdfast: %s %q is held by nobody, %d waiting", e.Kind, shorten(e.Name), e.Waiters)
	case e.Remaining > 0:
		how += fmt.Sprintf(" for another %v", e.Remaining.Round(time.Millisecond))
	}
	return fmt.Sprintf("holdfast: %s %q is %s, %d waiting", e.Kind, shorten(e.Name), how, e.Waiters)
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// holderText returns who holds, and since when, in the zone of this process; or what keeps others
// out.
func (e *HeldError) holderText() string {
	switch {
	case e.Holder != "":
	case e.Remainder == lockinfo.StateBroken:
		return "broken" + byText(e.BrokenBy) + ", and kept from others"
	case e.Remainder == lockinfo.StateMinHold:
		return "released, and kept from others by its min hold"
	default:
		return "kept from others"
	}
	text := fmt.Sprintf("held by %q", shorten(e.Holder))
	if e.Ticket {
		text += " (a ticket)"
	}
	if e.Since.IsZero() {
		return text + " since unknown"
	}
	return text + " since " + e.Since.Format(time.RFC3339)
}

// A WaitError says that the waiting for a lock ended, or that ctx ended a call before its answer
// came. Its Reason says by what:
//
//   - WaitOver: it matches ErrWaitOver if a server answered, and ErrHeld if the last answer said
//     that another holds. It then holds the *HeldError.
//   - WaitContext: it matches what ctx.Err said and the cause of ctx, and never ErrHeld.
//   - WaitEvicted, WaitDeadlock: it matches none of these.
//
// The first two match ErrUnavailable, too, if no answer ever came, or the server was away at last.
type WaitError struct {
	Name     string
	Holder   string            // the label of a holder in the last answer; empty if not known
	Owner    string            // of that holder, if it was taken with WithOwner; else empty
	Token    int64             // the first fencing token of its hold; 0 if it is not told
	Since    time.Time         // when its hold was granted, by the server's clock; zero if that is not known
	Held     *HeldError        // all that the last answer said of who holds; nil: nobody did, or none came
	Waited   time.Duration     // since the call began
	Reason   Reason            // WaitOver, WaitContext, WaitEvicted or WaitDeadlock
	By       string            // the label of the client that evicted the waiter, if one did
	Err      error             // what it matches, as the type says; and the last *StoreError if the server was away
	Deadlock lockinfo.Deadlock // the cycle of WaitDeadlock: its first member is the caller
}

func (e *WaitError) Error() string {
	held, holder := e.Held, ""
	if held == nil && e.Holder != "" {
		held = &HeldError{Holder: e.Holder, Since: e.Since}
	}
	if held != nil {
		holder = ", " + held.holderText()
	}
	waited := e.Waited.Round(time.Millisecond)
	return fmt.Sprintf("%swaited %v for %q%s: %s", prefix, waited, shorten(e.Name), holder, e.endText())
}

func (e *WaitError) endText() string {
	switch e.Reason {
	case WaitEvicted:
		return string(e.Reason) + byText(e.By)
	case WaitDeadlock:
		return string(e.Reason) + ": " + e.Deadlock.String()
	}
	return innerText(e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// A Reason says why a wait ended, why a lease was lost, or why a ticket cannot be attached.
type Reason string

// The reasons of a WaitError.
const (
	WaitOver     Reason = "the time to wait is over" // of WithWait or Config.Wait
	WaitContext  Reason = "the context ended"
	WaitEvicted  Reason = "taken out of the queue" // by an operator, with Client.Evict
	WaitDeadlock Reason = "deadlock"               // the caller was part of one: WithDeadlockCheck
)

// The reasons of a LostError.
const (
	LossExpired Reason = "no renewal was confirmed in time"
	LossGone    Reason = "the hold is not there any more" // deleted, or the server forgot it
	LossMaxHold Reason = "the max hold is over"
	LossForeign Reason = "the key was overwritten"
	LossBroken  Reason = "it was broken" // by an operator, with Client.Break
)

// Code returns the reason in a word, as it is used for metrics. Of a loss it is "expired", "gone",
// "max_hold", "foreign" or "broken"; of a wait "over", "context", "evicted" or "deadlock"; of
// a ticket "prefix", "format", "gone" or "broken". It is "other" for none of the constants.
func (r Reason) Code() string {
	code, known := map[Reason]string{
		LossExpired: "expired", LossGone: "gone", LossMaxHold: "max_hold", LossForeign: "foreign", LossBroken: "broken",
		WaitOver: "over", WaitContext: "context", WaitEvicted: "evicted", WaitDeadlock: "deadlock",
		TicketPrefix: "prefix", TicketFormat: "format", TicketGone: "gone", TicketBroken: "broken",
	}[r]
	if !known {
		return "other"
	}
	return code
}

// A LostError says how a lease was lost. It matches ErrLost.
type LostError struct {
	Name   string
	Token  int64
	Reason Reason
	By     string        // the label of the client that broke the hold, if one did
	Err    error         // the last failure of a renewal, if any
	Late   time.Duration // of this process with its renewal, as it stood still; 0: no later than a request may take
}

func (e *LostError) Error() string {
	text := fmt.Sprintf("holdfast: lost %q (token %d): %s%s", shorten(e.Name), e.Token, e.Reason, byText(e.By))
	if e.Late > 0 {
		text += fmt.Sprintf(", as this process was %v late with its own", e.Late.Round(time.Millisecond))
	}
	if e.Err != nil {
		text += ": " + innerText(e.Err)
	}
	return text
}

// byText names the client that ended a hold or a wait, if it is known.
func byText(label string) string {
	if label == "" {
		return ""
	}
	return fmt.Sprintf(" by %q", shorten(label))
}

// Is matches ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

func (e *LostError) Unwrap() error { return e.Err }

// A StoreError describes a request that got no answer, or that the server refused.
type StoreError struct {
	Op             string    // the operation, such as "lock"
	Name           string    // the lock
	Node           string    // the address of the server, or "node 1" and so on of a quorum; empty if it is not known
	Kind           StoreKind // why
	Err            error     // what the client library or the server said
	MayHaveApplied bool      // it is not known whether the request took effect; otherwise it did not
}

func (e *StoreError) Error() string {
	text := prefix + e.Op
	if e.Name != "" {
		text += fmt.Sprintf(" %q", shorten(e.Name))
	}
	if e.Node != "" {
		text += " at " + shorten(e.Node)
	}
	return text + ": " + e.failureText()
}

// failureText returns the error without the operation, the name and the server.
func (e *StoreError) failureText() string {
	applied := "not applied"
	if e.MayHaveApplied {
		applied = "may have been applied"
	}
	return fmt.Sprintf("%s (%s): %s", e.Kind, applied, innerText(e.Err))
}

// Is matches ErrUnavailable if the server is away or cannot serve now.
func (e *StoreError) Is(target error) bool {
	if target != ErrUnavailable {
		return false
	}
	switch e.Kind {
	case StoreDenied, StoreForeign, StoreUnsupported, StoreOther, StoreEvicts, StoreSameServer:
		return false
	}
	return true
}

func (e *StoreError) Unwrap() error { return e.Err }

// A StoreKind says why a request failed.
type StoreKind string

// Kinds of failures that may pass. A call that waits goes on asking.
const (
	StoreUnreachable   StoreKind = "unreachable"
	StoreNoAnswer      StoreKind = "no answer"
	StoreNotSent       StoreKind = "not sent" // it failed in this process: Err names the place, and Node is empty
	StoreLoading       StoreKind = "loading"
	StoreReadOnly      StoreKind = "read-only"
	StoreOutOfMemory   StoreKind = "out of memory"
	StoreNoReplicas    StoreKind = "too few replicas"
	StoreMisconfigured StoreKind = "cannot persist"
	StoreClusterDown   StoreKind = "cluster down"
)

// Kinds of failures that last until somebody changes something. The waiting ends.
const (
	StoreDenied      StoreKind = "denied"      // password or permission
	StoreForeign     StoreKind = "foreign key" // a key of another type, kind or format; it was not touched
	StoreUnsupported StoreKind = "unsupported" // the server lacks a command, or the engine of scripts
	StoreOther       StoreKind = "refused"
	StoreEvicts      StoreKind = "may evict keys" // only of Client.Ready
	StoreSameServer  StoreKind = "same server"    // only of Client.Ready: two masters of a quorum are one server
)

// An ArgumentError says all that is wrong with the arguments of a call. Nothing was sent, unless
// the server alone can judge: a number of permits that is not the name's, or an owner that only
// reads and asks to write. The server changed nothing then.
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

// problems collects what is wrong with the arguments of a call.
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

func badArgument(call, argument string, value any, allowed string) error {
	return problems{{argument, value, allowed}}.err(call)
}

func nilContext(call string) error { return badArgument(call, "ctx", nil, "not nil") }

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

// lostError returns the cause that ends a lease's context.
func lostError(lost engine.Lost) error {
	reason := map[engine.Why]Reason{engine.Expired: LossExpired, engine.Gone: LossGone, engine.MaxHold: LossMaxHold,
		engine.Foreign: LossForeign, engine.Broken: LossBroken}[lost.Why]
	return &LostError{Name: lost.Name, Token: lost.Token, Reason: reason, By: lost.By,
		Err: publicError("renew", lost.Name, lost.Err), Late: lost.Late}
}

// publicError translates an error of the inner packages into the documented form.
func publicError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return translateError(op, name, err)
}

func translateError(op, name string, err error) error {
	if _, ok := err.(*compoundError); ok {
		return err
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var errs []error
		for _, err := range several.Unwrap() {
			errs = append(errs, publicError(op, name, err))
		}
		return errors.Join(errs...)
	}
	var part *engine.PartError
	if errors.As(err, &part) {
		name, err = part.Name, part.Err
	}
	var (
		busy      *engine.BusyError
		ended     *engine.WaitFailure
		uncertain *engine.UncertainError
		failure   *protocol.Failure
		foreign   *protocol.Foreign
	)
	switch {
	case errors.Is(err, engine.ErrNotHeld):
		return ErrNotHeld
	case errors.As(err, &busy):
		return heldError(name, busy.Kind, busy.Answer)
	case errors.As(err, &ended):
		return waitError(name, ended)
	case errors.Is(err, engine.ErrGoneLater):
		return composeErrors(": ", ErrUncertain, fmt.Errorf("%s %q: %w", op, shorten(name), engine.ErrGoneLater))
	case errors.As(err, &uncertain):
		return composeErrors(": ", ErrUncertain, publicError(op, name, uncertain.Err))
	case errors.As(err, &foreign):
		return &StoreError{Op: foreign.Op, Name: foreign.Name, Node: foreign.Node, Kind: StoreForeign,
			Err: errors.New(foreign.Text())}
	case errors.As(err, &failure):
		if e := quorumError(failure); e != nil {
			return e
		}
		return &StoreError{Op: failure.Op, Name: failure.Name, Node: failure.Node, Kind: newStoreKind(failure.Reason),
			Err: hideContext(failure.Err), MayHaveApplied: failure.Unknown}
	}
	return err
}

func waitError(name string, ended *engine.WaitFailure) error {
	a := ended.Answer
	out := &WaitError{Name: name, Holder: a.Holder.Label, Owner: namedOwner(a.Holder), Token: a.Token,
		Since: grantTime(a), Waited: ended.Waited, Reason: WaitContext, Err: ended.Err}
	if ended.Held() && a.Holders > 0 {
		out.Held = heldError(name, ended.Kind, a)
	}
	var evicted *protocol.Evicted
	var cycle *deadlock.Cycle
	switch {
	case errors.As(ended.Err, &evicted):
		out.Reason, out.By, out.Err = WaitEvicted, evicted.By, nil
		return out
	case errors.As(ended.Err, &cycle):
		out.Reason, out.Deadlock, out.Err = WaitDeadlock, newDeadlock(cycle), nil
		return out
	}
	failure := publicError("lock", name, ended.Failure)
	if errors.Is(ended.Err, protocol.ErrWaitOver) {
		out.Reason, out.Err = WaitOver, waitOverError(name, ended)
	}
	if failure != nil {
		out.Err = composeErrors("; ", out.Err, failure)
	}
	if !ended.Answered && !errors.Is(out.Err, ErrUnavailable) {
		out.Err = composeErrors("; ", out.Err, ErrUnavailable)
	}
	return out
}

// waitOverError returns the error of a wait whose time is over: ErrWaitOver, with the *HeldError of
// a try if the last answer said that another holds. Without an answer nobody knows that, and the
// error matches nothing.
func waitOverError(name string, ended *engine.WaitFailure) error {
	switch {
	case ended.Held():
		return &compoundError{ErrWaitOver.Error(), []error{ErrWaitOver, heldError(name, ended.Kind, ended.Answer)}}
	case ended.Answered:
		return ErrWaitOver
	}
	return errors.New(ErrWaitOver.Error())
}

func heldError(name string, kind protocol.Kind, a protocol.Answer) *HeldError {
	return &HeldError{Name: name, Kind: kind.String(), Holder: a.Holder.Label, Owner: namedOwner(a.Holder),
		Token: a.Token, Since: grantTime(a), Holders: a.Holders, Waiters: a.Waiters, Remaining: a.Remaining,
		Remainder: holdStates[a.Left], BrokenBy: a.By, Ticket: a.Holder.Kept, Retains: a.Holder.Retains}
}

// namedOwner returns the owner of WithOwner. The id of a hold without one is told only to its
// holder.
func namedOwner(p protocol.Party) string {
	if p.Unnamed {
		return ""
	}
	return p.Owner
}

// grantTime returns when the holder of an answer was granted; zero if it does not say.
func grantTime(a protocol.Answer) time.Time {
	if a.Since == 0 {
		return time.Time{}
	}
	return time.UnixMicro(a.Since)
}

// hideContext returns the failure of a request. A request has a context of its own, so its end is
// none of the caller's context: that is told beside the failure.
func hideContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return withoutContext{err}
	}
	return err
}

// withoutContext is a failure that matches no error of a context.
type withoutContext struct{ error }

// Is matches what the failure matches, except the errors of contexts.
func (w withoutContext) Is(target error) bool {
	return target != context.DeadlineExceeded && target != context.Canceled && errors.Is(w.error, target)
}

// As finds what the failure is.
func (w withoutContext) As(target any) bool { return errors.As(w.error, target) }

func newStoreKind(r protocol.Reason) StoreKind {
	kinds := map[protocol.Reason]StoreKind{
		protocol.Unreachable: StoreUnreachable, protocol.NoAnswer: StoreNoAnswer, protocol.NotSent: StoreNotSent,
		protocol.Denied:  StoreDenied,
		protocol.Loading: StoreLoading, protocol.ReadOnly: StoreReadOnly, protocol.OutOfMemory: StoreOutOfMemory,
		protocol.NoReplicas: StoreNoReplicas, protocol.Misconfigured: StoreMisconfigured,
		protocol.ClusterDown: StoreClusterDown,
		protocol.Unsupported: StoreUnsupported, protocol.ForeignKey: StoreForeign, protocol.Evicts: StoreEvicts,
		protocol.SameServer: StoreSameServer,
	}
	if kind, ok := kinds[r]; ok {
		return kind
	}
	return StoreOther
}

// prefix begins the text of every error of this package.
const prefix = "holdfast: "

// innerText returns the text of an error, for use inside another error of this package. The prefix
// stands only at the start of the whole text. innerText therefore cuts it off every error of this
// package that the text quotes.
func innerText(err error) string {
	if err == nil {
		return "no cause"
	}
	text := err.Error()
	visitErrors(err, func(part error) {
		if own, ok := strings.CutPrefix(part.Error(), prefix); ok {
			text = strings.ReplaceAll(text, prefix+own, own)
		}
	})
	return text
}

// visitErrors calls f with an error and with all that it wraps, the outer errors first.
func visitErrors(err error, f func(error)) {
	f(err)
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		if next := err.Unwrap(); next != nil {
			visitErrors(next, f)
		}
	case interface{ Unwrap() []error }:
		for _, next := range err.Unwrap() {
			visitErrors(next, f)
		}
	}
}

type compoundError struct {
	text string
	errs []error
}

func composeErrors(between string, errs ...error) error {
	text := errs[0].Error()
	for _, err := range errs[1:] {
		text += between + innerText(err)
	}
	return &compoundError{text, errs}
}

func (c *compoundError) Error() string { return c.text }

// Unwrap returns what the error matches.
func (c *compoundError) Unwrap() []error { return c.errs }
