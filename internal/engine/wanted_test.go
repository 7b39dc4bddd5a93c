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

var wanted = engine.Options{Wanted: true}

// isWanted reports whether the holder of a lease was told that others want the name.
func isWanted(lease interface{ Wanted() <-chan struct{} }) bool {
	synctest.Wait()
	select {
	case <-lease.Wanted():
		return true
	default:
		return false
	}
}

func (h *host) tell(found, heard int64) {
	h.t.Helper()
	if told, err := h.Tell(h.t.Context(), "n", protocol.Mutex, ""); err != nil ||
		told != (protocol.TellCount{Found: found, Heard: heard}) {
		h.t.Errorf("told %+v, %v; want %d of %d", told, err, heard, found)
	}
}

// A holder is told of those that wait, if it asked for that, and keeps its lease.
func TestWantedByThoseThatWait(t *testing.T) {
	bubbles(t, map[string]func(*testing.T, *memory.Server) *engine.Lease{
		"from the start": func(t *testing.T, server *memory.Server) *engine.Lease {
			a, b, _ := newHosts(t, server)
			lease := a.must(a.mutex(wanted).Acquire(t.Context()))
			if isWanted(lease) {
				t.Error("nobody waits yet")
			}
			b.startLock(t.Context(), engine.Options{})
			return lease
		},
		"by a call that tries": func(t *testing.T, server *memory.Server) *engine.Lease {
			a, b, _ := newHosts(t, server)
			lease := a.lock(wanted)
			_, _ = b.mutex(engine.Options{}).Try(t.Context())
			return lease
		},
		"in this process": func(t *testing.T, server *memory.Server) *engine.Lease {
			a := newHost(t, server)
			lease := a.must(a.mutex(wanted).Acquire(t.Context()))
			if isWanted(lease) {
				t.Error("nobody waits yet")
			}
			a.startLock(t.Context(), wanted)
			return lease
		},
		"behind it": func(t *testing.T, server *memory.Server) *engine.Lease {
			a, b, c := newHosts(t, server)
			first := b.lock(engine.Options{})
			own := a.startLock(t.Context(), wanted)
			c.startLock(t.Context(), engine.Options{})
			b.release(first)
			return own.await()
		},
	}, func(t *testing.T, server *memory.Server, start func(*testing.T, *memory.Server) *engine.Lease) {
		lease := start(t, server)
		if !isWanted(lease) {
			t.Error("it was not told")
		}
		if err := lease.Err(); err != nil {
			t.Error(err)
		}
		if err := lease.Release(); err != nil || lease.Wanted() != nil {
			t.Errorf("released: %v", err)
		}
	})
}

// The holder of several names is told of those that wait for any of them.
func TestWantedGroup(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, _ := newHosts(t, server)
		g, err := a.NewGroup([]string{"m", "n"}, protocol.Spec{Kind: protocol.Mutex},
			engine.Options{TTL: 15 * time.Second, Wanted: true}).Acquire(t.Context())
		if err != nil || isWanted(g) {
			t.Fatalf("wanted, or %v", err)
		}
		b.startLock(t.Context(), engine.Options{})
		if !isWanted(g) || g.Err() != nil {
			t.Errorf("it was not told, or %v", g.Err())
		}
		if err := g.Release(); err != nil || g.Wanted() != nil {
			t.Error(err)
		}
	})
}

// Without the option a holder is told of those that ask it, from the moment on that it listens, and
// not of those that wait. It listens no longer than it holds.
func TestWantedByThoseThatAsk(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, _ := newHosts(t, server)
		lease := a.lock(engine.Options{})
		b.tell(1, 0)
		if isWanted(lease) {
			t.Error("it did not listen")
		}
		waits := b.startLock(t.Context(), engine.Options{})
		if isWanted(lease) {
			t.Error("it did not ask for that")
		}
		b.tell(1, 1)
		if !isWanted(lease) || lease.Err() != nil {
			t.Errorf("it was not told, %v", lease.Err())
		}
		a.release(lease)
		b.release(waits.await())
		b.tell(0, 0)
		sleep(time.Minute)
		began := time.Now()
		a.lock(engine.Options{})
		if len(a.requests(began, "listen")) > 0 {
			t.Error("it listens for nothing")
		}
		b.tell(1, 0)
	})
}

// lead starts a candidate with a label, and waits for its lease or until it waits.
func (h *host) lead(ctx context.Context, label string) *waiter {
	l := h.election(label)
	return h.startAcquire(ctx, l)
}

func (h *host) election(label string) *engine.Lock {
	return h.NewLock(protocol.Spec{Name: "e", Kind: protocol.Election, Label: label},
		engine.Options{TTL: 15 * time.Second, Strict: true})
}

// transfer gives the hold of the election to the candidate with a label.
func (h *host) transfer(ctx context.Context, label string) error {
	return h.election("").Transfer(ctx, func(p protocol.Place) bool { return p.Party.Label == label })
}

// The lead goes to the candidate that is named, and the others keep their places.
func TestTransferKeepsThePlacesOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHosts(t, server)
		lease := a.lead(t.Context(), "A").await()
		one, two := b.lead(t.Context(), "B"), c.lead(t.Context(), "C")
		again := a.lead(t.Context(), "A again")
		if err := b.transfer(t.Context(), "C"); !errors.Is(err, engine.ErrNotHeld) {
			t.Errorf("by another process: %v", err)
		}
		if err := a.transfer(t.Context(), "C"); err != nil {
			t.Fatal(err)
		}
		if err := lease.Err(); !errors.Is(err, engine.ErrNotHeld) {
			t.Errorf("the lease after the transfer: %v", err)
		}
		for _, w := range []*waiter{two, one, again} {
			next := w.await()
			if next.Token() <= lease.Token() {
				t.Errorf("token %d after %d", next.Token(), lease.Token())
			}
			lease = next
			a.release(lease)
		}
	})
}

// A candidate that shows no life, or that there is not, changes nothing.
func TestTransferToNobodyChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, _ := newHosts(t, server)
		lease := a.lead(t.Context(), "A").await()
		b.lead(t.Context(), "B")
		b.setWay(silent)
		for _, to := range []string{"B", "C"} {
			if err := a.transfer(t.Context(), to); !errors.Is(err, engine.ErrNotWaiting) || lease.Err() != nil {
				t.Errorf("to %s: %v; the lease: %v", to, err, lease.Err())
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := a.transfer(ctx, "B"); !errors.Is(err, context.DeadlineExceeded) || lease.Err() != nil {
			t.Errorf("with a context that ends: %v; the lease: %v", err, lease.Err())
		}
	})
}

// Code that runs on the lease returns before another candidate leads, also if it calls Transfer.
func TestTransferWaitsForCode(t *testing.T) {
	bubbles(t, map[string]bool{"called by the code": true, "called beside it": false},
		func(t *testing.T, server *memory.Server, inside bool) {
			a, b, _ := newHosts(t, server)
			lease := a.lead(t.Context(), "A").await()
			end, returned := lease.Term(), make(chan struct{})
			other := b.lead(t.Context(), "B")
			go func() {
				defer close(returned)
				if inside {
					if err := a.transfer(lease.Context(), "B"); err != nil {
						t.Error(err)
					}
				}
				<-lease.Context().Done()
				if err := lease.Err(); err != nil || !other.isWaiting() {
					t.Errorf("another leads beside the code, whose lease is %v", err)
				}
				a.release(lease)
				end()
			}()
			if !inside {
				if err := a.transfer(t.Context(), "B"); err != nil {
					t.Error(err)
				}
			}
			<-returned
			b.release(other.await())
		})
}
