package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Waiting ends when its context does, to the nanosecond, whatever the network does (traps 20, 22).
func TestMutexWaitEndsWithContext(t *testing.T) {
	bubbles(t, map[string]way{"all is well": {}, "silent": silent, "slow": {there: 900 * time.Millisecond}},
		func(t *testing.T, server *memory.Server, w way) {
			a, b := newHost(t, server), newHost(t, server)
			lease := a.lock(engine.Options{})
			b.setWay(w)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 1234567891)
			defer cancel()
			next := b.startLock(ctx, engine.Options{})
			var ended *engine.WaitFailure
			if <-next.done; !errors.As(next.err, &ended) || !errors.Is(next.err, context.DeadlineExceeded) ||
				next.at.Sub(began) != 1234567891 {
				t.Errorf("ended after %v: %v", next.at.Sub(began), next.err)
			}
			b.setWay(way{})
			a.release(lease)
			sleep(5 * time.Second)
			nothingLeft(t, server)
		})
}

// Trap 10: an ask whose answer is lost is sent again, and finds its own hold.
func TestMutexLockAnswerLostFindsItsHold(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		a.setWay(way{noAnswers: true})
		next := a.startLock(t.Context(), engine.Options{})
		sleep(500 * time.Millisecond)
		a.setWay(way{})
		lease := next.await()
		asks := a.requests(time.Time{}, "ask")
		if len(asks) != 2 || !lease.Until().Equal(asks[1].at.Add(15*time.Second-margin(15*time.Second))) {
			t.Errorf("asked %v, trusted until %v", asks, lease.Until())
		}
		a.release(lease)
		nothingLeft(t, server)
	})
}

// Traps 10 and 12: a caller that gives up after a lost answer leaves nothing behind.
func TestMutexLockGivenUpLeavesNothing(t *testing.T) {
	bubbles(t, map[string]way{"answers are lost": {noAnswers: true},
		"requests are late": {there: 950 * time.Millisecond}}, func(t *testing.T, server *memory.Server, w way) {
		a := newHost(t, server)
		a.setWay(w)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if next := a.startLock(ctx, engine.Options{TTL: time.Minute}); next.isWaiting() {
			<-next.done
		}
		a.setWay(way{})
		sleep(5 * time.Second)
		nothingLeft(t, server)
	})
}

// A waiter's sign of life is one ask every 5 s, +-20 %.
func TestWaiterSignOfLifeIsOneAsk(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{TTL: 10 * time.Minute})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second) // it asks again once it listens
		before := time.Now()
		sleep(time.Minute)
		asks := b.requests(before, "")
		if len(asks) < 10 || len(asks) > 15 {
			t.Errorf("%d requests in a minute", len(asks))
		}
		for i := range asks[1:] {
			if pause := asks[i+1].at.Sub(asks[i].at); asks[i].op != "ask" || pause < askEvery*4/5 ||
				pause > askEvery*6/5 {
				t.Errorf("%v after a pause of %v", asks[i+1].op, pause)
			}
		}
		a.release(lease)
		b.release(next.await())
	})
}

// Trap 17: after a gap in the messages a waiter asks at once.
func TestWaiterGapAsksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		b.setWay(way{noMessages: true})
		a.release(lease)
		sleep(100 * time.Millisecond)
		if !next.isWaiting() {
			t.Fatal("in without a message")
		}
		at := time.Now()
		b.Gap()
		if next.await(); !next.at.Equal(at) {
			t.Errorf("in %v after the gap", next.at.Sub(at))
		}
	})
}

// Trap 18: waiters that show no life are passed over, a claim for each of them, and the next one
// gets in.
func TestWaiterSilentIsPassedOver(t *testing.T) {
	for _, n := range []int{1, 5} {
		runBubble(t, fmt.Sprint(n), func(t *testing.T, server *memory.Server) {
			a, c := newHost(t, server), newHost(t, server)
			lease := a.lock(engine.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var heads []*host
			for range n {
				heads = append(heads, newHost(t, server))
				heads[len(heads)-1].startLock(ctx, engine.Options{})
			}
			next := c.startLock(t.Context(), engine.Options{})
			sleep(time.Second)
			for _, head := range heads {
				head.setWay(silent)
			}
			a.release(lease)
			released := time.Now()
			held := next.await()
			const place = 20 * time.Millisecond // later, for each place in the queue
			most := askEvery*6/5 + time.Duration(n)*(claim+time.Duration(n)*place)
			if took := next.at.Sub(released); took < claim || took > most {
				t.Errorf("the next got in after %v, want %v to %v", took, claim, most)
			}
			cancel()
			c.release(held)
		})
	}
}

// Polling asks every interval, so many times, and tells who holds.
func TestMutexPollingAsksEveryInterval(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		a.lock(engine.Options{})
		began := time.Now()
		next := b.startLock(t.Context(), engine.Options{Interval: 70 * time.Millisecond, Attempts: 4})
		var busy *engine.BusyError
		if <-next.done; !errors.As(next.err, &busy) || busy.Answer.Holders != 1 {
			t.Errorf("got %v", next.err)
		}
		asks := b.requests(began, "")
		for i, ask := range asks {
			if ask.op != "ask" || ask.at.Sub(began) != time.Duration(i)*70*time.Millisecond {
				t.Errorf("%s after %v", ask.op, ask.at.Sub(began))
			}
		}
		if len(asks) != 4 {
			t.Errorf("%d requests", len(asks))
		}
	})
}

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
