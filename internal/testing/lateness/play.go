package lateness

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Run is what a mix came to.
type Run struct {
	mix   Mix
	began time.Time

	mu      sync.Mutex // a request is under way with it held, so that what is written down is in order
	tickets []*Ticket  // in the order of their first asks
	failed  []string   // callers that should have entered

	logMu  sync.Mutex
	log    []string
	grants []protocol.Grant // that messages told of and nobody has looked at yet
}

// Play runs a mix inside a bubble of testing/synctest until every caller is done. connect makes the
// protocol of a process.
func Play(m Mix, connect func(process int) protocol.Protocol) *Run {
	r := &Run{mix: m, began: time.Now()}
	engines := map[int]*engine.Engine{}
	for _, c := range m.Callers {
		if engines[c.Process] == nil {
			engines[c.Process] = engine.New(&link{Protocol: connect(c.Process), run: r, process: c.Process},
				engine.Config{
					ReleaseTimeout: 5 * time.Second,
					Logger:         slog.New(slog.DiscardHandler),
					Cause:          func(l engine.Lost) error { return fmt.Errorf("lost: %+v", l) },
					Closed:         errors.New("closed"),
				})
		}
	}
	var all sync.WaitGroup
	for i, c := range m.Callers {
		all.Go(func() {
			<-time.After(c.At + time.Duration(i)*time.Microsecond) // so that the order of the queue is certain
			r.call(i, c, engines[c.Process])
		})
	}
	all.Wait()
	for _, e := range engines {
		_ = e.Close()
	}
	return r
}

