package engine

import (
	"runtime"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A slowReport tells that one wait or one hold lasts long: after a time, at doubling times after
// that, and in the log once more when it ends.
type slowReport struct {
	engine *Engine
	event  Event // without times
	since  time.Time
	stack  [maxFrames]uintptr // for event

	// Guarded by the engine's mutex.
	after     time.Duration // since its beginning: when it is told next
	scheduled dueTime
	told      bool

	// Of a wait: the lock, and the loop that asks for this caller alone. If there is none, the
	// caller waits in a pool.
	lock *Lock
	loop *waitLoop
}

// slowReports are the reports of all calls and leases. Most end untold, and are used again. The
// engine's mutex guards them.
type slowReports struct {
	untilDue schedule[*slowReport]
	idle     []*slowReport
}

// due implements scheduled.
func (s *slowReport) due() *dueTime { return &s.scheduled }

// A callStack is the innermost frames of the goroutine that calls the library. It is taken once a
// call, for the reports of its wait and of its lease: that is most of what they cost.
type callStack struct {
	frames [maxFrames]uintptr
	depth  int
}

// maxFrames is how many frames of a stack are told.
const maxFrames = 32

// take fills the stack with that of the goroutine that calls it, if anything slow is reported.
func (s *callStack) take(c *Config) {
	if c.SlowWait > 0 || c.SlowHold > 0 {
		s.depth = runtime.Callers(2, s.frames[:])
	}
}

// maxIdleReports is how many reports are kept to be used again.
const maxIdleReports = 64

// beginSlow begins a report of a call. After is when it is first told. The engine's mutex is held.
func (e *Engine) beginSlow(event Event, stack *callStack, since time.Time, after time.Duration) *slowReport {
	var s *slowReport
	if last := len(e.slow.idle) - 1; last >= 0 {
		s, e.slow.idle = e.slow.idle[last], e.slow.idle[:last]
	} else {
		s = &slowReport{engine: e}
	}
	s.event, s.since, s.after = event, since, after
	s.event.Stack = s.stack[:copy(s.stack[:], stack.frames[:stack.depth])]
	e.slow.untilDue.add(s, since.Add(after))
	return s
}

// slowWait begins the report of a caller that may wait; nil: waits are not reported.
func (c *call) slowWait() *slowReport {
	l := c.lock
	after := l.engine.config.SlowWait
	if after == 0 {
		return nil
	}
	event := Event{Kind: SlowWait, Lock: l.spec.Kind, Name: l.spec.Name, Context: c.ctx, Contended: true}
	l.engine.mu.Lock()
	defer l.engine.mu.Unlock()
	s := l.engine.beginSlow(event, &c.stack, c.start, after)
	s.lock = l
	return s
}

// slowHold begins the report of a lease that began; nil: holds are not reported. The engine's mutex
// is held.
func (c *call) slowHold(lease *Lease) *slowReport {
	e, spec := c.lock.engine, &c.lock.spec
	if e.config.SlowHold == 0 {
		return nil
	}
	event := Event{
		Kind: SlowHold, Lock: spec.Kind, Name: spec.Name, Context: lease.parent, Contended: lease.contended, Token: lease.tenure.token,
	}
	return e.beginSlow(event, &c.stack, lease.toldAt, e.config.SlowHold)
}

// follow says which loop asks for the caller of a wait.
func (s *slowReport) follow(w *waitLoop) {
	if s == nil {
		return
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.loop = w
}

// tellSlow tells the reports that are due.
func (e *Engine) tellSlow() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	reports := &e.slow.untilDue
	for now := time.Now(); len(reports.entries) > 0 && !reports.entries[0].scheduled.at.After(now); {
		s := reports.entries[0]
		s.tell(now)
		reports.add(s, s.since.Add(s.after))
	}
	reports.fired()
}

// tell tells once. The engine's mutex is held.
func (s *slowReport) tell(now time.Time) {
	e := s.engine
	s.told = true
	event := s.event
	event.Took = now.Sub(s.since)
	if s.lock != nil {
		answer := s.answer()
		event.Holder, event.Since = answer.Holder.Label, answer.Since
		event.HolderToken, event.HolderTrace = answer.Token, answer.Holder.Trace
	}
	for s.after <= event.Took {
		s.after *= 2
	}
	e.report(event, nil)
	e.mu.after(func() { e.config.Slow(event, false) })
}

// answer is the last one that the waiting caller, or its pool, has. The engine's mutex is held.
func (s *slowReport) answer() protocol.Answer {
	if s.loop != nil {
		return s.loop.answer
	}
	p := s.engine.pools[s.lock.poolKey()]
	if p == nil {
		return protocol.Answer{}
	}
	if p.leader != nil {
		return p.leader.answer
	}
	if h := s.engine.watchdog.ofPool(p); h != nil {
		return h.asAnswer()
	}
	return protocol.Answer{}
}

// end ends a report; nil has none. Its caller forgets it: unless it was told, it is used again. The
// engine's mutex is held.
func (s *slowReport) end() {
	if s == nil {
		return
	}
	e := s.engine
	e.slow.untilDue.remove(s)
	switch {
	case s.told:
		event := s.event
		event.Took = time.Since(s.since)
		e.mu.after(func() { e.config.Slow(event, true) })
	case len(e.slow.idle) < maxIdleReports:
		s.event, s.lock, s.loop = Event{}, nil, nil
		e.slow.idle = append(e.slow.idle, s)
	}
}

// over ends the report of a wait; nil has none.
func (s *slowReport) over() {
	if s == nil {
		return
	}
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.end()
}
