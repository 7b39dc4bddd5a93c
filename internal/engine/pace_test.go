package engine_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A parrot is a server that answers whatever it is asked at once, and always the same.
type parrot struct {
	protocol.Protocol // in memory, for what no caller waits for

	say   answering // nil: that another holds
	tell  telling   // nil: it sends no message
	deaf  error     // why nobody may listen; nil: all may
	apart bool      // several names cannot be had in one request

	sink protocol.Sink

	mu           sync.Mutex
	before       protocol.ID // of the last request
	asked, freed int
}

// An answering is what a parrot says to its n-th request.
type answering func(n int) (protocol.Answer, error)

// A telling sends a message before the answer to a request of a ticket. Before is the ticket of the
// request before.
type telling func(sink protocol.Sink, id, before protocol.ID)

// often is more requests than any caller may send while a test looks at it. A parrot refuses what
// comes after them, which ends a caller that asks without end.
const often = 1000

// hear counts a request, and sends the message that comes before its answer.
func (p *parrot) hear(count *int, id protocol.ID) (n int, err error) {
	p.mu.Lock()
	*count++
	n = *count
	before := p.before
	p.before = id
	p.mu.Unlock()
	if n > often {
		return n, &protocol.Failure{Op: "ask", Name: "n", Reason: protocol.Denied, Err: errors.New("enough")}
	}
	if p.tell != nil {
		p.tell(p.sink, id, before)
	}
	return n, nil
}

func (p *parrot) answer(id protocol.ID) (protocol.Answer, error) {
	n, err := p.hear(&p.asked, id)
	switch {
	case err != nil:
		return protocol.Answer{}, err
	case p.say != nil:
		return p.say(n)
	}
	return protocol.Answer{Status: protocol.Busy, Holders: 1, Remaining: time.Hour}, nil
}

func (p *parrot) look(watcher *protocol.Ticket) (protocol.Standing, error) {
	id := protocol.ID("")
	if watcher != nil {
		id = watcher.ID
	}
	_, err := p.answer(id)
	return protocol.Standing{}, err
}

func (p *parrot) Bind(spec protocol.Spec) protocol.Resource {
	return &parroted{p.Protocol.Bind(spec), p}
}

func (p *parrot) BindLatch(spec protocol.Spec) protocol.LatchResource {
	return &parrotedLatch{p.Protocol.BindLatch(spec), p}
}

func (p *parrot) AskAll(_ context.Context, asks []protocol.ResourceAsk) ([]protocol.Answer, error) {
	if p.apart {
		return nil, protocol.ErrApart
	}
	answer, err := p.answer(asks[0].Ask.Ticket.ID)
	answers := make([]protocol.Answer, len(asks))
	for i := range answers {
		answers[i] = answer
	}
	return answers, err
}

// Renew says that nothing is held.
func (p *parrot) Renew(_ context.Context, renewals []protocol.Renewal, done func(int, protocol.RenewalAnswer)) {
	for i := range renewals {
		done(i, protocol.RenewalAnswer{})
	}
}

func (p *parrot) Listen(context.Context, protocol.Sink) (protocol.Listener, error) {
	return quiet{}, p.deaf
}

func (p *parrot) ListenTicket(ctx context.Context, _ protocol.ID, sink protocol.Sink) (protocol.Listener, error) {
	return p.Listen(ctx, sink)
}

type quiet struct{}

func (quiet) Hear(context.Context, protocol.Subject) (time.Time, error) { return time.Time{}, nil }
func (quiet) Close()                                                    {}

type parroted struct {
	protocol.Resource
	parrot *parrot
}

func (r *parroted) Ask(_ context.Context, ask protocol.Ask) (protocol.Answer, error) {
	return r.parrot.answer(ask.Ticket.ID)
}

func (r *parroted) Free(_ context.Context, free protocol.FreeRequest) (bool, error) {
	_, err := r.parrot.hear(&r.parrot.freed, free.Ticket.ID)
	return err == nil, err
}

func (r *parroted) Look(_ context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return r.parrot.look(watcher)
}

