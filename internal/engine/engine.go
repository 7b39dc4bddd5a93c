package engine

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Config is what an Engine needs beside its protocol.
type Config struct {
	ReleaseTimeout time.Duration
	Prefix         string // of the client's keys, for those that go on with its holds

	RetainMax int // how many holds at most stay with this process unused

	Logger  *slog.Logger // never nil; it does not block
	Observe func(Event)  // nil: no observer

	// Trace is where a caller belongs in a trace, for others to read; nil: nothing is traced.
	Trace func(context.Context) string

	// After these times, waits and holds are reported as slow; 0: never. Slow logs such a report,
	// and once more when the wait or the hold is over; never nil if one of them is set.
	SlowHold, SlowWait time.Duration
	Slow               func(event Event, over bool)

	// Answer answers questions for Stacks, until its ctx ends. It runs while there are holds; nil:
	// nobody answers, and no stack is taken for that.
	Answer func(ctx context.Context)

	Cause  func(Lost) error // the cause of a context whose lease is lost
	Closed error            // the cause, and the error, once the engine is closed
}

// An Engine runs all locks of one client. All methods are safe for concurrent use.
type Engine struct {
	protocol     protocol.Protocol
	features     protocol.Features
	config       Config
	takesStacks  bool           // of calls, for reports of what lasts long and for Stacks
	observed     bool           // anything of calls and leases is told
	closing      chan struct{}  // closed by Close
	busy         sync.WaitGroup // calls and goroutines that may still send
	subscription subscription
	events       eventQueue

	knownSettings struct {
		sync.Mutex
		byKey map[settingsKey]*settings
	}

	mu        guard // guards all below, and what is said to be guarded by it
	closed    bool
	pools     map[poolKey]*pool
	waits     map[protocol.ID]*waitLoop     // attempts and watchers that wait, by ticket
	cleanups  map[protocol.ID]chan struct{} // cleanups under way, woken by a hand-over
	terms     map[*Lease]chan struct{}      // leases on which code of an election runs; closed at its end
	wanted    map[*Lease]chan struct{}      // leases whose holder is to be told of others; closed then
	witnesses map[*attempt]bool             // attempts with evidence, while they wait
	uses      map[poolKey]*recentUse        // of locks that may be retained
	unused    int                           // holds that are retained
	holds     schedule[*hold]               // of this process, for the watchdog
	slow      slowReports
	answering bool // Answer runs

	holdListener holdListener
}

// New makes an engine. It sends nothing and starts nothing.
func New(p protocol.Protocol, config Config) *Engine {
	e := &Engine{
		protocol:    p,
		features:    p.Features(),
		config:      config,
		takesStacks: config.SlowWait > 0 || config.SlowHold > 0 || config.Answer != nil,
		closing:     make(chan struct{}),
		pools:       make(map[poolKey]*pool),
		waits:       make(map[protocol.ID]*waitLoop),
		cleanups:    make(map[protocol.ID]chan struct{}),
		terms:       make(map[*Lease]chan struct{}),
		wanted:      make(map[*Lease]chan struct{}),
		witnesses:   make(map[*attempt]bool),
		uses:        make(map[poolKey]*recentUse),
	}
	e.knownSettings.byKey = make(map[settingsKey]*settings)
	e.observed = config.Observe != nil || e.takesStacks
	e.subscription.engine = e
	e.holds.whenIsUp = e.renewDue
	e.slow.schedule.whenIsUp = e.tellSlow
	return e
}

// Queues reports whether the servers keep a queue.
func (e *Engine) Queues() bool { return e.features.Queue }

// Close ends all waiting with the Closed error and gives all leases back, together within
// ReleaseTimeout. Each cleanup under way is tried once more. The goroutines of the engine are gone
// when Close returns, but for requests that the store does not give up in its time. A second call
// returns nil at once.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	close(e.closing)
	var holds []*hold
	for _, h := range e.allHolds() {
		if isPast(h.end(), time.Now()) { // and the watchdog is late
			e.lose(h, h.lossReason())
			continue
		}
		e.holds.remove(h)
		h.to(holdReleasing)
		e.endTenure(h.tenure, e.config.Closed)
		holds = append(holds, h)
	}
	clear(e.pools)
	e.holds.stop()
	e.slow.schedule.stop()
	if timer := e.holdListener.timer; timer != nil {
		timer.Stop()
	}
	e.mu.Unlock()

	until := time.Now().Add(e.config.ReleaseTimeout)
	failed := make(chan error, len(holds))
	for _, h := range holds {
		go func() {
			_, err := e.free(h, until)
			e.mu.Lock()
			e.queueEnds(h.tenure, e.config.Closed)
			e.mu.Unlock()
			if err != nil {
				err = &PartError{h.lock.name, err}
			}
			failed <- err
		}()
	}
	var first error
	for range holds {
		if err := <-failed; err != nil && first == nil {
			first = err
		}
	}
	e.subscription.close()
	e.awaitGroup(&e.busy, until)
	return first
}

// awaitGroup waits for a group, but not past a moment.
func (e *Engine) awaitGroup(group *sync.WaitGroup, until time.Time) {
	if !time.Now().Before(until) {
		return
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	timer := protocol.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// Granted implements protocol.Sink.
func (e *Engine) Granted(g protocol.Grant) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waits[g.ID]; w != nil {
		w.mailbox.messages.grant = &g
		w.mailbox.wake()
	}
	select {
	case e.cleanups[g.ID] <- struct{}{}: // there is no channel where nothing is given back
	default:
	}
}

// Nudge implements protocol.Sink.
func (e *Engine) Nudge(id protocol.ID, after time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if w := e.waits[id]; w != nil {
		w.mailbox.messages.askAt = time.Now().Add(after)
		w.mailbox.wake()
	}
}

// Broken implements protocol.Sink. A message proves nothing: the server is asked. A ticket that
// waits may have been handed the name before, by a message that has not come yet.
func (e *Engine) Broken(id protocol.ID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if h := e.holdOf(id); h != nil {
		e.queryInBackground(h)
	} else if w := e.waits[id]; w != nil {
		w.mailbox.askNow()
	}
}

// queryInBackground asks the server whether a hold is there, and once more if it is called
// meanwhile: the request under way may have been too early. The engine's mutex is held.
func (e *Engine) queryInBackground(h *hold) {
	if h.change().queries++; h.queries > 1 || e.closed {
		return
	}
	e.busy.Go(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		for h.queries > 0 && !e.closed {
			h.change().queries = 1
			e.mu.Unlock()
			ctx := deadline{context.Background(), time.Now().Add(h.lock.timeout)}
			_ = e.queryHold(ctx, h) // without an answer, its next renewal tells
			e.mu.Lock()
			h.change().queries--
		}
	})
}

// Gap implements protocol.Sink. All waiters ask at once, and so it is asked about the holds that
// messages were to tell of. Those that may be retained count as recalled.
func (e *Engine) Gap() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.waits {
		w.mailbox.askNow()
	}
	for _, h := range e.holds.entries {
		if !h.heardSince.IsZero() {
			e.queryInBackground(h)
		}
	}
	e.recallAll()
}

// awaitPace waits until a pace allows a request, or ctx or the engine ends.
func (e *Engine) awaitPace(ctx context.Context, p *protocol.Pace) {
	if next := p.Next(); !next.IsZero() && next.After(time.Now()) {
		e.pause(ctx, time.Until(next))
	}
}

// pause waits for d. False: ctx or the engine ended first.
func (e *Engine) pause(ctx context.Context, d time.Duration) bool {
	return protocol.Pause(ctx, d, e.closing)
}
