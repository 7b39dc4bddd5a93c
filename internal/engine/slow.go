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
	stack  callStack // for event

	// Guarded by the engine's mutex.
	due   time.Duration // since its beginning
	timer *time.Timer
	told  bool
	ended bool

	// Of a wait: the lock, and the loop that asks for this caller alone. If there is none, the
	// caller waits in a pool.
	lock *Lock
	loop *waitLoop
}

// A callStack is the innermost frames of the goroutine that calls the library. It is taken once a
// call, for the reports of its wait and of its lease: that is most of what they cost.
type callStack struct {
	frames [32]uintptr
	depth  int
}

// take fills the stack with that of the goroutine that calls it, if anything slow is reported.
func (s *callStack) take(c *Config) {
	if c.SlowWait > 0 || c.SlowHold > 0 {
		s.depth = runtime.Callers(2, s.frames[:])
	}
}

// maxIdleReports is how many reports are kept to be used again.
const maxIdleReports = 64

// slow begins a report of a call. After is when it is first told. Most reports end untold, and are
// used again.
func (e *Engine) slow(event Event, stack *callStack, since time.Time, after time.Duration) *slowReport {
	e.mu.Lock()
	defer e.mu.Unlock()
	var s *slowReport
	if last := len(e.slowReports) - 1; last >= 0 {
		s, e.slowReports = e.slowReports[last], e.slowReports[:last]
	} else {
		s = &slowReport{engine: e}
	}
	s.stack, s.event, s.since = *stack, event, since
	s.event.Stack, s.due, s.ended = s.stack.frames[:stack.depth], after, false
	if left := time.Until(since.Add(after)); s.timer == nil {
		s.timer = time.AfterFunc(left, s.tell)
	} else {
		s.timer.Reset(left)
	}
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
	s := l.engine.slow(event, &c.stack, c.start, after)
	s.lock = l
	return s
}

// slowHold begins the report of a lease that began; nil: holds are not reported.
func (c *call) slowHold(lease *Lease, began Event) *slowReport {
	e := c.lock.engine
	if e.config.SlowHold == 0 {
		return nil
	}
	event := Event{Kind: SlowHold, Lock: began.Lock, Name: began.Name, Context: lease.parent, Contended: began.Contended, Token: began.Token}
	return e.slow(event, &c.stack, time.Now(), e.config.SlowHold)
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

// tell is called by the timer.
func (s *slowReport) tell() {
	e := s.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.ended || e.closed {
		return
	}
	s.told = true
	event := s.event
	event.Took = time.Since(s.since)
	if s.lock != nil {
		answer := s.answer()
		event.Holder, event.Since = answer.Holder.Label, answer.Since
		event.HolderToken, event.HolderTrace = answer.Token, answer.Holder.Trace
	}
	for s.due <= event.Took {
		s.due *= 2
	}
	s.timer.Reset(time.Until(s.since.Add(s.due)))
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

// end ends a report; nil has none. Its caller forgets it: it may be used again. The engine's mutex
// is held.
func (s *slowReport) end() {
	if s == nil || s.ended {
		return
	}
	s.ended = true
	stopped := s.timer.Stop()
	switch {
	case s.told:
		event := s.event
		event.Took = time.Since(s.since)
		s.engine.mu.after(func() { s.engine.config.Slow(event, true) })
	case stopped && len(s.engine.slowReports) < maxIdleReports: // its timer does not run, and nobody has it any more
		s.event, s.lock, s.loop = Event{}, nil, nil
		s.engine.slowReports = append(s.engine.slowReports, s)
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