type parrotedLatch struct {
	protocol.LatchResource
	parrot *parrot
}

func (r *parrotedLatch) Look(_ context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	return r.parrot.look(watcher)
}

// A waiter asks some ten times a second at most, whatever the server answers, and whatever messages
// it sends. A few requests may come at once.
func TestWaiterAsksTenTimesASecondAtMost(t *testing.T) {
	answer := func(answer protocol.Answer, err error) answering {
		return func(int) (protocol.Answer, error) { return answer, err }
	}
	fail := func(reason protocol.Reason, unknown bool) answering {
		return answer(protocol.Answer{}, &protocol.Failure{Op: "ask", Name: "n", Reason: reason, Unknown: unknown,
			Err: errors.New("refused")})
	}
	held := answer(protocol.Answer{Status: protocol.Held, Token: 1, Block: 1}, nil)
	queued := answer(protocol.Answer{Status: protocol.Queued, Remaining: time.Hour}, nil)
	nudge := func(s protocol.Sink, id, _ protocol.ID) { s.Nudge(id, 0) }
	nudgeSoon := func(s protocol.Sink, id, _ protocol.ID) { s.Nudge(id, time.Microsecond) }
	late := func(s protocol.Sink, id, _ protocol.ID) {
		s.Granted(protocol.Grant{ID: id, Token: 1, Block: 1, At: 1, Claim: claim})
	}
	for name, p := range map[string]*parrot{
		"held by another":            {},
		"held for no time":           {say: answer(protocol.Answer{Status: protocol.Busy, Holders: 1}, nil)},
		"held for an unknown time":   {say: answer(protocol.Answer{Status: protocol.Busy, Remaining: -1}, nil)},
		"queued behind nobody":       {say: answer(protocol.Answer{Status: protocol.Queued}, nil)},
		"queued, and told to ask":    {say: queued, tell: nudge},
		"told to ask":                {tell: nudge},
		"told to ask in a moment":    {tell: nudgeSoon},
		"messages were missed":       {tell: func(s protocol.Sink, _, _ protocol.ID) { s.Gap() }},
		"perhaps broken":             {tell: func(s protocol.Sink, id, _ protocol.ID) { s.Broken(id) }},
		"handed over too late":       {say: queued, tell: late},
		"held":                       {say: held},
		"no answer":                  {say: fail(protocol.NoAnswer, true)},
		"no answer, or a late grant": {say: fail(protocol.NoAnswer, true), tell: late},
		"loading":                    {say: fail(protocol.Loading, false)},
		"broken":                     {say: answer(protocol.Answer{}, &protocol.Broken{Name: "n", By: "b"})},
		"evicted":                    {say: answer(protocol.Answer{}, &protocol.Evicted{})},
		"resized each time": {tell: nudge, say: func(n int) (protocol.Answer, error) {
			if n == 1 {
				return queued(n)
			}
			return protocol.Answer{}, &protocol.Mismatch{Name: "n", Have: int64(n + 7), Want: 1}
		}},
		"refused with its own number": {tell: nudge, say: func(n int) (protocol.Answer, error) {
			if n == 1 {
				return queued(n)
			}
			return protocol.Answer{}, &protocol.Mismatch{Name: "n", Have: 1, Want: 1}
		}},
		"the first of several is lost": {say: held, apart: true, tell: func(s protocol.Sink, _, before protocol.ID) {
			s.Broken(before)
			<-time.After(time.Millisecond)
		}},
		"listening is denied": {deaf: &protocol.Failure{Op: "subscribe", Reason: protocol.Denied,
			Err: errors.New("no permission")}},
		"listening fails": {deaf: &protocol.Failure{Op: "subscribe", Reason: protocol.Unreachable,
			Err: errors.New("refused")}},
	} {
		for call, wait := range waits {
			t.Run(name+"/"+call, func(t *testing.T) {
				for _, queue := range []bool{true, false} {
					synctest.Test(t, func(t *testing.T) {
						own := &parrot{say: p.say, tell: p.tell, deaf: p.deaf, apart: p.apart}
						own.Protocol = memory.New(protocol.Features{Queue: queue}).Connect("test")
						own.isAskedSeldom(t, wait)
					})
				}
			})
		}
	}
}

