package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// A way of wanting a name: alone, or as a reader.
const (
	writes = false
	reads  = true
)

// checkedLock is a lock of a name that readers and writers use, with the check for deadlocks.
func (h *host) checkedLock(name string, shared bool) *engine.Lock {
	return h.NewLock(protocol.Spec{Name: name, Kind: protocol.ReadWrite, Shared: shared, Label: "caller of " + name},
		engine.Options{TTL: 15 * time.Second, DeadlockCheck: true})
}

// lockName takes a name that is free.
func (h *host) lockName(ctx context.Context, name string, shared bool) *engine.Lease {
	h.t.Helper()
	return h.must(h.checkedLock(name, shared).Acquire(ctx))
}

// deadlock is the cycle that ended a wait; nil: the waiter still waits, or its wait ended
// otherwise.
func (w *waiter) deadlock() *deadlock.Cycle {
	var ended *engine.WaitFailure
	var cycle *deadlock.Cycle
	if w.isWaiting() || !errors.As(w.err, &ended) || !errors.As(ended.Err, &cycle) ||
		errors.Is(w.err, context.Canceled) {
		return nil
	}
	return cycle
}

// cycleOf makes each of n processes hold a name and wait for that of the next one.
func cycleOf(t *testing.T, server *memory.Server, n int) (hosts []*host, held []*engine.Lease, waiters []*waiter) {
	for i := range n {
		hosts = append(hosts, newHost(t, server))
		held = append(held, hosts[i].lockName(t.Context(), name(i), writes))
	}
	for i := range n {
		waiters = append(waiters, hosts[i].startAcquire(held[i].Context(), hosts[i].checkedLock(name((i+1)%n), writes)))
	}
	return hosts, held, waiters
}

func name(i int) string { return fmt.Sprint("n", i) }

// Of a cycle one waiter ends, the one that joined last, and it names the cycle. The others get in
// one after the other when it releases what it holds.
func TestDeadlockEndsOneWaiterOfACycle(t *testing.T) {
	for _, n := range []int{2, 3, 10} {
		runBubble(t, fmt.Sprint(n), func(t *testing.T, server *memory.Server) {
			hosts, held, waiters := cycleOf(t, server, n)
			sleep(10 * time.Second)
			for i, w := range waiters {
				if !w.isWaiting() || len(hosts[i].requests(time.Time{}, "inspect")) > 0 {
					t.Errorf("waiter %d did something before a TTL", i)
				}
			}
			sleep(50 * time.Second)
			last := n - 1
			found := waiters[last].deadlock()
			if found == nil {
				t.Fatalf("the last waiter: %v", waiters[last].err)
			}
			for i, w := range waiters[:last] {
				if !w.isWaiting() {
					t.Errorf("waiter %d ended with %v", i, w.err)
				}
			}
			checkCycle(t, found, n)
			for i := range n { // the victim first, then the one that waits for it
				at := (last - i + n) % n
				hosts[at].release(held[at])
				if i < last {
					next := (at - 1 + n) % n
					hosts[next].release(waiters[next].await())
				}
			}
			nothingLeft(t, server)
		})
	}
}

// checkCycle compares a cycle of the names n0, n1, ... whose last waiter is the victim.
func checkCycle(t *testing.T, found *deadlock.Cycle, n int) {
	t.Helper()
	if len(found.Members) != n {
		t.Fatalf("the cycle has %d members", len(found.Members))
	}
	for i, m := range found.Members {
		at := (n - 1 + i) % n
		waits := name((at + 1) % n)
		if m.Holds != name(at) || m.Waits != waits || m.Hold.Token == 0 || m.Place.Party.Label != "caller of "+waits {
			t.Errorf("member %d holds %q and waits for %q: %+v", i, m.Holds, m.Waits, m)
		}
	}
}

// A reader holds what a writer waits for, and waits behind a writer for what that writer's process
// reads: no hold excludes the reader itself.
func TestDeadlockBehindAWaiterInFront(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHosts(t, server)
		ofA, ofB := a.lockName(t.Context(), "n0", writes), b.lockName(t.Context(), "n1", reads)
		between := c.startAcquire(t.Context(), c.checkedLock("n1", writes)) // holds nothing
		first := b.startAcquire(ofB.Context(), b.checkedLock("n0", reads))
		second := a.startAcquire(ofA.Context(), a.checkedLock("n1", reads))
		sleep(time.Minute)
		if second.deadlock() == nil || !first.isWaiting() || !between.isWaiting() {
			t.Fatalf("ended: %v; %v; %v", second.err, first.err, between.err)
		}
		if looked := c.requests(time.Time{}, "inspect"); len(looked) > 0 {
			t.Errorf("a caller under no lease looked %d times", len(looked))
		}
		a.release(ofA)
		b.release(first.await())
		b.release(ofB)
		c.release(between.await())
	})
}

