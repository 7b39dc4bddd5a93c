package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An EventKind is what happened.
type EventKind int

// The kinds of events. See the package document.
const (
	Waiting   EventKind = iota + 1 // a caller has to wait
	Granted                        // a lease began on a hold that was won for it; Took is how long the call lasted
	Renewed                        // Left is how much trust was left when the answer came
	Retried                        // a request of a waiter or a renewal failed and will be tried again: Err
	Passed                         // a lease began on a hold of this process; Took is how long the call lasted
	LostHold                       // a lease was lost: Err is its cause, Took is how long it lasted
	Released                       // a lease was given back; Took is how long it lasted, Err why that is not certain
	Refused                        // a call that did not wait ended without a lease: Err
	GaveUp                         // a call that waited ended without a lease: Err, Holder; Took is how long it lasted
	Watching                       // a caller waits for a state of a name, and not for a lease
	SlowWait                       // a caller waits for long: Took, Holder, Since and Stack
	SlowHold                       // a lease lasts long: Took and Stack
	Confirmed                      // a renewal of a hold that had less than a TTL, such as a claim
	Recalled                       // an unused hold went to another process: Took, and Err as of Released
)

// An Event is one thing that happened. Its Kind says which of the later fields are set; the others
// are zero.
type Event struct {
	Kind      EventKind
	Lock      protocol.Kind
	Name      string
	Context   context.Context // of the caller; never nil
	Contended bool            // the caller had to wait
	Token     int64
	Took      time.Duration
	Left      time.Duration
	Holder    string // the label of the last known holder
	Since     int64  // server time of its grant, microseconds; 0: not known

	HolderToken int64  // of that holder; 0: not known
	HolderTrace string // where that holder's caller belongs in a trace; any client may have written anything there

	Stack []uintptr // of the call
	Err   error

	Spec     *protocol.Spec // of the caller's lock, where there is one, without the name; it does not change
	At       time.Time      // when a lease began, or when its end began
	Detached bool           // of Released: the hold left the process
}

// observe tells the observer what happened in the goroutine of a caller. The engine's mutex is not
// held.
func (e *Engine) observe(event Event) {
	if e.config.Observe == nil {
		return
	}
	defer func() {
		if panicked := recover(); panicked != nil {
			e.config.Logger.Error("holdfast: the observer panicked", "name", event.Name, "panic", panicked)
		}
	}()
	e.config.Observe(event)
}

// An eventQueue tells the observer what happens in the background: in order, and from one
// goroutine, which lives while there is something to tell.
type eventQueue struct {
	mu       sync.Mutex
	queue    []*queuedEvent
	renewals map[*hold]*queuedEvent // of the queue
	running  bool
}

// A queuedEvent is an event that the observer was not told yet.
type queuedEvent struct {
	event Event
	hold  *hold // of a renewal; else nil
}

// queueEvent queues an event in the background for the observer; of a renewal with its hold,
// otherwise nil. It is called with the engine's mutex held, after what must happen before was
// queued there. While Close waits, no event is lost: the engine is open, or Close holds the mutex,
// or the caller is counted in busy.
func (e *Engine) queueEvent(event Event, renewed *hold) {
	if e.config.Observe == nil {
		return
	}
	e.busy.Add(1)
	e.mu.after(func() { e.events.push(e, &queuedEvent{event, renewed}) })
}

// push queues an event. Two renewals of one hold become one: the later one, with the smaller head
// room.
func (q *eventQueue) push(e *Engine, next *queuedEvent) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.renewals[next.hold]; next.hold != nil && before != nil {
		next.event.Left = min(next.event.Left, before.event.Left)
		before.event = next.event
		e.busy.Done()
		return
	}
	if next.hold != nil {
		if q.renewals == nil {
			q.renewals = make(map[*hold]*queuedEvent)
		}
		q.renewals[next.hold] = next
	}
	q.queue = append(q.queue, next)
	if !q.running {
		q.running = true
		go q.deliver(e)
	}
}

// deliver tells the observer until nothing is queued.
func (q *eventQueue) deliver(e *Engine) {
	for next := q.pop(); next != nil; next = q.pop() {
		e.observe(next.event)
		e.busy.Done()
	}
}

// pop takes the first event out of the queue. Nil: there is none, and the goroutine ends.
func (q *eventQueue) pop() *queuedEvent {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		q.queue, q.running = nil, false
		return nil
	}
	first := q.queue[0]
	q.queue[0], q.queue = nil, q.queue[1:]
	delete(q.renewals, first.hold)
	return first
}

// queueEnd tells the observer in the background that a lease is lost, or was given back by Close.
// It does nothing if the observer was not told that the lease began, or was told of its end. The
// engine's mutex is held, as in all functions below.
func (e *Engine) queueEnd(lease *Lease, cause error) {
	event, told := lease.endReport(LostHold)
	if !told {
		return
	}
	if errors.Is(cause, e.config.Closed) {
		event.Kind = Released
	} else {
		event.Err = cause
	}
	e.queueEvent(event, nil)
}

// queueEnds is queueEnd for all leases of a tenure; nil has none.
func (e *Engine) queueEnds(t *localTenure, cause error) {
	if t == nil || !e.observed {
		return
	}
	for _, entry := range t.entries {
		e.queueEnd(entry.head(), cause)
	}
}

// head is the lease that the observer knows: the one under whose context this one, and those
// between, entered its hold.
func (l *Lease) head() *Lease {
	if l.outermost != nil {
		return l.outermost
	}
	return l
}

// endReport ends the report of a lease, and makes the event that the lease ended. Told is false if
// no observer waits for it.
func (l *Lease) endReport(kind EventKind) (event Event, told bool) {
	l.slow.recycle()
	l.slow = nil
	if !l.told || l.engine().config.Observe == nil {
		return event, false
	}
	lock := l.tenure.hold.lock
	now := time.Now()
	event = Event{Kind: kind, Lock: lock.spec.Kind, Name: lock.name, Context: l.parent, Contended: l.contended,
		Token: l.tenure.token, Took: now.Sub(l.toldAt()), At: now, Spec: &lock.spec}
	l.told = false
	return event, true
}

// event makes an event about a hold in the background. Its caller is that of the present tenure.
func (h *hold) event(kind EventKind) Event {
	event := Event{Kind: kind, Lock: h.lock.spec.Kind, Name: h.lock.name, Token: h.token,
		Context: context.Background()}
	if h.tenure != nil {
		event.Context, event.Contended = h.tenure.inlineLease.parent, h.tenure.inlineLease.contended
	}
	return event
}
