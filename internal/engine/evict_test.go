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

// evicts takes a ticket out of the queue, and reports whether it had a place there.
func (h *host) evicts(kind protocol.Kind, id protocol.ID) bool {
	h.t.Helper()
	done, err := h.Evict(h.t.Context(), "n", kind, id, operator)
	if err != nil {
		h.t.Fatal(err)
	}
	return done
}

// evicted waits until the goroutine learns that it was taken out of the queue.
func (w *waiter) evicted() {
	w.t.Helper()
	select {
	case <-w.done:
	case <-time.After(time.Hour):
		w.t.Fatal("it still waits")
	}
	var ended *engine.WaitEnded
	var evicted *protocol.Evicted
	if !errors.As(w.err, &ended) || !errors.As(ended.Err, &evicted) || evicted.By != operator || evicted.Name != "n" {
		w.t.Errorf("the wait ended with %v", w.err)
	}
}

// The wait of a ticket that is evicted ends: at once if its process hears the nudge, and otherwise
// with its next ask. The others keep their places.
func TestEvictEndsWait(t *testing.T) {
	type row struct {
		way  way
		most time.Duration
	}
	bubbles(t, map[string]row{
		"message":    {},
		"no message": {way: way{noMessages: true}, most: 7 * time.Second},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b, c, op := newHost(t, server), newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		out, next := b.waits(t.Context(), engine.Options{}), c.waits(t.Context(), engine.Options{})
		places := op.seen().Queue
		b.goes(test.way)
		at := time.Now()
		if !op.evicts(protocol.Mutex, places[0].ID) {
			t.Fatal("not evicted")
		}
		if left := op.seen().Queue; len(left) != 1 || left[0].ID != places[1].ID {
			t.Errorf("the queue is %+v", left)
		}
		// Once it is told, its process frees the ticket, and the server forgets it.
		if test.way.noMessages && !op.evicts(protocol.Mutex, places[0].ID) {
			t.Error("a replay says that the ticket never waited")
		}
		out.evicted()
		if took := out.at.Sub(at); took > test.most {
			t.Errorf("told after %v", took)
		}
		b.goes(way{})
		a.releases(lease)
		second := next.in()
		if op.evicts(protocol.Mutex, places[1].ID) || second.Err() != nil {
			t.Error("a holder was evicted")
		}
		c.releases(second)
		sleep(time.Minute)
		nothingLeft(t, server)
		if op.evicts(protocol.Mutex, places[0].ID) {
			t.Error("the ticket is remembered for ever")
		}
	})
}

// A client needs no message to learn what it did itself to a waiter, or to a ticket that it uses.
func TestOwnCallsNeedNoMessage(t *testing.T) {
	permits := func(h *host, n int64) *engine.Lock {
		return h.Lock(protocol.Spec{Name: "n", Kind: protocol.Semaphore, Shared: true, Permits: n},
			engine.Options{TTL: 15 * time.Second}).Weigh(1)
	}
	for name, test := range map[string]func(t *testing.T, a *host) (done func() bool, call func() error){
		"Evict": func(t *testing.T, a *host) (func() bool, func() error) {
			a.holds(engine.Options{})
			w := a.waits(t.Context(), engine.Options{Strict: true})
			return func() bool { return !w.out() }, func() error {
				_, err := a.Evict(t.Context(), "n", protocol.Mutex, a.seen().Queue[0].ID, operator)
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
			a.holds(engine.Options{})
			place := a.place(time.Minute)
			w := a.waitsAt(t.Context(), place)
			return func() bool { return !w.out() }, func() error { return a.DropPlace(t.Context(), place) }
		},
		"DropDetached": func(t *testing.T, a *host) (func() bool, func() error) {
			detached, err := a.holds(engine.Options{}).Detach()
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
				a.goes(way{noMessages: true})
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

// A waiter whose first answer is late, or was lost, is evicted as well.
func TestEvictBeforeAnswer(t *testing.T) {
	for _, w := range []way{{back: 100 * time.Millisecond}, {noAnswers: true}} {
		bubble(t, func(t *testing.T, server *memory.Server) {
			a, b, op := newHost(t, server), newHost(t, server), newHost(t, server)
			lease := a.holds(engine.Options{})
			b.goes(w)
			out := b.waits(t.Context(), engine.Options{})
			if !op.evicts(protocol.Mutex, op.seen().Queue[0].ID) {
				t.Fatal("not evicted")
			}
			sleep(50 * time.Millisecond)
			b.goes(way{})
			out.evicted()
			a.releases(lease)
		})
	}
}

// The end of ctx at the moment of the eviction leaves no goroutine of the pool without a leader.
func TestEvictAsContextEnds(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, op := newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		leads, follows := b.waits(ctx, engine.Options{}), b.waits(t.Context(), engine.Options{})
		b.goes(way{noMessages: true})
		op.evicts(protocol.Mutex, op.seen().Queue[0].ID)
		cancel()
		<-leads.done
		b.goes(way{})
		follows.evicted() // it went on with the ticket
		a.releases(lease)
	})
}