func inspect(t *testing.T, server *memory.Server, of string) protocol.Inspection {
	t.Helper()
	in, err := server.Connect("test").Inspect(t.Context(), of, protocol.Page{Holds: 10, Queue: 10})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// The victim's lease ends, or that of another member, between the two walks: there is no cycle any
// more, and nobody ends.
func TestDeadlockLeaseReleasedBetweenTheWalks(t *testing.T) {
	for released := range 2 {
		runBubble(t, fmt.Sprint(released), func(t *testing.T, server *memory.Server) {
			hosts, held, waiters := cycleOf(t, server, 2)
			for len(hosts[1].requests(time.Time{}, "inspect")) < 2 { // it has seen the cycle
				sleep(100 * time.Millisecond)
			}
			hosts[released].release(held[released])
			other := 1 - released
			hosts[other].release(waiters[other].await())
			hosts[other].release(held[other])
			if w := waiters[released]; w.isWaiting() || !errors.Is(w.err, context.Canceled) { // with its lease
				t.Errorf("ended with %v", w.err)
			}
			nothingLeft(t, server)
		})
	}
}

// A process that crashed leaves its places and its holds behind. They are no deadlock, as they end
// by themselves.
func TestDeadlockWithACrashedProcessIsNone(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ofA, ofB := a.lockName(t.Context(), "n0", writes), b.lockName(t.Context(), "n1", writes)
		first := a.startAcquire(ofA.Context(), a.checkedLock("n1", writes))
		a.setWay(silent)
		soon := engine.Options{TTL: time.Second, DeadlockCheck: true} // it looks twice while the hold lasts
		second := b.startAcquire(ofB.Context(), b.NewLock(b.checkedLock("n0", writes).Spec(), soon))
		sleep(12 * time.Second)
		if looked := len(b.requests(time.Time{}, "inspect")); !second.isWaiting() || looked < 4 {
			t.Fatalf("after %d requests it ended with %v", looked, second.err)
		}
		b.release(second.await())
		b.release(ofB)
		if <-first.done; first.err == nil {
			t.Error("it holds, although its lease was lost")
		}
	})
}

// A group that waits holds the names before, under no context. They are evidence.
func TestDeadlockOfAGroupIsSeen(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		options := engine.Options{TTL: 15 * time.Second, DeadlockCheck: true}
		ofA := a.try(a.NewLock(protocol.Spec{Name: "n1", Kind: protocol.Mutex}, engine.Options{TTL: 15 * time.Second}))
		group := b.NewGroup([]string{"n0", "n1", "n2"}, protocol.Spec{Kind: protocol.Mutex}, options)
		done := make(chan error, 1)
		go func() {
			lease, err := group.Acquire(t.Context())
			if err == nil {
				err = lease.Release()
			}
			done <- err
		}()
		sleep(time.Millisecond)
		first := a.startAcquire(ofA.Context(), a.NewLock(protocol.Spec{Name: "n0", Kind: protocol.Mutex}, options))
		sleep(time.Minute)
		if found := first.deadlock(); found == nil || len(found.Members) != 2 {
			t.Fatalf("ended with %v", first.err)
		}
		a.release(ofA)
		if err := <-done; err != nil {
			t.Errorf("the group: %v", err)
		}
		nothingLeft(t, server)
	})
}

// An operator is told each cycle once, also those whose members do not look themselves soon, and
// nothing ends by that.
func TestDeadlocksTellsWhatIsThere(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		_, _, waiters := cycleOf(t, server, 3)
		operator := newHost(t, server)
		other := newHost(t, server)
		lease := other.lockName(t.Context(), "alone", writes)
		waits := other.startAcquire(lease.Context(), other.checkedLock("n1", writes)) // part of no cycle
		found, err := operator.Deadlocks(t.Context())
		if err != nil || len(found) != 1 {
			t.Fatalf("found %v, %v", found, err)
		}
		checkCycle(t, found[0], 3)
		for i, w := range append(waiters, waits) {
			if !w.isWaiting() {
				t.Errorf("waiter %d ended with %v", i, w.err)
			}
		}
		over, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		var ended *engine.WaitFailure
		if _, err := operator.Deadlocks(over); !errors.As(err, &ended) {
			t.Errorf("after its context: %v", err)
		}
	})
}

// A caller that may not inspect names waits as any other, and the logger is told why it does not
// look for deadlocks.
func TestDeadlockCheckWithoutPermissionWaits(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		ofA := a.lockName(t.Context(), "n0", writes)
		var warnings strings.Builder
		c := &host{t: t, Engine: newEngine(blind{server.Connect("test")}, func(c *engine.Config) {
			c.Logger = slog.New(slog.NewTextHandler(&warnings, nil))
		})}
		defer c.Engine.Close()
		ofC := c.lockName(t.Context(), "n2", writes)
		w := c.startAcquire(ofC.Context(), c.checkedLock("n0", writes))
		sleep(5 * time.Minute)
		if !w.isWaiting() {
			t.Errorf("it ended with %v", w.err)
		}
		if _, err := c.Deadlocks(t.Context()); err == nil {
			t.Error("Deadlocks was not refused")
		}
		a.release(ofA)
		c.release(w.await())
		c.release(ofC)
		if n := strings.Count(warnings.String(), "looking for a deadlock"); n < 3 || n > 9 {
			t.Errorf("%d warnings in 5 minutes", n)
		}
	})
}

// blind is a server that refuses inspections.
type blind struct{ protocol.Protocol }

func (blind) Inspect(context.Context, string, protocol.Page) (protocol.Inspection, error) {
	return protocol.Inspection{}, &protocol.Failure{Op: "inspect", Reason: protocol.Denied,
		Err: errors.New("no permission")}
}

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