var lasting = engine.Options{TTL: 15 * time.Second}

// acquire is a call that waits for a lock, and gives back what it gets.
func acquire(spec protocol.Spec, o engine.Options, weight int64) func(context.Context, *engine.Engine) error {
	spec.Name, o.TTL = "n", lasting.TTL
	return func(ctx context.Context, e *engine.Engine) error {
		return acquired(e.NewLock(spec, o).Weigh(weight).Acquire(ctx))
	}
}

var permits = protocol.Spec{Kind: protocol.Semaphore, Shared: true, Permits: 1}

// waits are the calls that wait, and those that ask again all the same.
var waits = map[string]func(context.Context, *engine.Engine) error{
	"a mutex":                 acquire(protocol.Spec{Kind: protocol.Mutex}, lasting, 0),
	"a mutex in strict order": acquire(protocol.Spec{Kind: protocol.Mutex}, engine.Options{Strict: true}, 0),
	"polling":                 acquire(permits, engine.Options{Interval: time.Second}, 1),
	"readers":                 acquire(protocol.Spec{Kind: protocol.ReadWrite, Shared: true}, lasting, 0),
	"permits":                 acquire(permits, lasting, 1),
	"a try": func(ctx context.Context, e *engine.Engine) error {
		return acquired(e.NewLock(protocol.Spec{Name: "n", Kind: protocol.Mutex}, lasting).Try(ctx))
	},
	"a kept place": func(ctx context.Context, e *engine.Engine) error {
		d := engine.Detached{Spec: protocol.Spec{Name: "n", Kind: protocol.Mutex}, Options: lasting,
			Ticket: protocol.Ticket{ID: protocol.NewID(), Block: 1, Keep: time.Minute}}
		return acquired(e.AttachWait(ctx, d))
	},
	"a group": func(ctx context.Context, e *engine.Engine) error {
		lease, err := e.NewGroup([]string{"n", "o"}, protocol.Spec{Kind: protocol.Mutex}, lasting).Acquire(ctx)
		if err == nil {
			_ = lease.Release()
		}
		return err
	},
	"a watcher": func(ctx context.Context, e *engine.Engine) error {
		_, err := election(e).Await(ctx, new(protocol.Pace), func(protocol.Standing) bool { return false })
		return err
	},
	"an observer": func(ctx context.Context, e *engine.Engine) error {
		for looks := new(protocol.Pace); ; {
			if _, err := election(e).Await(ctx, looks, func(protocol.Standing) bool { return true }); err != nil {
				return err
			}
		}
	},
	"a latch": func(ctx context.Context, e *engine.Engine) error {
		return e.NewLatch(protocol.Spec{Name: "n"}, lasting.TTL, 0).Wait(ctx)
	},
}

func election(e *engine.Engine) *engine.Lock {
	return e.NewLock(protocol.Spec{Name: "n", Kind: protocol.Election}, lasting)
}

// acquired gives back what a call got.
func acquired(lease *engine.Lease, err error) error {
	if err == nil {
		_ = lease.Release()
	}
	return err
}

// isAskedSeldom fails if a call asks more often than some ten times a second, or what it leaves
// behind does.
func (p *parrot) isAskedSeldom(t *testing.T, wait func(context.Context, *engine.Engine) error) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e := newEngine(p)
	p.sink = e // also of a call that does not listen yet
	began := time.Now()
	_ = wait(ctx, e)
	waited := time.Since(began)
	sleep(2 * time.Second)
	if err := e.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	sleep(time.Minute) // requests in the background give up
	p.mu.Lock()
	defer p.mu.Unlock()
	const names = 2 // of a group, each of which is asked for
	if most := names * (12 + int(11*waited/time.Second)); p.asked > most || p.freed > most {
		t.Errorf("%d requests, and %d that give back, in %v; want %d at most", p.asked, p.freed, waited, most)
	}
}
