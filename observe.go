package holdfast

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/telemetry"
)

// An Observer receives what happens to the locks of a client. Observe must be safe for concurrent
// use. An event of a caller comes in the caller's goroutine: Waiting, Watching, Granted, Passed,
// Refused, GaveUp, Retried of a wait, and what Release ends. All other events come one after the
// other in the background, never before the contexts of lost leases have ended.
//
// A slow Observe delays its own caller, and the later events in the background. Meanwhile the
// renewals of one hold become one event; no other event is dropped. A panic is caught and logged.
// Observe may call the client, but a call that waits for another event in the background may wait
// for ever. The Observer of a Config may be a telemetry.Tracer and a telemetry.RequestObserver as
// well.
type Observer interface {
	Observe(Event)
}

// Observers returns an Observer that tells each of several, in their order. Nil ones are left out;
// of none but those the result is nil. If one panics, those after it miss that event. As a
// telemetry.Tracer the first that has a text for a caller is asked; as a telemetry.RequestObserver
// all.
func Observers(all ...Observer) Observer {
	var several observers
	for _, o := range all {
		if o == nil {
			continue
		}
		several.all = append(several.all, o)
		if tracer, ok := o.(telemetry.Tracer); ok {
			several.tracers = append(several.tracers, tracer)
		}
		if requests, ok := o.(telemetry.RequestObserver); ok {
			several.requests = append(several.requests, requests)
		}
	}
	switch len(several.all) {
	case 0:
		return nil
	case 1:
		return several.all[0]
	}
	return &several
}

// observers are several, and those of them that are more than an Observer.
type observers struct {
	all      []Observer
	tracers  []telemetry.Tracer
	requests []telemetry.RequestObserver
}

// Observe implements Observer.
func (o *observers) Observe(e Event) {
	for _, each := range o.all {
		each.Observe(e)
	}
}

// Trace implements telemetry.Tracer.
func (o *observers) Trace(ctx context.Context) string {
	for _, each := range o.tracers {
		if text := each.Trace(ctx); text != "" {
			return text
		}
	}
	return ""
}

// ObserveRequest implements telemetry.RequestObserver.
func (o *observers) ObserveRequest(r telemetry.Request) {
	for _, each := range o.requests {
		each.ObserveRequest(r)
	}
}

// An EventKind says what happened.
type EventKind int

// The kinds of events. Each comment names the durations and the error that the kind sets.
//
// Each Waiting is followed by one Granted, Passed, GaveUp or Refused of the same call. Each Granted
// or Passed is followed by one Released or Lost. A call under the context of a lease of the same
// name has no events: its entry belongs to that lease, which is Released with its last entry. A
// group has the events of its names; if it polls, it waits for the first of them.
const (
	EventWaiting   EventKind = iota + 1 // a caller has to wait; in the queue it listens by now, if permitted
	EventGranted                        // a lease began by the server, also by Attach; Waited, Holder if it waited
	EventRenewed                        // a renewal or Extend was confirmed; Headroom: what trust was left
	EventRetried                        // a request failed and will be tried again; Err, and Headroom of a lease
	EventPassed                         // a lease began on a hold that this process had; Waited, Holder if it waited
	EventLost                           // a lease was lost; Held, and Err is its *LostError
	EventReleased                       // a lease was given back, or detached; Held, and Err if not certain
	EventRefused                        // a call that did not wait failed; Waited, Holder, and Err: a *HeldError
	EventGaveUp                         // a call that waited failed; Waited, Holder, and Err: a *WaitError
	EventWatching                       // a caller waits for a Latch, or for another leader of an Election
	EventSlowWait                       // a caller waits for longer than Config.SlowWait; Waited, Holder, Since, Stack
	EventSlowHold                       // a lease lasts for longer than Config.SlowHold; Held, Stack
	EventConfirmed                      // the first renewal of a lease that was handed over was confirmed
	EventRecalled                       // a retained lock went to another process, unused; Held: how long it took
)

