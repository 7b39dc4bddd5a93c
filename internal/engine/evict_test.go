package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// evict takes a ticket out of the queue, and reports whether it had a place there.
func (h *host) evict(kind protocol.Kind, id protocol.ID) bool {
	h.t.Helper()
	done, err := h.Evict(h.t.Context(), "n", kind, id, operator)
	if err != nil {
		h.t.Fatal(err)
	}
	return done
}

// awaitEviction waits until the goroutine learns that it was taken out of the queue.
func (w *waiter) awaitEviction() {
	w.t.Helper()
	w.awaitEnd()
	var ended *engine.WaitEnded
	var evicted *protocol.Evicted
	if !errors.As(w.err, &ended) || !errors.As(ended.Err, &evicted) || evicted.By != operator || evicted.Name != "n" {
		w.t.Errorf("the wait ended with %v", w.err)
	}
}

// A client needs no message to learn what it did itself to a waiter, or to a ticket that it uses.
func TestOwnCallsNeedNoMessage(t *testing.T) {
	permits := func(h *host, n int64) *engine.Lock {
		return h.NewLock(protocol.Spec{Name: "n", Kind: protocol.Semaphore, Shared: true, Permits: n},
			engine.Options{TTL: 15 * time.Second}).Weigh(1)
	}
	for name, test := range map[string]func(t *testing.T, a *host) (done func() bool, call func() error){
		"Evict": func(t *testing.T, a *host) (func() bool, func() error) {
			a.lock(engine.Options{})
			w := a.startLock(t.Context(), engine.Options{Strict: true})
			return func() bool { return !w.isWaiting() }, func() error {
				_, err := a.Evict(t.Context(), "n", protocol.Mutex, a.inspect().Queue[0].ID, operator)
				return err
			}
		},
		"Resize": func(t *testing.T, a *host) (func() bool, func() error) {
			if _, err := permits(a, 1).Try(t.Context()); err != nil {
				t.Fatal(err)
			}
			in := make(chan error, 1)
			go func() {
				_, err := permits(a, 1).Acquire(t.Context())
				in <- err
			}()
			synctest.Wait()
			return func() bool { return len(in) == 1 }, func() error { return permits(a, 1).Resize(t.Context(), 2) }
		},
		"DropPlace": func(t *testing.T, a *host) (func() bool, func() error) {
			a.lock(engine.Options{})
			place := a.keepPlace(time.Minute)
			w := a.startAttach(t.Context(), place)
			return func() bool { return !w.isWaiting() }, func() error { return a.DropPlace(t.Context(), place) }
		},
		"DropDetached": func(t *testing.T, a *host) (func() bool, func() error) {
			detached, err := a.lock(engine.Options{}).Detach()
			if err != nil {
				t.Fatal(err)
			}
			lease, err := a.Attach(t.Context(), detached[0])
			if err != nil {
				t.Fatal(err)
			}
			return func() bool { return lease.Err() != nil },
				func() error { return a.DropDetached(t.Context(), detached) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *memory.Server) {
				a := newHost(t, server)
				done, call := test(t, a)
				a.setWay(way{noMessages: true})
				if err := call(); err != nil {
					t.Fatal(err)
				}
				if synctest.Wait(); !done() {
					t.Error("it is not told")
				}
			})
		})
	}
}

// A waiter whose first answer is late, or was lost, is evicted as well. One that does not hear the
// nudge is told with its next ask; until then a replay says that the ticket waited.
func TestEvictedWaiterIsToldByAsking(t *testing.T) {
	bubbles(t, map[string]way{
		"the answer is late": {back: 100 * time.Millisecond},
		"the answer is lost": {noAnswers: true},
		"no message":         {noMessages: true},
	}, func(t *testing.T, server *memory.Server, w way) {
		a, b, op := newHosts(t, server)
		lease := a.lock(engine.Options{})
		b.setWay(w)
		out := b.startLock(t.Context(), engine.Options{})
		id, evicted := op.inspect().Queue[0].ID, time.Now()
		if !op.evict(protocol.Mutex, id) || w.noMessages && !op.evict(protocol.Mutex, id) {
			t.Fatal("not evicted")
		}
		sleep(50 * time.Millisecond)
		b.setWay(way{noMessages: w.noMessages})
		out.awaitEviction()
		if took := out.at.Sub(evicted); took > 7*time.Second {
			t.Errorf("told after %v", took)
		}
		b.setWay(way{})
		a.release(lease)
	})
}

// The end of ctx at the moment of the eviction leaves no goroutine of the pool without a leader.
func TestEvictAsContextEndsReachesNextLeader(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, op := newHosts(t, server)
		lease := a.lock(engine.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		leads, follows := b.startLock(ctx, engine.Options{}), b.startLock(t.Context(), engine.Options{})
		b.setWay(way{noMessages: true})
		op.evict(protocol.Mutex, op.inspect().Queue[0].ID)
		cancel()
		<-leads.done
		b.setWay(way{})
		follows.awaitEviction() // it went on with the ticket
		a.release(lease)
	})
}
