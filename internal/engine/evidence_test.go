package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// A hold that evidence names is not passed on to the next goroutine of its process: the evidence
// would be that of a caller that holds nothing any more.
func TestDeadlockEvidenceDoesNotPassOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ofB, once := b.lockName(t.Context(), "n1", writes), a.lockName(t.Context(), "n0", writes)
		pooled := a.NewLock(a.checkedLock("n0", writes).Spec(), engine.Options{TTL: 15 * time.Second})
		last, next := a.startAcquire(t.Context(), pooled), a.startAcquire(t.Context(), pooled)
		a.release(once)
		ofA := last.await() // it may pass on: tokens are reserved
		detached := context.WithoutCancel(ofA.Context())
		first := a.startAcquire(detached, a.checkedLock("n1", writes))
		before := inspect(t, server, "n0").Holds[0].ID
		a.release(ofA)
		held := next.await()
		if after := inspect(t, server, "n0").Holds[0].ID; after == before {
			t.Error("the hold was passed on")
		}
		second := b.startAcquire(ofB.Context(), b.checkedLock("n0", writes)) // waits for next, which waits for nothing
		sleep(5 * time.Minute)
		if !first.isWaiting() || !second.isWaiting() {
			t.Errorf("ended: %v, %v", first.err, second.err)
		}
		a.release(held)
		b.release(second.await())
		b.release(ofB)
		a.release(first.await())
	})
}

// An attempt with evidence is never passed on to another goroutine of its process, which would wait
// with the evidence of the first: it gives up, and keeps what it holds.
func TestDeadlockAttemptIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ofA, ofB := a.lockName(t.Context(), "n0", writes), b.lockName(t.Context(), "n1", writes)
		bound, cancel := ofA.Bind(t.Context())
		first := a.startAcquire(bound, a.checkedLock("n1", writes))
		next := a.startAcquire(t.Context(), a.checkedLock("n1", writes))
		cancel()
		if first.isWaiting() || !errors.Is(first.err, context.Canceled) {
			t.Errorf("it ended with %v", first.err)
		}
		second := b.startAcquire(ofB.Context(), b.checkedLock("n0", writes)) // for what waits for nobody
		sleep(5 * time.Minute)
		if !second.isWaiting() || !next.isWaiting() {
			t.Fatalf("ended: %v, %v", second.err, next.err)
		}
		if found, err := b.Deadlocks(t.Context()); len(found) > 0 || err != nil {
			t.Errorf("told %v, %v", found, err)
		}
		a.release(ofA)
		b.release(second.await())
		b.release(ofB)
		a.release(next.await())
	})
}

// A lease ends, and others keep its hold: another entry, a reader of the process, or the process
// that attaches it. The evidence of a caller that waits under the lease does not name it any more.
func TestDeadlockEvidenceEndsWithTheLease(t *testing.T) {
	for how, end := range map[string]func(*host, *engine.Lease) func(){
		"entered": func(h *host, lease *engine.Lease) func() {
			entry := h.lockName(lease.Context(), "n0", writes)
			h.release(lease)
			return func() { h.release(entry) }
		},
		"detached": func(h *host, lease *engine.Lease) func() {
			all, err := lease.Detach()
			fatal.If(h.t, err)
			again, err := h.Attach(h.t.Context(), all[0])
			fatal.If(h.t, err)
			return func() { h.release(again) }
		},
		"read by others": func(h *host, lease *engine.Lease) func() {
			other := h.lockName(h.t.Context(), "n0", reads) // joins the hold, which is young
			if other.Token() != lease.Token() {
				h.t.Error("it is another hold")
			}
			h.release(lease)
			return func() { h.release(other) }
		},
	} {
		runBubble(t, how, func(t *testing.T, server *memory.Server) {
			a, b := newHost(t, server), newHost(t, server)
			ofA, ofB := a.lockName(t.Context(), "n0", how == "read by others"), b.lockName(t.Context(), "n1",
				writes)
			first := a.startAcquire(context.WithoutCancel(ofA.Context()), a.checkedLock("n1", writes))
			second := b.startAcquire(ofB.Context(), b.checkedLock("n0", writes))
			if under := inspect(t, server, "n1").Queue[0].Under; len(under) != 1 || under[0].Name != "n0" {
				t.Errorf("evidence before: %v", under)
			}
			release := end(a, ofA)
			synctest.Wait()
			if queue := inspect(t, server, "n1").Queue; len(queue) != 1 || len(queue[0].Under) != 0 {
				t.Errorf("the queue after: %+v", queue)
			}
			sleep(5 * time.Minute)
			if !first.isWaiting() || !second.isWaiting() {
				t.Errorf("ended: %v, %v", first.err, second.err)
			}
			release()
			b.release(second.await())
			b.release(ofB)
			a.release(first.await())
		})
	}
}
