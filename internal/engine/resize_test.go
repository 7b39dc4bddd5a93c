package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A wire is the way of one process to the server. A test may change what becomes of its asks.
type wire struct {
	*memory.Client
	mismatches atomic.Int64 // asks that were refused because of the number
	frees      atomic.Int64
	way        atomic.Pointer[through]
}

// A through sends an ask, or does not.
type through func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error)

// open lets asks through as they are; lead sends them through f.
func (w *wire) open()          { w.way.Store(nil) }
func (w *wire) lead(f through) { w.way.Store(&f) }

type wired struct {
	protocol.Resource
	wire *wire
}

func (w *wire) Bind(spec protocol.Spec) protocol.Resource { return wired{w.Client.Bind(spec), w} }

func (w *wire) Renew(ctx context.Context, renewals []protocol.Renewal, done func(int, protocol.Renewed)) {
	for i, renewal := range renewals {
		renewal.Resource = renewal.Resource.(wired).Resource
		w.Client.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, r protocol.Renewed) { done(i, r) })
	}
}

func (r wired) Ask(ctx context.Context, ask protocol.Ask) (protocol.Answer, error) {
	var answer protocol.Answer
	var err error
	if way := r.wire.way.Load(); way != nil {
		answer, err = (*way)(ctx, r.Resource, ask)
	} else {
		answer, err = r.Resource.Ask(ctx, ask)
	}
	var mismatch *protocol.Mismatch
	if errors.As(err, &mismatch) {
		r.wire.mismatches.Add(1)
	}
	return answer, err
}

func (r wired) Free(ctx context.Context, free protocol.Free) (bool, error) {
	r.wire.frees.Add(1)
	return r.Resource.Free(ctx, free)
}

// A process is an engine and its wire.
type process struct {
	*testing.T
	*Engine
	wire *wire
}

