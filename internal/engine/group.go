package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Group is names that are held together. It has no state and is safe to share.
type Group struct {
	engine  *Engine
	locks   []*Lock // in the order in which all callers wait
	options Options
}

// A PartError is an error about one name of a group.
type PartError struct {
	Name string
	Err  error
}

func (p *PartError) Error() string { return fmt.Sprintf("%q: %v", p.Name, p.Err) }

func (p *PartError) Unwrap() error { return p.Err }

// NewGroup binds names, which are sorted and differ. It sends nothing.
func (e *Engine) NewGroup(names []string, spec protocol.Spec, options Options) *Group {
	g := &Group{engine: e, options: options}
	waiting := options
	waiting.Interval, waiting.Attempts, waiting.Wait = 0, 0, 0 // a group polls and waits as a whole
	for _, name := range names {
		spec.Name = name
		g.locks = append(g.locks, e.NewLock(spec, waiting))
	}
	return g
}

// Acquire waits until all are held. The error is a *PartError with one of Lock.Acquire's, about the
// name that was waited for or refused. After an error nothing is held.
func (g *Group) Acquire(ctx context.Context) (*GroupLease, error) {
	if err := g.engine.admitCall(nil); err != nil {
		return nil, err
	}
	defer g.engine.busy.Done()
	ctx, cancel := boundedWait(ctx, g.options.Wait)
	defer cancel()
	if g.options.Interval > 0 {
		return g.poll(ctx)
	}
	start := time.Now()
	for lossPace := pace(g.options.TTL); ; lossPace.Sent(time.Now()) {
		g.engine.awaitPace(ctx, &lossPace)
		p := g.parts(ctx)
		err := p.takeAll()
		if err != nil {
			p.release()
			if ended := (*WaitFailure)(nil); errors.As(err, &ended) {
				ended.Waited = time.Since(start) // for all names, not for the last alone
			}
			return nil, err
		}
		if lease := p.lease(); lease.Err() == nil {
			return lease, nil
		}
		p.release() // one was lost meanwhile: all wait in order, so it begins anew
	}
}

// Try asks once, in one request where the protocol can. The error is a *PartError with one of
// Lock.Try's. After an error nothing is held.
func (g *Group) Try(ctx context.Context) (*GroupLease, error) {
	if err := g.engine.admitCall(nil); err != nil {
		return nil, err
	}
	defer g.engine.busy.Done()
	c := g.locks[0].newCall(ctx)
	lease, err := g.try(ctx)
	return g.end(c, lease, g.engine.orEnded(ctx, c.start, err))
}

// poll asks for all again and again. The observer knows the waiting as that for the first name.
func (g *Group) poll(ctx context.Context) (*GroupLease, error) {
	c := g.locks[0].newCall(ctx)
	c.slow.beginWait()
	lease, err := poll(ctx, c, g.options, g.try)
	return g.end(c, lease, err)
}

// end ends a call that takes all names or none, and that is about the first name.
func (g *Group) end(c *call, lease *GroupLease, err error) (*GroupLease, error) {
	if err != nil {
		if part := (*PartError)(nil); errors.As(err, &part) && !c.contended {
			c.name = part.Name
		}
		_, _ = c.end(nil, err)
		return nil, err
	}
	_, _ = c.end(lease.parts[0], nil)
	for i, part := range lease.parts[1:] {
		g.locks[i+1].observeGrant(c.ctx, c.start, part)
	}
	return lease, nil
}

// observeGrant tells the observer of a lease that a call got together with others, without waiting.
func (l *Lock) observeGrant(ctx context.Context, start time.Time, lease *Lease) {
	c := l.newCall(ctx)
	c.start = start
	_, _ = c.end(lease, nil)
}

// try asks for all. The observer is not told.
func (g *Group) try(ctx context.Context) (*GroupLease, error) {
	p := g.parts(ctx)
	_, err := p.takeAtOnce(p.notHeld())
	for pause := time.Millisecond; ; pause *= 2 {
		var busy *BusyError
		if !errors.As(err, &busy) || !g.locks[0].awaitRecall(ctx, busy.Answer, pause) {
			break
		}
		_, err = p.takeAtOnce(p.notHeld())
	}
	if errors.Is(err, protocol.ErrApart) {
		err = p.tryEach()
	}
	if err != nil {
		p.release()
		return nil, err
	}
	return p.lease(), nil
}

// parts are what is held of a group so far, by the order of its locks; nil: not yet.
type parts struct {
	group  *Group
	ctx    context.Context // of the call
	leases []*Lease
}

// parts begins with what ctx's lease holds already.
func (g *Group) parts(ctx context.Context) *parts {
	p := &parts{group: g, ctx: ctx, leases: make([]*Lease, len(g.locks))}
	for i, l := range g.locks {
		p.leases[i], _ = l.enter(ctx) // only a reader could be refused, and a mutex has none
	}
	return p
}

// notHeld are the locks that are not held yet.
func (p *parts) notHeld() (missing []int) {
	for i, lease := range p.leases {
		if lease == nil {
			missing = append(missing, i)
		}
	}
	return missing
}

// tryEach asks for what is missing, one after the other.
func (p *parts) tryEach() (err error) {
	for _, i := range p.notHeld() {
		l := p.group.locks[i]
		if p.leases[i], err = l.try(l.silentCall(p.ctx)); err != nil {
			return &PartError{l.name, err}
		}
	}
	return nil
}

