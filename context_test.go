package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A context that was over before the call says nothing of the server. No call reports that the
// server is unavailable, or sends anything.
func TestContextOverBefore(t *testing.T) {
	pair(t, func(t *testing.T, f *faulty, one, _ *holdfast.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		lease := func(_ *holdfast.Lease, err error) error { return err }
		for name, call := range map[string]func() error{
			"Mutex.Lock":           func() error { return lease(one.Mutex("m").Lock(ctx)) },
			"Mutex.Lock, strict":   func() error { return lease(one.Mutex("m", holdfast.WithStrictOrder()).Lock(ctx)) },
			"Mutex.Lock, polling":  func() error { return lease(one.Mutex("m", holdfast.WithPolling(1e6, 0)).Lock(ctx)) },
			"Mutex.TryLock":        func() error { return lease(one.Mutex("m").TryLock(ctx)) },
			"RWMutex.Lock":         func() error { return lease(one.RWMutex("r").Lock(ctx)) },
			"RWMutex.RLock":        func() error { return lease(one.RWMutex("r").RLock(ctx)) },
			"RWMutex.TryRLock":     func() error { return lease(one.RWMutex("r").TryRLock(ctx)) },
			"Semaphore.Acquire":    func() error { return lease(one.Semaphore("s", 2).Acquire(ctx, 1)) },
			"Semaphore.TryAcquire": func() error { return lease(one.Semaphore("s", 2).TryAcquire(ctx, 1)) },
			"Group.Lock":           func() error { return lease(one.All([]string{"a", "b"}).Lock(ctx)) },
			"Group.TryLock":        func() error { return lease(one.All([]string{"a", "b"}).TryLock(ctx)) },
			"Latch.Set":            func() error { return one.Latch("l").Set(ctx, 1) },
			"Latch.CountDown":      func() error { return one.Latch("l").CountDown(ctx) },
			"Latch.Count":          func() error { _, err := one.Latch("l").Count(ctx); return err },
			"Latch.Wait":           func() error { return one.Latch("l").Wait(ctx) },
			"Election.Campaign":    func() error { return lease(one.Election("e").Campaign(ctx)) },
			"Election.TryCampaign": func() error { return lease(one.Election("e").TryCampaign(ctx)) },
			"Election.Leader":      func() error { _, err := one.Election("e").Leader(ctx); return err },
			"Election.Run":         func() error { return one.Election("e").Run(ctx, func(context.Context) error { return nil }) },
			"Election.Observe": func() error {
				for _, err := range one.Election("e").Observe(ctx) {
					return err
				}
				return nil
			},
		} {
			var ended *holdfast.WaitError
			err := call()
			if !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) || !errors.As(err, &ended) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if f.looks+f.askAlls > 0 {
			t.Errorf("%d looks and %d requests for many arrived", f.looks, f.askAlls)
		}
	})
}

// The error of a wait in vain names the holder, even if the holder is a goroutine of the same
// client and no server was asked.
func TestWaitErrorNamesOwnHolder(t *testing.T) {
	for name, c := range map[string]struct {
		other   bool // another client holds
		label   string
		strict  bool
		polling bool
		read    bool // it is one of many readers that hold, and one waits to write
		want    string
	}{
		"a goroutine of the same client": {label: "mine", want: "mine"},
		"in strict order":                {label: "mine", strict: true, want: "mine"},
		"polling":                        {label: "mine", polling: true, want: "mine"},
		"another client":                 {label: "theirs", other: true, want: "theirs"},
		"readers":                        {label: "mine", read: true, want: "mine"},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
				holder, options := one, []holdfast.Option{holdfast.WithLabel(c.label)}
				if c.other {
					holder = other
				}
				hold, waiting := holder.Mutex("n", options...).Lock, options
				if c.strict {
					waiting = append(waiting, holdfast.WithStrictOrder())
				}
				if c.polling {
					waiting = append(waiting, holdfast.WithPolling(7*time.Millisecond, 0))
				}
				wait := one.Mutex("n", waiting...).Lock
				try := one.Mutex("n", waiting...).TryLock
				if c.read {
					rw := one.RWMutex("n", options...)
					hold, wait, try = rw.RLock, rw.Lock, rw.TryLock
				}
				lease, err := hold(t.Context())
				must(t, err)
				var held *holdfast.HeldError
				if _, err := try(t.Context()); !errors.As(err, &held) || held.Holder != c.want {
					t.Errorf("TryLock: %+v", err)
				}
				for range 2 { // also of those that wait behind one who gave up
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					var waited *holdfast.WaitError
					_, err = wait(ctx)
					cancel()
					if !errors.As(err, &waited) || waited.Holder != c.want || errors.Is(err, holdfast.ErrUnavailable) {
						t.Errorf("Lock: %+v", err)
					}
				}
				over, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := wait(over); !errors.Is(err, context.Canceled) {
					t.Errorf("Lock with a context that is over: %v", err)
				}
				must(t, lease.Release())
				synctest.Wait()
			})
		})
	}
}
