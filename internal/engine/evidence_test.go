package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A hold that evidence names is not passed on to the next goroutine of its process: the evidence
// would be that of a caller that holds nothing any more.
func TestDeadlockEvidenceDoesNotPassOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ofB, once := b.has(t.Context(), "n1", writes), a.has(t.Context(), "n0", writes)
		pooled := a.Lock(a.wants("n0", writes).Spec(), engine.Options{TTL: 15 * time.Second})
		last, next := a.waitsFor(t.Context(), pooled), a.waitsFor(t.Context(), pooled)
		a.releases(once)
		ofA := last.in() // it may pass on: tokens are reserved
		detached := context.WithoutCancel(ofA.Context())
		first := a.waitsFor(detached, a.wants("n1", writes))
		before := inspect(t, server, "n0").Holds[0].ID
		a.releases(ofA)
		held := next.in()
		if after := inspect(t, server, "n0").Holds[0].ID; after == before {
			t.Error("the hold was passed on")
		}
		second := b.waitsFor(ofB.Context(), b.wants("n0", writes)) // waits for next, which waits for nothing
		sleep(5 * time.Minute)
		if !first.out() || !second.out() {
			t.Errorf("ended: %v, %v", first.err, second.err)
		}
		a.releases(held)
		b.releases(second.in())
		b.releases(ofB)
		a.releases(first.in())
	})
}

// An attempt with evidence is never passed on to another goroutine of its process, which would wait
// with the evidence of the first: it gives up, and keeps what it holds.
func TestDeadlockAttemptIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ofA, ofB := a.has(t.Context(), "n0", writes), b.has(t.Context(), "n1", writes)
		bound, cancel := ofA.Bind(t.Context())
		first := a.waitsFor(bound, a.wants("n1", writes))
		next := a.waitsFor(t.Context(), a.wants("n1", writes))
		cancel()
		if first.out() || !errors.Is(first.err, context.Canceled) {
			t.Errorf("it ended with %v", first.err)
		}
		second := b.waitsFor(ofB.Context(), b.wants("n0", writes)) // for what waits for nobody
		sleep(5 * time.Minute)
		if !second.out() || !next.out() {
			t.Fatalf("ended: %v, %v", second.err, next.err)
		}
		if found, err := b.Deadlocks(t.Context()); len(found) > 0 || err != nil {
			t.Errorf("told %v, %v", found, err)
		}
		a.releases(ofA)
		b.releases(second.in())
		b.releases(ofB)
		a.releases(next.in())
	})
}

// A lease ends, and others keep its hold: another entry, a reader of the process, or the process
// that attaches it. The evidence of a caller that waits under the lease does not name it any more.
func TestDeadlockEvidenceEndsWithTheLease(t *testing.T) {
	for how, end := range map[string]func(*host, *engine.Lease) func(){
		"entered": func(h *host, lease *engine.Lease) func() {
			entry := h.has(lease.Context(), "n0", writes)
			h.releases(lease)
			return func() { h.releases(entry) }
		},
		"detached": func(h *host, lease *engine.Lease) func() {
			all, err := lease.Detach()
			if err != nil {
				h.t.Fatal(err)
			}
			again, err := h.Attach(h.t.Context(), all[0])
			if err != nil {
				h.t.Fatal(err)
			}
			return func() { h.releases(again) }
		},
		"read by others": func(h *host, lease *engine.Lease) func() {
			other := h.has(h.t.Context(), "n0", reads) // joins the hold, which is young
			if other.Token() != lease.Token() {
				h.t.Error("it is another hold")
			}
			h.releases(lease)
			return func() { h.releases(other) }
		},
	} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *memory.Server) {
				a, b := newHost(t, server), newHost(t, server)
				ofA, ofB := a.has(t.Context(), "n0", how == "read by others"), b.has(t.Context(), "n1", writes)
				first := a.waitsFor(context.WithoutCancel(ofA.Context()), a.wants("n1", writes))
				second := b.waitsFor(ofB.Context(), b.wants("n0", writes))
				if under := inspect(t, server, "n1").Queue[0].Under; len(under) != 1 || under[0].Name != "n0" {
					t.Errorf("evidence before: %v", under)
				}
				release := end(a, ofA)
				synctest.Wait()
				if queue := inspect(t, server, "n1").Queue; len(queue) != 1 || len(queue[0].Under) != 0 {
					t.Errorf("the queue after: %+v", queue)
				}
				sleep(5 * time.Minute)
				if !first.out() || !second.out() {
					t.Errorf("ended: %v, %v", first.err, second.err)
				}
				release()
				b.releases(second.in())
				b.releases(ofB)
				a.releases(first.in())
			})
		})
	}
}

// Evidence names the leases of this client that keep others out, each hold once: no permits, no
// leases of another client, and none that has ended.
func TestDeadlockEvidenceNamesWhatKeepsOthersOut(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		outer := a.has(t.Context(), "n0", writes)
		foreign := b.has(outer.Context(), "n1", writes)
		permit, err := a.Lock(protocol.Spec{Name: "s", Kind: protocol.Semaphore, Shared: true, Permits: 2},
			engine.Options{TTL: time.Minute}).
			Weigh(1).Acquire(foreign.Context())
		if err != nil {
			t.Fatal(err)
		}
		over := a.has(permit.Context(), "n2", writes)
		inner := a.has(over.Context(), "n3", reads)
		entered := a.has(inner.Context(), "n3", reads)
		under := context.WithoutCancel(entered.Context())
		a.releases(over)
		w := a.waitsFor(under, a.wants("n1", writes))
		var names []string
		for _, lease := range inspect(t, server, "n1").Queue[0].Under {
			names = append(names, lease.Name)
		}
		if want := []string{"n3", "n0"}; !slices.Equal(names, want) {
			t.Errorf("evidence names %q, want %q", names, want)
		}
		b.releases(foreign)
		a.releases(w.in())
		for _, lease := range []*engine.Lease{entered, inner, permit, outer} {
			a.releases(lease)
		}
	})
}