func newProcess(t *testing.T, server *memory.Server) *process {
	t.Helper()
	p := &process{T: t, wire: &wire{Client: server.Connect("test")}}
	p.Engine = New(p.wire, Config{ReleaseTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		Cause: func(l Lost) error { return fmt.Errorf("lost: %v", l.Why) }, Closed: errors.New("closed")})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

func (p *process) semaphore(permits int64, change ...func(*Options)) *Lock {
	options := Options{TTL: 15 * time.Second}
	for _, f := range change {
		f(&options)
	}
	return p.Lock(protocol.Spec{Name: "n", Kind: protocol.Semaphore, Shared: true, Permits: permits}, options)
}

func strict(o *Options) { o.Strict = true }
func polls(o *Options)  { o.Interval = 20 * time.Millisecond }

func (p *process) take(l *Lock, n int64) *Lease {
	p.Helper()
	lease, err := l.Weigh(n).Try(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	return lease
}

func (p *process) resize(permits int64) {
	p.Helper()
	if err := p.semaphore(1).Resize(p.Context(), permits); err != nil {
		p.Fatal(err)
	}
}

func (p *process) release(lease *Lease) {
	p.Helper()
	if err := lease.Release(); err != nil {
		p.Errorf("Release: %v", err)
	}
}

// standing is what the server has of the name.
func (p *process) standing() protocol.Standing {
	p.Helper()
	standing, err := p.semaphore(1).resource.Look(context.Background(), nil)
	if err != nil {
		p.Fatal(err)
	}
	return standing
}

// A caller is a goroutine in Acquire.
type caller struct {
	*testing.T
	done  chan struct{}
	lease *Lease
	err   error
}

// call starts a goroutine in Acquire, and returns when it waits or is done.
func (p *process) call(ctx context.Context, l *Lock) *caller {
	c := &caller{T: p.T, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.lease, c.err = l.Weigh(1).Acquire(ctx)
	}()
	synctest.Wait()
	return c
}

func (c *caller) waits() {
	c.Helper()
	synctest.Wait()
	select {
	case <-c.done:
		c.Fatalf("does not wait: %v, %v", c.lease, c.err)
	default:
	}
}

func (c *caller) in() *Lease {
	c.Helper()
	synctest.Wait()
	select {
	case <-c.done:
	default:
		c.Fatal("still waits")
	}
	if c.err != nil {
		c.Fatal(c.err)
	}
	return c.lease
}

// pass lets time go by on a fake clock.
func pass(d time.Duration) { <-time.After(d) }

// onMemory runs a test on a server in memory and a fake clock.
func onMemory(t *testing.T, f func(t *testing.T, server *memory.Server)) {
	synctest.Test(t, func(t *testing.T) { f(t, memory.New(protocol.Features{Queue: true, Tokens: true})) })
}

// unreachable is the failure of a request that was not sent.
func unreachable() error {
	return &protocol.Failure{Op: "ask", Name: "n", Reason: protocol.Unreachable, Err: errors.New("cut off")}
}

// The server never accepted the number of the first caller. The callers behind it are refused in
// turn.
func TestSemaphoreNumberNeverAcceptedIsRefused(t *testing.T) {
	onMemory(t, func(t *testing.T, server *memory.Server) {
		a, b := newProcess(t, server), newProcess(t, server)
		a.take(a.semaphore(4), 4)
		var callers []*caller
		gate := make(chan struct{})
		b.wire.lead(func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			<-gate
			return r.Ask(ctx, ask)
		})
		for range 3 {
			callers = append(callers, b.call(t.Context(), b.semaphore(2)))
		}
		close(gate)
		synctest.Wait()
		for _, c := range callers {
			var mismatch *protocol.Mismatch
			if <-c.done; !errors.As(c.err, &mismatch) || mismatch.Have != 4 || mismatch.Want != 2 {
				t.Errorf("got %v, %v", c.lease, c.err)
			}
		}
		if b.wire.mismatches.Load() != 3 {
			t.Errorf("%d requests were refused", b.wire.mismatches.Load())
		}
	})
}

// A leader fails for a reason of its own. The next one knows what the process has learned so far.
func TestSemaphoreResizedAfterLeaderFailed(t *testing.T) {
	onMemory(t, func(t *testing.T, server *memory.Server) {
		a, b := newProcess(t, server), newProcess(t, server)
		lease := a.take(a.semaphore(2), 2)
		var callers []*caller
		for range 4 {
			callers = append(callers, b.call(t.Context(), b.semaphore(2)))
		}
		fails := func(c *caller) {
			t.Helper()
			b.wire.lead(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
				b.wire.open()
				return protocol.Answer{}, &protocol.Failure{Op: "ask", Name: "n", Reason: protocol.Denied,
					Err: errors.New("not yours")}
			})
			pass(2 * askEvery)
			var failure *protocol.Failure
			if <-c.done; !errors.As(c.err, &failure) {
				t.Errorf("got %v, %v", c.lease, c.err)
			}
		}
		a.resize(1)
		fails(callers[0])
		callers[1].waits() // it has no place of the one before it
		fails(callers[1])
		callers[2].waits()
		a.release(lease)
		callers[2].in()
		callers[3].waits()
		if n := b.wire.mismatches.Load(); n != 1 {
			t.Errorf("%d requests were refused because of the number", n)
		}
	})
}

// The server forgets a place that shows no life. Its waiter joins anew, and goes on waiting.
func TestSemaphoreResizedWhilePlaceIsLost(t *testing.T) {
	for name, change := range map[string]func(*Options){"pooled": func(*Options) {}, "strict": strict,
		"polling": polls} {
		t.Run(name, func(t *testing.T) {
			onMemory(t, func(t *testing.T, server *memory.Server) {
				a, b := newProcess(t, server), newProcess(t, server)
				lease := a.take(a.semaphore(2), 2)
				one, two := b.call(t.Context(), b.semaphore(2, change)), b.call(t.Context(), b.semaphore(2, change))
				b.wire.lead(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
					return protocol.Answer{}, unreachable()
				})
				pass(protocol.PlaceLife + 5*time.Second)
				a.resize(3)
				if n := a.standing().Waiters; n != 0 {
					t.Fatalf("%d stand in the queue", n)
				}
				all := a.take(a.semaphore(3), 1)
				b.wire.open()
				pass(2 * time.Second)
				one.waits()
				two.waits()
				a.release(all)
				a.release(lease)
				pass(time.Second) // polling, and a release that is told to a subscription anew
				one.in()
				two.in()
				if n := b.wire.mismatches.Load(); n == 0 {
					t.Error("nobody was told of the number")
				}
			})
		})
	}
}