// String returns the kind in lower case, as it is used for metrics.
func (k EventKind) String() string {
	names := [...]string{"", "waiting", "granted", "renewed", "retried", "passed", "lost", "released", "refused",
		"gave up", "watching", "slow wait", "slow hold", "confirmed", "recalled"}
	if k <= 0 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// An Event is one thing that happened to one lock. Durations, the holder and the error are zero
// unless the kind names them.
type Event struct {
	Kind        EventKind
	Name        string
	Class       string          // what Config.Class makes of the name
	LockKind    string          // "mutex", "rwmutex", "semaphore", "election" or "latch"
	Context     context.Context // of the caller that wants or has the lease; never nil
	Contended   bool            // that caller had to wait
	Token       int64           // of the lease, if there is one
	Waited      time.Duration   // since the call began
	Held        time.Duration   // since the observer was told that the lease began
	Headroom    time.Duration
	Holder      string    // the label of the holder that the caller was last told of; empty if not known
	Since       time.Time // when that holder's hold was granted, by the server's clock
	Stack       []uintptr // of the call of Lock, for runtime.CallersFrames
	Err         error
	HolderToken int64  // a fencing token of that holder; 0 if not known
	HolderTrace string // the text of its telemetry.Tracer, or any of another client; empty if not known
}

// observe tells the history and the observer of an event, in the goroutine that the engine chose.
func (c *Client) observe(inner engine.Event) {
	class := c.classes.Of(inner.Name)
	c.recordEvent(inner, class)
	if c.config.Observer != nil {
		c.config.Observer.Observe(newEvent(inner, class))
	}
}

// Outcome returns how the call ended that this event is the last of. It is empty for events that
// end no call.
func (e Event) Outcome() telemetry.Outcome {
	switch e.Kind {
	case EventGranted:
		return telemetry.OutcomeGranted
	case EventPassed:
		return telemetry.OutcomePassedOn
	case EventRefused, EventGaveUp:
	default:
		return ""
	}
	var waited *WaitError
	held := errors.Is(e.Err, ErrHeld)
	switch {
	case errors.Is(e.Err, ErrUnavailable):
		return telemetry.OutcomeError
	case errors.As(e.Err, &waited), held && e.Kind == EventGaveUp:
		return telemetry.OutcomeGaveUp
	case held:
		return telemetry.OutcomeRefused
	}
	return telemetry.OutcomeError
}

// maxTrace is how many bytes the text of a Tracer has at most.
const maxTrace = 64

// traceText returns a text that a Tracer may say, and no other one.
func traceText(text string) string {
	if len(text) > maxTrace || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return text
}

func newEvent(e engine.Event, class string) Event {
	out := Event{Kind: EventKind(e.Kind), Name: e.Name, Class: class, LockKind: e.Lock.String(), Context: e.Context,
		Contended: e.Contended, Token: e.Token, Headroom: e.Left, Holder: e.Holder, Stack: trimStack(e.Stack),
		HolderToken: e.HolderToken, HolderTrace: traceText(e.HolderTrace)}
	if e.Since != 0 {
		out.Since = time.UnixMicro(e.Since)
	}
	if e.Err != nil {
		out.Err = eventError(e)
	}
	switch e.Kind {
	case engine.Granted, engine.Passed, engine.Refused, engine.GaveUp, engine.SlowWait:
		out.Waited = e.Took
	case engine.Released, engine.LostHold, engine.SlowHold, engine.Recalled:
		out.Held = e.Took
	}
	return out
}

// eventError returns the error that the call returns, or that no call returns.
func eventError(e engine.Event) error {
	if bad := argumentError(e.Lock.String(), e.Name, "", e.Err); bad != nil {
		return bad
	}
	op := "background"
	if e.Kind == engine.Refused || e.Kind == engine.GaveUp {
		op = "lock"
	}
	if gone := (*engine.AttachError)(nil); errors.As(e.Err, &gone) {
		return attachError("attach", e.Name, e.Err)
	}
	return publicError(op, e.Name, e.Err)
}

// countRequests returns a store that tells the observer of its requests, if the observer wants
// that.
func (c *Config) countRequests(s wire.Store) wire.Store {
	observer, ok := c.Observer.(telemetry.RequestObserver)
	if !ok {
		return s
	}
	outcomes := [...]telemetry.RequestOutcome{
		wire.Answered: telemetry.RequestAnswered, wire.Refused: telemetry.RequestRefused,
		wire.NoAnswer: telemetry.RequestNoAnswer,
	}
	return wire.Counted(s, func(op string, outcome wire.Outcome) {
		defer func() {
			if panicked := recover(); panicked != nil {
				c.Logger.Error("holdfast: the observer panicked", "panic", panicked)
			}
		}()
		observer.ObserveRequest(telemetry.Request{Op: op, Outcome: outcomes[outcome]})
	})
}

// logSlow logs a report of a wait or a lease that lasts long, or that it is over.
func logSlow(logger *slog.Logger, e engine.Event, over bool) {
	attributes := []any{"name", shorten(e.Name), "kind", e.Lock.String()}
	var text, took string
	switch {
	case e.Kind == engine.SlowWait && over:
		text, took = "a wait was long and is over", "waited"
	case e.Kind == engine.SlowWait:
		text, took = "a caller waits for long", "waited"
		attributes = append(attributes, "holder", shorten(e.Holder))
		if e.Since != 0 {
			attributes = append(attributes, "since", time.UnixMicro(e.Since))
		}
	case over:
		text, took = "a lease was long and is over", "held"
		attributes = append(attributes, "token", e.Token)
	default:
		text, took = "a lease lasts long", "held"
		attributes = append(attributes, "token", e.Token)
	}
	logger.Warn("holdfast: "+text, append(attributes, took, e.Took, "stack", stackText(e.Stack))...)
}

// trimStack cuts the frames of this module off the top of a stack.
func trimStack(stack []uintptr) []uintptr {
	for i := range stack {
		frame, _ := runtime.CallersFrames(stack[i : i+1]).Next()
		if !isOwnFrame(frame.Function) {
			return stack[i:]
		}
	}
	return stack
}

// isOwnFrame reports whether a function is of this package or the engine.
func isOwnFrame(function string) bool {
	const root = "github.com/holdfast-go/holdfast"
	return strings.HasPrefix(function, root+".") || strings.HasPrefix(function, root+"/internal/engine.")
}

// stackText returns a stack in one line: the innermost call first.
func stackText(stack []uintptr) string {
	var out []string
	for frames := runtime.CallersFrames(trimStack(stack)); ; {
		frame, more := frames.Next()
		if frame.Function != "" {
			out = append(out, frame.Function+" "+frame.File+":"+strconv.Itoa(frame.Line))
		}
		if !more {
			return strings.Join(out, "; ")
		}
	}
}