// call is what one caller does.
func (r *Run) call(i int, c Caller, e *engine.Engine) {
	spec := protocol.Spec{Name: name, Kind: r.mix.Kind, Owner: c.Owner, Shared: c.Shared, Permits: r.mix.Permits,
		Label: fmt.Sprint(i)}
	lock := e.NewLock(spec, engine.Options{TTL: c.TTL, MinHold: c.MinHold, Fixed: c.RunsOut})
	if r.mix.Kind == protocol.Semaphore {
		lock = lock.Weigh(c.Weight)
	}
	wait := c.Wait
	if wait == 0 {
		wait = forever
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	lease, err := lock.Acquire(ctx)
	r.note("caller %d: %v", i, err)
	if err != nil {
		if c.Wait == 0 {
			r.mu.Lock()
			r.failed = append(r.failed, fmt.Sprintf("caller %d: %v", i, err))
			r.mu.Unlock()
		}
		return
	}
	if c.RunsOut {
		<-time.After(max(c.TTL, c.MinHold))
		return
	}
	<-time.After(c.For)
	r.note("caller %d releases: %v", i, lease.Release())
}

const (
	name    = "n"
	forever = time.Hour // longer than any mix
)

// note writes a line of the story.
func (r *Run) note(format string, args ...any) {
	r.logMu.Lock()
	defer r.logMu.Unlock()
	r.log = append(r.log, fmt.Sprintf("%12v ", time.Since(r.began).Round(time.Microsecond))+fmt.Sprintf(format,
		args...))
}

// A link is the way of one process to the server. It takes its time, and writes down what requests
// did.
type link struct {
	protocol.Protocol
	run     *Run
	process int
	open    int // subscriptions; guarded by the run's mutex
}

func (l *link) pause() {
	if most := l.run.mix.Delay; most > 0 {
		<-time.After(rand.N(most))
	}
}

// request runs one request at the server, which takes its time on the way there and back.
func (l *link) request(send func(at time.Time)) {
	l.pause()
	l.run.request(send)
	l.pause()
}

// Bind implements protocol.Protocol.
func (l *link) Bind(spec protocol.Spec) protocol.Resource {
	return &resource{Resource: l.Protocol.Bind(spec), link: l, spec: spec}
}

// Renew implements protocol.Protocol.
func (l *link) Renew(ctx context.Context, renewals []protocol.Renewal, done func(i int, r protocol.RenewalAnswer)) {
	inner, answers := make([]protocol.Renewal, len(renewals)), make([]protocol.RenewalAnswer, len(renewals))
	for i, r := range renewals {
		inner[i] = r
		inner[i].Resource = r.Resource.(*resource).Resource
	}
	l.request(func(at time.Time) {
		l.Protocol.Renew(ctx, inner, func(i int, r protocol.RenewalAnswer) { answers[i] = r })
		for i, r := range renewals {
			if answers[i].Held && r.TTL > 0 {
				l.run.ticket(r.Ticket.ID).ends = later(at.Add(r.TTL), r.Floor)
			}
		}
	})
	for i := range answers {
		done(i, answers[i])
	}
}

// Listen implements protocol.Protocol.
func (l *link) Listen(ctx context.Context, sink protocol.Sink) (protocol.Listener, error) {
	l.pause()
	defer l.pause()
	open, err := l.Protocol.Listen(ctx, &messages{sink, l})
	if err != nil {
		return nil, err
	}
	l.run.request(func(at time.Time) {
		l.open++
		for _, t := range l.run.tickets {
			if t.Process == l.process && t.heard.IsZero() {
				t.heard = at
			}
		}
	})
	return &listening{open, l}, nil
}

// A listening counts the subscriptions of a process.
type listening struct {
	protocol.Listener
	link *link
}

// Close implements protocol.Listener.
func (l *listening) Close() {
	l.link.run.request(func(time.Time) { l.link.open-- })
	l.Listener.Close()
}

// Messages of a process come one after the other, each a little late.
type messages struct {
	protocol.Sink
	link *link
}

func (m *messages) later(f func()) {
	if m.link.run.mix.Delay == 0 {
		f()
		return
	}
	time.AfterFunc(rand.N(m.link.run.mix.Delay), f)
}

// Granted implements protocol.Sink.
func (m *messages) Granted(g protocol.Grant) {
	m.link.run.logMu.Lock()
	m.link.run.grants = append(m.link.run.grants, g)
	m.link.run.logMu.Unlock()
	m.later(func() { m.Sink.Granted(g) })
}

// Nudge implements protocol.Sink.
func (m *messages) Nudge(id protocol.ID, after time.Duration) {
	m.later(func() {
		m.link.run.note("%s is told: after %v", id[:4], after)
		m.Sink.Nudge(id, after)
	})
}

// A resource writes down what requests about the name did.
type resource struct {
	protocol.Resource
	link *link
	spec protocol.Spec
}

// Ask implements protocol.Resource.
func (r *resource) Ask(ctx context.Context, ask protocol.Ask) (answer protocol.Answer, err error) {
	run := r.link.run
	r.link.request(func(at time.Time) {
		if answer, err = r.Resource.Ask(ctx, ask); err != nil {
			run.note("process %d asks: %v", r.link.process, err)
			return
		}
		t := run.ticket(ask.Ticket.ID)
		if t == nil {
			t = &Ticket{ID: ask.Ticket.ID, Process: r.link.process, spec: r.spec, weight: ask.Ticket.Weight, joined: at}
			if r.link.open > 0 {
				t.heard = at
			}
			run.tickets = append(run.tickets, t)
		}
		if answer.Status != protocol.Held {
			run.note("process %d asks, %s: %d hold, %d before it, the first for %v", t.Process, t.ID[:4],
				answer.Holders, answer.Waiters, answer.Remaining)
			return
		}
		run.note("process %d asks, %s: it holds for %v", t.Process, t.ID[:4], ask.TTL)
		if t.Entered.IsZero() {
			t.Entered = at
		}
		t.ends = at.Add(ask.TTL)
		if ask.Release != nil {
			run.ticket(ask.Release.ID).ends = at
		}
	})
	return answer, err
}

// Free implements protocol.Resource.
func (r *resource) Free(ctx context.Context, free protocol.FreeRequest) (was bool, err error) {
	run := r.link.run
	r.link.request(func(at time.Time) {
		was, err = r.Resource.Free(ctx, free)
		if t := run.ticket(free.Ticket.ID); was && t.Entered.IsZero() {
			t.left = at
			run.note("%s leaves", t.ID[:4])
		} else if was {
			t.ends = later(at, free.Keep)
			run.note("%s is given back, and stays for %v", t.ID[:4], t.ends.Sub(at))
		}
	})
	return was, err
}

// request runs one request at the server.
func (r *Run) request(send func(at time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told()
	send(time.Now())
}

// told takes down the hand-overs that messages told of: whoever acts on one comes later.
func (r *Run) told() {
	r.logMu.Lock()
	grants := r.grants
	r.grants = nil
	r.logMu.Unlock()
	for _, g := range grants {
		if t := r.ticket(g.ID); t != nil && t.Entered.IsZero() {
			t.Entered = time.UnixMicro(g.At)
			t.ends = t.Entered.Add(g.Claim)
			r.note("%s was handed the name %v ago", t.ID[:4], time.Since(t.Entered))
		}
	}
}

// ticket returns what is known of a ticket; nil: it has not asked.
func (r *Run) ticket(id protocol.ID) *Ticket {
	for _, t := range r.tickets {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// later returns a moment, or one in server microseconds if that comes later.
func later(at time.Time, server int64) time.Time {
	if other := time.UnixMicro(server); server > 0 && other.After(at) {
		return other
	}
	return at
}
