package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// evict takes the first waiter out of the queue.
func (h *host) evict() {
	h.t.Helper()
	done, err := h.Evict(h.t.Context(), "n", protocol.Mutex, h.inspect().Queue[0].ID, operator)
	if err != nil || !done {
		h.t.Fatalf("Evict: %v, %v", done, err)
	}
}

// awaitEviction waits until the goroutine learns that it was taken out of the queue.
func (w *waiter) awaitEviction() {
	w.t.Helper()
	w.awaitEnd()
	var ended *engine.WaitFailure
	var evicted *protocol.Evicted
	if !errors.As(w.err, &ended) || !errors.As(ended.Err, &evicted) || evicted.By != operator || evicted.Name != "n" {
		w.t.Errorf("the wait ended with %v", w.err)
	}
}

// A client needs no message to learn what it did itself to a waiter, or to a ticket that it uses.
func TestOwnCallsNeedNoMessage(t *testing.T) {
	noMessages := way{noMessages: true}
	bubbles(t, map[string]func(a *host) (isTold bool){
		"Evict": func(a *host) bool {
			a.lock(engine.Options{})
			w := a.startLock(a.t.Context(), engine.Options{Strict: true})
			a.setWay(noMessages)
			a.evict()
			return !w.isWaiting()
		},
		"Resize": func(a *host) bool {
			a.try(a.semaphore(1).Weigh(1))
			w := a.startAcquirePermit(a.semaphore(1))
			a.setWay(noMessages)
			a.resize(2)
			return !w.isWaiting()
		},
		"DropPlace": func(a *host) bool {
			a.lock(engine.Options{})
			place := a.keepPlace(time.Minute)
			w := a.startAttach(a.t.Context(), place)
			a.setWay(noMessages)
			return a.DropPlace(a.t.Context(), place) == nil && !w.isWaiting()
		},
		"DropDetached": func(a *host) bool {
			d := a.detach(a.lock(engine.Options{}))
			lease := a.attach(d)
			a.setWay(noMessages)
			err := a.DropDetached(a.t.Context(), []engine.Detached{d})
			sleep(0)
			return err == nil && lease.Err() != nil
		},
	}, func(t *testing.T, server *memory.Server, isTold func(*host) bool) {
		if !isTold(newHost(t, server)) {
			t.Error("it is not told")
		}
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
		op.evict()
		cancel()
		<-leads.done
		b.setWay(way{})
		follows.awaitEviction() // it went on with the ticket
		a.release(lease)
	})
}
