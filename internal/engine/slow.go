package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A slowReport tells that a call waits for long, and then that its lease lasts long: after a time,
// at doubling times after that, and in the log once more when that is over. The engine's mutex
// guards it.
type slowReport struct {
	lock  *Lock
	ctx   context.Context // of the caller
	since time.Time
	after time.Duration // since then: when it is told next
	told  bool
	lease *Lease // that lasts; nil: the caller waits

	// While the caller waits: the loop that asks for it alone, or its last answer if it polls. If
	// there is neither, it waits in a pool.
	loop   *waitLoop
	polled protocol.Answer

	scheduled dueTime
	stack     callStack // of the call
}

// A callStack is the innermost frames of the goroutine that calls the library. It is taken once a
// call, for the reports of its wait and of its lease.
type callStack struct {
	frames [maxFrames]uintptr
	depth  int
}

// maxFrames is how many frames are taken, with those of the library.
const maxFrames = 32

// due implements scheduled.
func (s *slowReport) due() *dueTime { return &s.scheduled }

// slowReports are the reports of all calls and leases. Most end untold, and are used again. The
// engine's mutex guards them.
type slowReports struct {
	schedule schedule[*slowReport]
	idle     []*slowReport
}

// maxIdleReports is how many reports are kept to be used again.
const maxIdleReports = 64

// begin begins the report of a call.
func (r *slowReports) begin(c *call) *slowReport {
	var s *slowReport
	if last := len(r.idle) - 1; last >= 0 {
		s, r.idle = r.idle[last], r.idle[:last]
	} else {
		s = &slowReport{}
	}
	s.lock, s.ctx, s.stack.depth = c.lock, c.ctx, copy(s.stack.frames[:], c.stack.frames[:c.stack.depth])
	return s
}

// take takes the stack of the goroutine that calls it, if anything slow is reported. The compiler
// inlines it, so it is no frame itself.
func (s *callStack) take(reported bool) {
	if reported {
		s.depth = runtime.Callers(2, s.frames[:])
	}
}

// lastsByDesign reports whether waits and leases of the lock last as long as all is well: those of
// an election.
func (l *Lock) lastsByDesign() bool { return l.spec.Kind == protocol.Election }

// slowWait begins the report of a call that may wait, if waits are reported.
func (c *call) slowWait() {
	e := c.lock.engine
	if e.config.SlowWait == 0 || c.lock.lastsByDesign() {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	c.slow = e.slow.begin(c)
	c.slow.watch(c.start, e.config.SlowWait)
}

// forgetWait ends the report of a call that waits no more.
func (c *call) forgetWait() {
	if c.slow == nil {
		return
	}
	e := c.lock.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	c.slow.end()
	c.slow = nil
}

// slowHold begins the report of the lease that the call got, or goes on with that of its wait. Nil:
// holds are not reported. The engine's mutex is held.
func (c *call) slowHold(lease *Lease) *slowReport {
	e, s := c.lock.engine, c.slow
	if e.config.SlowHold == 0 || c.lock.lastsByDesign() {
		s.end()
		return nil
	}
	if s == nil {
		s = e.slow.begin(c)
	}
	s.tellOver()
	s.lease, s.ctx, s.loop = lease, lease.parent, nil
	s.watch(lease.toldAt, e.config.SlowHold)
	return s
}

// watch tells what began at a moment, unless it is over within a time.
func (s *slowReport) watch(since time.Time, within time.Duration) {
	s.since, s.after = since, within
	s.lock.engine.slow.schedule.add(s, since.Add(within))
}

// follow says which loop asks for the caller.
func (s *slowReport) follow(w *waitLoop) {
	if s == nil {
		return
	}
	e := s.lock.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	s.loop = w
}

// note keeps the answer to a caller that polls.
func (s *slowReport) note(answer protocol.Answer) {
	if s == nil {
		return
	}
	e := s.lock.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	s.polled = answer
}

// tellSlow tells the reports that are due.
func (e *Engine) tellSlow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	all := &e.slow.schedule
	for now := time.Now(); len(all.entries) > 0 && !all.entries[0].scheduled.at.After(now); {
		s := all.entries[0]
		s.tell(now)
		all.add(s, s.since.Add(s.after))
	}
	all.fired()
}

// tell tells once. The engine's mutex is held, as in all functions below.
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
	e.report(event, nil)
	e.mu.after(func() { e.config.Slow(event, false) })
}

// event is what there is to tell. Its stack is a copy: the report may be used again before the
// event is told.
func (s *slowReport) event(now time.Time) Event {
	event := Event{
		Kind: SlowWait, Lock: s.lock.spec.Kind, Name: s.lock.spec.Name, Context: s.ctx, Contended: true,
		Took: now.Sub(s.since), Stack: slices.Clone(s.stack.frames[:s.stack.depth]),
	}
	if s.lease != nil {
		event.Kind, event.Contended, event.Token = SlowHold, s.lease.contended, s.lease.tenure.token
	}
	return event
}

// answer is the last one that the waiting caller, or its pool, has. The engine's mutex is held.
func (s *slowReport) answer() protocol.Answer {
	if s.loop != nil {
		return s.loop.answer
	}
	e := s.lock.engine
	p := e.pools[s.lock.poolKey()]
	if p == nil {
		return s.polled
	}
	if p.leader != nil {
		return p.leader.answer
	}
	if h := e.watchdog.ofPool(p); h != nil {
		return h.asAnswer()
	}
	return protocol.Answer{}
}

// tellOver tells that a wait or a lease is over, if it was told that it lasts.
func (s *slowReport) tellOver() {
	if !s.told {
		return
	}
	s.told = false
	e, event := s.lock.engine, s.event(time.Now())
	e.mu.after(func() { e.config.Slow(event, true) })
}

// end ends a report; nil has none. Its caller forgets it, as it is used again.
func (s *slowReport) end() {
	if s == nil {
		return
	}
	reports := &s.lock.engine.slow
	reports.schedule.remove(s)
	s.tellOver()
	if len(reports.idle) < maxIdleReports {
		s.lock, s.ctx, s.lease, s.loop, s.polled = nil, nil, nil, nil, protocol.Answer{}
		reports.idle = append(reports.idle, s)
	}
}
