package engine

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A slowReport tells that a call waits for long, and then that its lease lasts long: after a time,
// at doubling times after that, and in the log once more when that is over. The engine's mutex
// guards it, but for the stack, which the call takes before it waits.
//
// A call begins its report, which is scheduled while the call waits (beginWait, stop). If the call
// gets a lease, the report may follow the lease, and is scheduled until the lease ends. Then, or if
// there is no lease, it is recycled.
type slowReport struct {
	lock   *Lock
	call   *call           // that waits
	polled protocol.Answer // the last one, of a caller that polls
	lease  *Lease          // that lasts; nil: the caller waits

	since     time.Time
	after     time.Duration // since then: when it is told next
	told      bool
	scheduled dueTime

	// The innermost frames of the goroutine that calls the library, with those of the library.
	frames [maxFrames]uintptr
	depth  int
}

// maxFrames is how many frames are taken.
const maxFrames = 32

// entry implements scheduleEntry.
func (s *slowReport) entry() *dueTime { return &s.scheduled }

// dueAt implements scheduleEntry.
func (s *slowReport) dueAt() time.Time { return s.since.Add(s.after) }

// slowReports are the reports of all calls and leases. Most end untold, and are used again. The
// engine's mutex guards them.
type slowReports struct {
	schedule schedule[*slowReport]
	idle     []*slowReport
}

// maxIdleReports is how many reports are kept to be used again.
const maxIdleReports = 64

func (r *slowReports) begin(c *call, l *Lock) *slowReport {
	var s *slowReport
	if last := len(r.idle) - 1; last >= 0 {
		s, r.idle = r.idle[last], r.idle[:last]
	} else {
		s = &slowReport{}
	}
	s.call, s.lock = c, l
	return s
}

// lastsByDesign reports whether waits and leases of the lock last as long as all is well: those of
// an election.
func (l *Lock) lastsByDesign() bool { return l.spec.Kind == protocol.Election }

// locked calls f with the engine's mutex held; nil reports nothing.
func (s *slowReport) locked(f func(*slowReport)) {
	if s != nil {
		e := s.lock.engine
		e.mu.Lock()
		defer e.mu.Unlock()
		f(s)
	}
}

// beginWait begins to report the wait of the call, if waits are reported.
func (s *slowReport) beginWait() {
	s.locked(func(s *slowReport) {
		if within := s.lock.engine.config.SlowWait; within > 0 && !s.lock.lastsByDesign() {
			s.schedule(s.call.start, within)
		}
	})
}

func (e *Engine) tellSlow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	all := &e.slow.schedule
	for now := time.Now(); len(all.entries) > 0 && !all.due().After(now); {
		s := all.entries[0]
		s.tell(now)
		all.add(s)
	}
	all.rearm()
}

// follow goes on with the report for the lease that its call got, if holds are reported or asked
// for. The engine's mutex is held, as in all functions below.
func (s *slowReport) follow(lease *Lease) *slowReport {
	if s == nil {
		return nil
	}
	config := &s.lock.engine.config
	reported := config.SlowHold > 0 && !s.lock.lastsByDesign()
	if !reported && config.Answer == nil {
		s.recycle()
		return nil
	}
	s.lease = lease
	if reported {
		s.schedule(lease.toldAt(), config.SlowHold)
	}
	s.lock.engine.beginAnswering()
	return s
}

// schedule makes the engine tell of what began at a moment, unless it is over within a time.
func (s *slowReport) schedule(since time.Time, within time.Duration) {
	s.since, s.after = since, within
	s.lock.engine.slow.schedule.add(s)
}

// tell reports that the wait or the lease still lasts, and sets when to tell it again.
func (s *slowReport) tell(now time.Time) {
	e, event := s.lock.engine, s.event(now)
	if s.lease == nil {
		answer := s.answer()
		event.Holder, event.Since = answer.Holder.Label, answer.Since
		event.HolderToken, event.HolderTrace = answer.Token, answer.Holder.Trace
	}
	s.told = true
	for s.after <= event.Took {
		s.after *= 2
	}
	e.queueEvent(event, nil)
	e.mu.after(func() { e.config.Slow(event, false) })
}

// event is what there is to tell. Its stack is a copy: the report may be used again before the
// event is told.
func (s *slowReport) event(now time.Time) Event {
	event := Event{
		Kind: SlowWait, Lock: s.lock.spec.Kind, Name: s.lock.name, Context: s.caller(), Contended: true,
		Took: now.Sub(s.since), Stack: slices.Clone(s.frames[:s.depth]),
	}
	if s.lease != nil {
		event.Kind, event.Contended, event.Token = SlowHold, s.lease.contended, s.lease.tenure.token
	}
	return event
}

func (s *slowReport) caller() context.Context {
	if s.lease != nil {
		return s.lease.parent
	}
	return s.call.ctx
}

// answer returns what is known of who holds: the last answer to the caller's own wait; else what
// its pool knows, by its leader or by the hold that it passes on; else the last answer to a poll.
func (s *slowReport) answer() protocol.Answer {
	e := s.lock.engine
	for _, w := range e.waits {
		if w.call == s.call {
			return w.answer
		}
	}
	p := e.pools[s.lock.key()]
	if p == nil {
		return s.polled
	}
	if p.leader != nil {
		return p.leader.answer
	}
	if h := e.holdOfPool(p); h != nil {
		return h.asAnswer()
	}
	return protocol.Answer{}
}

// stop ends what is reported, and tells that it is over if it was told that it lasts.
func (s *slowReport) stop() {
	s.lock.engine.slow.schedule.remove(s)
	if !s.told {
		return
	}
	s.told = false
	e, event := s.lock.engine, s.event(time.Now())
	e.mu.after(func() { e.config.Slow(event, true) })
}

// recycle ends a report; nil has none. Its caller forgets it, as it is used again.
func (s *slowReport) recycle() {
	if s == nil {
		return
	}
	s.stop()
	reports := &s.lock.engine.slow
	if len(reports.idle) < maxIdleReports {
		s.lock, s.call, s.lease, s.polled = nil, nil, nil, protocol.Answer{}
		reports.idle = append(reports.idle, s)
	}
}
