package engine

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

var errOver, errClosed = errors.New("lost"), errors.New("closed")

// inMemory is an engine over a server in memory. The test closes it.
func inMemory(t *testing.T) *Engine {
	server := memory.New(protocol.Features{Queue: true})
	e := New(server.Connect("test"), Config{ReleaseTimeout: time.Second, Logger: slog.New(slog.DiscardHandler),
		Cause: func(Lost) error { return errOver }, Closed: errClosed})
	t.Cleanup(func() { _ = e.Close() })
	return e
}

func (e *Engine) mutex(name string, fixed bool) *Lock {
	return e.NewLock(protocol.Spec{Name: name, Kind: protocol.Mutex}, Options{TTL: 15 * time.Second, Fixed: fixed})
}

// lockMutex takes a mutex, which is free or entered.
func lockMutex(ctx context.Context, t *testing.T, e *Engine, name string) *Lease {
	t.Helper()
	lease, err := e.mutex(name, false).Try(ctx)
	fatal.If(t, err)
	return lease
}

// Nothing of a bound context stays at a long-lived lease when ctx has ended or cancel was called.
// Nor does it stay at a long-lived ctx when the lease has ended.
func TestLeaseBindLeavesNothing(t *testing.T) {
	type key struct{}
	type value [64]byte // large enough for an allocation of its own
	for name, end := range map[string]func(stop, unbind context.CancelFunc){
		"ctx":    func(stop, _ context.CancelFunc) { stop() },
		"cancel": func(_, unbind context.CancelFunc) { unbind() },
		"lease":  func(_, _ context.CancelFunc) {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				long, over := context.WithCancel(context.Background())
				defer over()
				lease := lockMutex(t.Context(), t, inMemory(t), "n")
				var values []weak.Pointer[value]
				for range 100 {
					v := new(value)
					values = append(values, weak.Make(v))
					ctx, stop := context.WithCancel(long)
					_, unbind := lease.Bind(context.WithValue(ctx, key{}, v))
					end(stop, unbind)
				}
				if name == "lease" {
					_ = lease.Release()
				} else if err := lease.Err(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				runtime.GC()
				for i, v := range values[:len(values)-1] { // the last may still be in a register
					if v.Value() != nil {
						t.Fatalf("context %d is still there", i)
					}
				}
				runtime.KeepAlive(lease)
			})
		})
	}
}

// If both sides hold a name, the first live lease is entered: that of the lease's side, or else
// that of ctx.
func TestLeaseBindEntersFirstThatLives(t *testing.T) {
	e := inMemory(t)
	shared := e.NewLock(protocol.Spec{Name: "n", Kind: protocol.ReadWrite, Shared: true},
		Options{TTL: 15 * time.Second, Strict: true})
	try := func(ctx context.Context) *Lease {
		t.Helper()
		lease, err := shared.Try(ctx)
		fatal.If(t, err)
		return lease
	}
	one, other := try(t.Context()), try(t.Context())
	if one.tenure == other.tenure {
		t.Fatal("both read by one hold")
	}
	bound, unbind := one.Bind(other.Context())
	defer unbind()
	live := context.WithoutCancel(bound)
	first := try(live)
	if first.tenure != one.tenure {
		t.Error("the lease's hold is not entered first")
	}
	_, _ = first.Release(), one.Release()
	if second := try(live); second.tenure != other.tenure {
		t.Error("the hold of ctx is not entered when that of the lease is over")
	}
}

// Leases that are taken under a bound context, and bound to that again, lead to the outer ones on
// many ways: 2^30 here. Each is looked at a few times.
func TestLeaseBindDeepIsWalkedOnce(t *testing.T) {
	const depth, enough = 30, 1000
	e := inMemory(t)
	outermost := lockMutex(t.Context(), t, e, "outermost")
	ctx := outermost.Context()
	for range depth {
		lease := lockMutex(ctx, t, e, string(protocol.NewID()))
		bound, unbind := lease.Bind(ctx)
		defer unbind()
		ctx = bound
	}
	visits := 0
	findLease(ctx, func(*Lease) bool { visits++; return visits > enough })
	if visits < depth+1 || visits > 2*depth+2 {
		t.Errorf("%d visits of %d leases", visits, depth+1)
	}
	if lease := lockMutex(ctx, t, e, "outermost"); lease.tenure != outermost.tenure {
		t.Error("the outermost was not entered")
	}
}

// Where no binding is on the way, the search for leases costs no memory.
func TestFindLeaseWithoutBindingAllocatesNothing(t *testing.T) {
	e := inMemory(t)
	ctx := t.Context()
	for range 10 {
		ctx = lockMutex(ctx, t, e, string(protocol.NewID())).Context()
	}
	visits := 0
	if n := testing.AllocsPerRun(100, func() { findLease(ctx, func(*Lease) bool { visits++; return false }) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
