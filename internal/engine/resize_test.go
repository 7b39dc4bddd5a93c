package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

func (h *host) semaphore(permits int64, change ...func(*engine.Options)) *engine.Lock {
	options := engine.Options{TTL: 15 * time.Second}
	for _, f := range change {
		f(&options)
	}
	return h.NewLock(protocol.Spec{Name: "n", Kind: protocol.Semaphore, Shared: true, Permits: permits}, options)
}

func pooled(*engine.Options)   {}
func strict(o *engine.Options) { o.Strict = true }
func polls(o *engine.Options)  { o.Interval = 20 * time.Millisecond }

// startAcquirePermit starts a goroutine that waits for one permit.
func (h *host) startAcquirePermit(s *engine.Lock) *waiter {
	return h.startAcquire(h.t.Context(), s.Weigh(1))
}

func (h *host) resize(permits int64) {
	h.t.Helper()
	if err := h.semaphore(1).Resize(h.t.Context(), permits); err != nil {
		h.t.Fatal(err)
	}
}

func (w *waiter) mustWait() {
	w.t.Helper()
	if !w.isWaiting() {
		w.t.Fatalf("does not wait: %v, %v", w.lease, w.err)
	}
}

// A request without an answer may win something for a ticket that was given up. It goes back.
func TestSemaphoreResizedLateAskGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.try(a.semaphore(2).Weigh(2))
		one, two := b.startAcquirePermit(b.semaphore(2)), b.startAcquirePermit(b.semaphore(2))
		var late func()
		b.setAsks(func(_ context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			b.setAsks(nil)
			late = func() {
				if answer, err := r.Ask(context.Background(), ask); err != nil || answer.Status != protocol.Queued {
					t.Errorf("the late request: %v, %v", answer, err)
				}
			}
			return protocol.Answer{}, &protocol.Failure{Op: "ask", Name: "n", Reason: protocol.NoAnswer, Unknown: true,
				Err: errors.New("lost")}
		})
		a.resize(3)
		one.await()
		sleep(300 * time.Millisecond)
		if two.mustWait(); late == nil || b.mismatches.Load() != 1 {
			t.Fatalf("%d requests were refused", b.mismatches.Load())
		}
		a.resize(2)
		late()
		if n := a.inspect().QueueCount; n != 2 {
			t.Fatalf("%d stand in the queue, want the new ticket and the old one", n)
		}
		sleep(2 * time.Second) // no request of the old one can come any more
		if n := a.inspect().QueueCount; n != 1 {
			t.Errorf("%d stand in the queue", n)
		}
		a.release(lease)
		two.await()
	})
}

// A hand-over to a ticket that was given up is not one to the ticket that replaced it.
func TestSemaphoreResizedLateGrantIsNotBelieved(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.try(a.semaphore(2).Weigh(2))
		one, two := b.startAcquirePermit(b.semaphore(2)), b.startAcquirePermit(b.semaphore(2))
		b.setAsks(func(ctx context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			answer, err := r.Ask(ctx, ask)
			if err != nil {
				b.Granted(protocol.Grant{ID: ask.Ticket.ID, Token: 1 << 52, Block: 1, At: a.inspect().Server,
					Claim: 500 * time.Millisecond})
			}
			return answer, err
		})
		a.resize(3)
		one.await()
		synctest.Wait()
		if b.mismatches.Load() != 1 {
			t.Fatalf("%d requests were refused", b.mismatches.Load())
		}
		two.mustWait()
		a.release(lease)
		if token := two.await().Token(); token == 1<<52 {
			t.Error("it holds what it was not given")
		}
	})
}

// No caller that has waited is refused because of the number, whatever others do meanwhile. The
// permits that are taken are never more than there may be.
func TestSemaphoreResizedAtRandomRefusesNoWaiter(t *testing.T) {
	for name, features := range map[string]protocol.Features{"queue": {Queue: true},
		"no queue": {}} {
		for seed := range uint64(10) {
			t.Run(fmt.Sprintf("%s, seed %d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { resizeAtRandom(t, memory.New(features), seed) })
			})
		}
	}
}

func resizeAtRandom(t *testing.T, server *memory.Server, seed uint64) {
	const most, processes, goroutines, rounds = 6, 3, 5, 20
	var taken, told atomic.Int64
	var all, resizer sync.WaitGroup
	var hosts []*host
	for i := range uint64(processes) {
		p := newHost(t, server)
		hosts = append(hosts, p)
		for j := range uint64(goroutines) {
			dice := rand.New(rand.NewPCG(seed, i*goroutines+j))
			all.Go(func() {
				permits := int64(4)
				for range rounds {
					change := []func(*engine.Options){pooled, pooled, strict, polls}[dice.IntN(4)]
					n := 1 + dice.Int64N(min(3, permits))
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(dice.IntN(10000))*time.Millisecond)
					began := time.Now()
					lease, err := p.semaphore(permits, change).Weigh(n).Acquire(ctx)
					cancel()
					var ended *engine.WaitFailure
					var mismatch *protocol.Mismatch
					switch {
					case errors.As(err, &mismatch) && time.Since(began) == 0:
						told.Add(1)
						permits = mismatch.Have
						continue
					case errors.As(err, &ended) && ended.Failure == nil: // a refusal by the number is an answer
						continue
					case err != nil:
						t.Errorf("after %v: %v", time.Since(began), err)
						return
					}
					if now := taken.Add(n); now > most {
						t.Errorf("%d are taken", now)
					}
					<-time.After(time.Duration(dice.IntN(20)) * time.Millisecond)
					taken.Add(-n)
					p.release(lease)
				}
			})
		}
	}
	p, stop := newHost(t, server), make(chan struct{})
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
	sleep(2 * protocol.PlaceLife)
	if names := server.Names("test"); len(names) > 0 {
		t.Errorf("left at the server: %q: %+v", names, p.inspect())
	}
	refused := int64(0)
	for _, p := range hosts {
		refused += p.mismatches.Load()
	}
	if refused <= told.Load() {
		t.Error("nobody went on with another number")
	}
}