// A request without an answer may win something for a ticket that was given up. It goes back.
func TestSemaphoreResizedLateAskGoesBack(t *testing.T) {
	onMemory(t, func(t *testing.T, server *memory.Server) {
		a, b := newProcess(t, server), newProcess(t, server)
		lease := a.take(a.semaphore(2), 2)
		one, two := b.call(t.Context(), b.semaphore(2)), b.call(t.Context(), b.semaphore(2))
		var late func()
		b.wire.lead(func(_ context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			b.wire.open()
			late = func() {
				if answer, err := r.Ask(context.Background(), ask); err != nil || answer.Status != protocol.Queued {
					t.Errorf("the late request: %v, %v", answer, err)
				}
			}
			return protocol.Answer{}, &protocol.Failure{Op: "ask", Name: "n", Reason: protocol.NoAnswer, Unknown: true,
				Err: errors.New("lost")}
		})
		a.resize(3)
		one.in()
		pass(300 * time.Millisecond)
		if two.waits(); late == nil || b.wire.mismatches.Load() != 1 {
			t.Fatalf("%d requests were refused", b.wire.mismatches.Load())
		}
		a.resize(2)
		late()
		if n := a.standing().Waiters; n != 2 {
			t.Fatalf("%d stand in the queue, want the new ticket and the old one", n)
		}
		pass(2 * time.Second) // no request of the old one can come any more
		if n := a.standing().Waiters; n != 1 {
			t.Errorf("%d stand in the queue", n)
		}
		a.release(lease)
		two.in()
	})
}

// A hand-over to a ticket that was given up is not one to the ticket that replaced it.
func TestSemaphoreResizedLateGrantIsNotBelieved(t *testing.T) {
	onMemory(t, func(t *testing.T, server *memory.Server) {
		a, b := newProcess(t, server), newProcess(t, server)
		lease := a.take(a.semaphore(2), 2)
		one, two := b.call(t.Context(), b.semaphore(2)), b.call(t.Context(), b.semaphore(2))
		b.wire.lead(func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			answer, err := r.Ask(ctx, ask)
			if err != nil {
				b.Granted(protocol.Grant{ID: ask.Ticket.ID, Token: 1 << 52, Block: 1, At: a.standing().Server,
					Claim: 500 * time.Millisecond})
			}
			return answer, err
		})
		a.resize(3)
		one.in()
		if b.wire.mismatches.Load() != 1 {
			t.Fatalf("%d requests were refused", b.wire.mismatches.Load())
		}
		two.waits()
		a.release(lease)
		if token := two.in().Token(); token == 1<<52 {
			t.Error("it holds what it was not given")
		}
	})
}

// A server that names the number that it refuses is not asked again and again.
func TestSemaphoreRefusedWithItsOwnNumber(t *testing.T) {
	for name, change := range map[string]func(*Options){"pooled": func(*Options) {}, "strict": strict,
		"polling": polls} {
		t.Run(name, func(t *testing.T) {
			onMemory(t, func(t *testing.T, server *memory.Server) {
				a, b := newProcess(t, server), newProcess(t, server)
				a.take(a.semaphore(2), 2)
				c := b.call(t.Context(), b.semaphore(2, change))
				c.waits()
				b.wire.lead(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
					return protocol.Answer{}, &protocol.Mismatch{Name: "n", Have: 2, Want: 2}
				})
				pass(10 * time.Second)
				var mismatch *protocol.Mismatch
				if <-c.done; !errors.As(c.err, &mismatch) {
					t.Errorf("got %v, %v", c.lease, c.err)
				}
			})
		})
	}
}

