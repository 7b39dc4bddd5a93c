package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// noted collects what a Locker tells onError.
type noted struct {
	mu   sync.Mutex
	errs []error
}

func (n *noted) add(err error) {
	n.mu.Lock()
	n.errs = append(n.errs, err)
	n.mu.Unlock()
}

// only returns the one error that was told since the last call.
func (n *noted) only(t *testing.T) error {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := n.errs
	if n.errs = nil; len(errs) != 1 {
		t.Errorf("onError got %v, want one error", errs)
		return nil
	}
	return errs[0]
}

func (n *noted) none(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.errs) > 0 {
		t.Errorf("onError got %v", n.errs)
	}
}

// panicked returns what a call panics with; nil if it returns.
func panicked(call func()) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = value.(error)
		}
	}()
	call()
	return nil
}

// fails fails unless Lock tells onError one error and panics with it, and it matches all targets.
func fails(t *testing.T, seen *noted, l sync.Locker, targets ...error) {
	t.Helper()
	err := panicked(l.Lock)
	if told := seen.only(t); err == nil || !errors.Is(told, err) {
		t.Fatalf("Lock panics with %v, and onError got %v", err, told)
	}
	for _, target := range targets {
		if !errors.Is(err, target) {
			t.Errorf("got %v, want %v", err, target)
		}
	}
}

// A Locker excludes goroutines and other clients, and Unlock may be called by another goroutine.
func TestLockerExcludes(t *testing.T) {
	for name, options := range map[string][]holdfast.Option{
		"pooled":  nil,
		"strict":  {holdfast.WithStrictOrder()},
		"polling": {holdfast.WithPolling(10*time.Millisecond, 1)},
		"bounded": {holdfast.WithWait(time.Millisecond)},
		"owner":   {holdfast.WithOwner("o")}, // whose holds do not exclude each other
	} {
		runInWorld(t, name, func(t *testing.T, w world) {
			seen := &noted{}
			client, _ := w.client()
			other, _ := w.client()
			lockers := []sync.Locker{client.Mutex("n", options...).Locker(t.Context(), seen.add)}
			if name != "owner" {
				lockers = append(lockers, other.Mutex("n", options...).Locker(t.Context(), seen.add))
			}
			inside := 0
			var all sync.WaitGroup
			for i := range 12 {
				all.Go(func() {
					l := lockers[i%len(lockers)]
					l.Lock()
					if inside++; inside != 1 {
						t.Errorf("%d are inside", inside)
					}
					<-time.After(20 * time.Millisecond)
					inside--
					done := make(chan struct{})
					go func() { l.Unlock(); close(done) }()
					<-done
				})
			}
			all.Wait()
			seen.none(t)
			w.nothingLeft()
		})
	}
}

// Under the context of a lease it enters the hold, and Unlock leaves the lease as it is.
func TestLockerEntersHoldOfItsContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		lease := w.must(client.Mutex("n").Lock(t.Context()))
		l := client.Mutex("n").Locker(leased.Context(lease), nil)
		l.Lock()
		l.Unlock() //nolint:staticcheck // nothing is to be guarded
		must(t, lease.Check(t.Context()))
		if n := sent.count("free"); n != 0 {
			t.Errorf("given back %d times", n)
		}
		w.release(lease)
		over := client.Mutex("n").Locker(leased.Context(lease), nil)
		if err := panicked(over.Lock); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// Lock never returns without the lock. It tells onError and panics with the same error.
func TestLockerPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		seen := &noted{}
		client, sent := w.client()
		other, _ := w.client()
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("shut down"))
		defer cancel()
		lease := w.must(other.Mutex("n").Lock(t.Context()))
		began := time.Now()
		fails(t, seen, client.Mutex("n").Locker(ctx, seen.add), context.DeadlineExceeded)
		if waited := time.Since(began); waited != time.Minute {
			t.Errorf("it waited %v", waited)
		}
		fails(t, seen, client.Mutex("n").Locker(ctx, seen.add), context.DeadlineExceeded) // over before
		w.release(lease)

		var bad *holdfast.ArgumentError
		for _, l := range []sync.Locker{
			client.Mutex("").Locker(t.Context(), seen.add), (*holdfast.Mutex)(nil).Locker(t.Context(), seen.add),
			new(holdfast.Mutex).Locker(t.Context(), seen.add),
			client.Mutex("n").Locker(nil, seen.add), //nolint:staticcheck // it is refused
		} {
			if err := panicked(l.Lock); !errors.As(err, &bad) || !errors.Is(seen.only(t), err) {
				t.Errorf("got %v", err)
			}
		}
		sent.on("ready", loseFirst(1<<60, false, errDenied))
		var refused *holdfast.StoreError
		if err := panicked(client.Mutex("n").Locker(t.Context(), nil).Lock); !errors.As(err, &refused) ||
			refused.Kind != holdfast.StoreDenied {
			t.Errorf("without onError: %v", err)
		}
		sent.on("ready", nil)
		l := client.Mutex("n").Locker(t.Context(), seen.add)
		if err := panicked(l.Unlock); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("Unlock of what is not locked: %v", err)
		}
		l.Lock()
		must(t, client.Close())
		l.Unlock()
		if err := seen.only(t); !errors.Is(err, holdfast.ErrClosed) {
			t.Errorf("Unlock after Close: %v", err)
		}
		fails(t, seen, l, holdfast.ErrClosed)
		w.nothingLeft()
	})
}

// A loss is told by Unlock alone. Meanwhile other processes may be in, but no goroutine that shares
// the Locker.
func TestLockerLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		seen := &noted{}
		client, _ := w.client()
		l := client.Mutex("n", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)).Locker(t.Context(), seen.add)
		l.Lock()
		locked := make(chan struct{})
		go func() { l.Lock(); close(locked) }()
		<-time.After(time.Minute)
		seen.none(t)
		select {
		case <-locked:
			t.Fatal("two goroutines are inside")
		default:
		}
		l.Unlock()
		if err := seen.only(t); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("Unlock after a loss: %v", err)
		}
		<-locked
		l.Unlock() // what it won while it waited was lost too, and Lock asked again
		seen.none(t)
		w.nothingLeft()
	})
}