// takeAll waits for what is missing, in order. Names that are free before the first one that is
// taken are taken at once.
func (p *parts) takeAll() error {
	start := time.Now()
	for apart := false; ; {
		missing := p.notHeld()
		if !apart {
			taken, err := p.takeAtOnce(missing)
			err = p.group.engine.orEnded(p.ctx, start, err)
			var busy *BusyError
			var failure *protocol.Failure
			switch apart = errors.Is(err, protocol.ErrApart); {
			case err == nil:
				p.observeGrants(start, missing)
				return nil
			case errors.As(err, &busy):
				_, _ = p.takeAtOnce(missing[:taken]) // what comes before it; if not, it is waited for
			case !apart && !(errors.As(err, &failure) && failure.Reason.Passing()):
				c := p.group.locks[0].newCall(p.ctx)
				c.start = start
				_, err = p.group.end(c, nil, err)
				return err
			}
			p.observeGrants(start, missing)
			missing = p.notHeld()
		}
		if len(missing) == 0 {
			return nil
		}
		l := p.group.locks[missing[0]].with(func(s *settings) { s.beside = p.leases })
		lease, err := l.Acquire(p.ctx)
		if err != nil {
			return &PartError{l.name, err}
		}
		p.leases[missing[0]] = lease
	}
}

// observeGrants tells the observer of the leases that began of those that were missing.
func (p *parts) observeGrants(start time.Time, missing []int) {
	for _, i := range missing {
		if part := p.leases[i]; part != nil {
			p.group.locks[i].observeGrant(p.ctx, start, part)
		}
	}
}

// takeAtOnce asks for what is missing in one request. A BusyError is about the first name that is
// taken. Apart: the names cannot be, or need not be, asked for so.
func (p *parts) takeAtOnce(missing []int) (taken int, err error) {
	if len(missing) < 2 {
		return 0, protocol.ErrApart
	}
	e := p.group.engine
	first := p.group.locks[missing[0]].name
	if err := e.check(p.ctx); err != nil {
		return 0, &PartError{first, err}
	}
	if err := e.protocol.Ready(p.ctx, first); err != nil {
		return 0, &PartError{first, err}
	}
	sent := time.Now()
	until := sent.Add(p.group.locks[0].timeout)
	attempts, asks := p.prepare(missing, until)
	answers, err := e.protocol.AskAll(p.ctx, asks)
	switch {
	case errors.Is(err, protocol.ErrApart):
		return 0, err
	case err != nil:
		var failure *protocol.Failure
		for _, a := range attempts {
			if errors.As(err, &failure) && failure.Unknown {
				a.mayApplyUntil = until
			}
		}
		e.abandon(attempts)
		return 0, &PartError{nameOf(err, first), err}
	}
	if n, busy := firstBusy(answers); busy {
		blocked := p.group.locks[missing[n]]
		return n, &PartError{blocked.name, &BusyError{Kind: blocked.spec.Kind, Answer: answers[n]}}
	}
	return 0, p.fill(missing, attempts, answers, sent)
}

func (p *parts) prepare(missing []int, until time.Time) ([]*attempt, []protocol.ResourceAsk) {
	trace := p.group.engine.traceOf(p.ctx)
	attempts, asks := make([]*attempt, len(missing)), make([]protocol.ResourceAsk, len(missing))
	for n, i := range missing {
		l := p.group.locks[i]
		attempts[n] = l.newAttempt(l.silentCall(p.ctx), 1)
		attempts[n].ticket.Trace = trace
		asks[n] = protocol.ResourceAsk{
			Resource: l.resource(),
			Ask:      protocol.Ask{Ticket: attempts[n].ticket, TTL: l.grantTTL, Deadline: until},
		}
	}
	return attempts, asks
}

// fill makes leases of what was granted at once. The error is about the first name for which that
// fails.
func (p *parts) fill(missing []int, attempts []*attempt, answers []protocol.Answer, sent time.Time) (err error) {
	for n, i := range missing {
		a, answer := attempts[n], answers[n]
		a.clock = clockSample{sent, answer.Server}
		next, failed := a.becomeHolder(answer, sent, p.group.options.TTL)
		switch {
		case next == stepDone && failed == nil:
			p.leases[i], failed = a.beginLease(a.hold, nil)
		case failed == nil:
			failed = &protocol.Failure{Op: "ask", Name: a.lock.name, Reason: protocol.NoAnswer, Err: errLate}
		}
		if failed != nil && err == nil {
			err = &PartError{a.lock.name, failed}
		}
	}
	p.group.engine.abandon(attempts) // those that did not win
	return err
}

var errLate = errors.New("the answer came when the trust in it was over")

// firstBusy finds the first name that another holds, if there is one.
func firstBusy(answers []protocol.Answer) (n int, busy bool) {
	for i, answer := range answers {
		if answer.Status == protocol.Held {
			continue
		}
		if !busy || answers[n].Holders+answers[n].Waiters == 0 {
			n, busy = i, true
		}
	}
	return n, busy
}

// nameOf is the name that an error is about, or another.
func nameOf(err error, other string) string {
	var foreign *protocol.Foreign
	var failure *protocol.Failure
	switch {
	case errors.As(err, &foreign) && foreign.Name != "":
		return foreign.Name
	case errors.As(err, &failure) && failure.Name != "":
		return failure.Name
	}
	return other
}

// release gives back what is held, in the background when the caller has given up.
func (p *parts) release() {
	e, held := p.group.engine, &GroupLease{}
	for _, part := range p.leases {
		if part != nil {
			held.parts = append(held.parts, part)
		}
	}
	e.busy.Add(1) // the caller is counted too
	release := func() {
		defer e.busy.Done()
		if err := held.Release(); err != nil {
			e.config.Logger.Warn("holdfast: giving back parts of a group", "error", err)
		}
	}
	if p.ctx.Err() != nil {
		go release()
		return
	}
	release()
}

func (p *parts) lease() *GroupLease { return &GroupLease{parts: p.leases} }