// A refusal because of the number is an answer. A wait that ends after it does not say that the
// server was away.
func TestSemaphoreResizedThenGivenUp(t *testing.T) {
	onMemory(t, func(t *testing.T, server *memory.Server) {
		a, b := newProcess(t, server), newProcess(t, server)
		a.take(a.semaphore(2), 2)
		one := b.call(t.Context(), b.semaphore(2))
		ctx, cancel := context.WithCancel(t.Context())
		two := b.call(ctx, b.semaphore(2))
		b.wire.lead(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
			b.wire.lead(func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
				answer, err := r.Ask(ctx, ask)
				cancel()
				return answer, err
			})
			return protocol.Answer{}, unreachable()
		})
		a.resize(3)
		one.in()
		var ended *WaitEnded
		if <-two.done; !errors.As(two.err, &ended) || !ended.Answered || ended.Failure != nil {
			t.Errorf("got %v: %+v", two.err, ended)
		}
		if standing := a.standing(); standing.Waiters != 0 || standing.Taken != 3 {
			t.Errorf("%d stand in the queue, %d are taken", standing.Waiters, standing.Taken)
		}
	})
}

// No caller that has waited is refused because of the number, whatever others do meanwhile. The
// permits that are taken are never more than there may be.
func TestSemaphoreResizedAtRandom(t *testing.T) {
	for name, features := range map[string]protocol.Features{"queue": {Queue: true, Tokens: true},
		"no queue": {Tokens: true}} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { resizeAtRandom(t, memory.New(features), seed) })
			})
		}
	}
}

func resizeAtRandom(t *testing.T, server *memory.Server, seed uint64) {
	const most, processes, goroutines, rounds = 6, 3, 5, 20
	var taken, followed atomic.Int64
	var all, resizer sync.WaitGroup
	for i := range uint64(processes) {
		p := newProcess(t, server)
		for j := range uint64(goroutines) {
			dice := rand.New(rand.NewPCG(seed, i*goroutines+j))
			all.Go(func() {
				permits := int64(4)
				for range rounds {
					change := []func(*Options){func(*Options) {}, func(*Options) {}, strict, polls}[dice.IntN(4)]
					n := 1 + dice.Int64N(min(3, permits))
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(10000))*time.Millisecond)
					began := time.Now()
					lease, err := p.semaphore(permits, change).Weigh(n).Acquire(ctx)
					cancel()
					var ended *WaitEnded
					var mismatch *protocol.Mismatch
					switch {
					case errors.As(err, &mismatch) && time.Since(began) == 0:
						permits = mismatch.Have
						continue
					case errors.As(err, &ended):
						continue
					case err != nil:
						t.Errorf("after %v: %v", time.Since(began), err)
						return
					}
					if lease.tenure.hold.lock.spec.Permits != permits {
						followed.Add(1)
					}
					if now := taken.Add(n); now > most {
						t.Errorf("%d are taken", now)
					}
					pass(time.Duration(dice.IntN(20)) * time.Millisecond)
					taken.Add(-n)
					p.release(lease)
				}
			})
		}
	}
	p, stop := newProcess(t, server), make(chan struct{})
	resizer.Go(func() {
		for dice := rand.New(rand.NewPCG(seed, 1<<32)); ; {
			select {
			case <-stop:
				return
			case <-time.After(time.Duration(1+dice.IntN(40)) * time.Millisecond):
				p.resize(1 + dice.Int64N(most))
			}
		}
	})
	all.Wait()
	close(stop)
	resizer.Wait()
	pass(2 * protocol.PlaceLife)
	if names := server.Names("test"); len(names) > 0 {
		t.Errorf("left at the server: %q: %+v", names, p.standing())
	}
	if followed.Load() == 0 {
		t.Error("nobody went on with another number")
	}
}
