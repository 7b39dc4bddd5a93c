package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

var (
	errNone  = &protocol.Failure{Op: "downgrade", Name: "n", Reason: protocol.NoAnswer, Unknown: true, Err: errors.New("no answer")}
	errNever = &protocol.Failure{Op: "downgrade", Name: "n", Reason: protocol.Unreachable, Err: errors.New("refused to connect")}
	errNo    = &protocol.Failure{Op: "downgrade", Name: "n", Reason: protocol.Denied, Err: errors.New("NOPERM")}
)

// sends is what may come between a downgrade and its answer.
type sends = func(n int64, send func() (protocol.Answer, error)) (protocol.Answer, error)

// lossy loses the first answers, or, unless it applies them, the requests.
func lossy(first int64, apply bool, err error) sends {
	return func(n int64, send func() (protocol.Answer, error)) (protocol.Answer, error) {
		if n > first {
			return send()
		}
		if apply {
			_, _ = send()
		}
		return protocol.Answer{}, err
	}
}

// A downgrade without an answer is sent again, with the same ticket, and ends as if no answer had
// been lost.
func TestDowngradeAgain(t *testing.T) {
	for name, between := range map[string]sends{
		"answers lost": lossy(3, true, errNone), "requests lost": lossy(3, false, errNone), "not sent": lossy(3, false, errNever),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				other, _ := w.client()
				sent.downgrade = between
				lease := w.must(client.RWMutex("n").Lock(t.Context()))
				if err := lease.Downgrade(t.Context()); err != nil || sent.downgrades.Load() != 4 {
					t.Fatalf("%d sent: %v", sent.downgrades.Load(), err)
				}
				w.release(w.must(other.RWMutex("n").TryRLock(t.Context())))
				<-time.After(time.Minute)
				if err := errors.Join(lease.Err(), lease.Check(t.Context())); err != nil {
					t.Error(err)
				}
				w.release(lease)
				w.nothingLeft()
			})
		})
	}
}

// The caller of a downgrade goes away before an answer. The error says so, and the downgrade goes
// on. Trust does not go on beyond what was confirmed.
func TestDowngradeUncertain(t *testing.T) {
	for name, apply := range map[string]bool{"answers lost": true, "requests lost": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				other, _ := w.client()
				sent.downgrade = lossy(8, apply, errNone)
				lease := w.must(client.RWMutex("n").Lock(t.Context()))
				until := lease.Until()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := lease.Downgrade(ctx); !errors.Is(err, holdfast.ErrUncertain) {
					t.Fatalf("got %v", err)
				}
				if lease.Err() != nil || lease.Until() != until {
					t.Errorf("%v, trusted for %v more", lease.Err(), lease.Until().Sub(until))
				}
				var bad *holdfast.ArgumentError
				if _, err := client.RWMutex("n").TryLock(leased.Context(lease)); !errors.As(err, &bad) {
					t.Errorf("it writes: %v", err)
				}
				reader := w.must(other.RWMutex("n").RLock(t.Context()))
				<-time.After(time.Minute)
				if err := errors.Join(lease.Err(), lease.Check(t.Context())); err != nil {
					t.Error(err)
				}
				w.release(lease)
				w.release(reader)
				w.nothingLeft()
			})
		})
	}
}

// If no answer ever comes, the lease is lost when trust ends, and not later.
func TestDowngradeUnanswered(t *testing.T) {
	for name, apply := range map[string]bool{"answers lost": true, "requests lost": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				sent.downgrade = lossy(1<<60, apply, errNone)
				lease := w.must(client.RWMutex("n").Lock(t.Context()))
				until := lease.Until()
				var lost *holdfast.LostError
				if err := lease.Downgrade(t.Context()); !errors.As(err, &lost) || lost.Reason != holdfast.LossExpired {
					t.Errorf("got %v", err)
				}
				if late := time.Since(until); late < 0 || late > 2*time.Second {
					t.Errorf("told %v after trust ended", late)
				}
				if ended := context.Cause(leased.Context(lease)); !errors.Is(ended, holdfast.ErrLost) {
					t.Errorf("its context ended with %v", ended)
				}
				_ = lease.Release()
				synctest.Wait()
				w.nothingLeft()
			})
		})
	}
}

// A release that crosses a downgrade frees the hold in either form: exclusive or shared.
func TestDowngradeCrossesRelease(t *testing.T) {
	for name, apply := range map[string]bool{"answers lost": true, "requests lost": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				sent.downgrade = lossy(1<<60, apply, errNone)
				lease := w.must(client.RWMutex("n").Lock(t.Context()))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if err := lease.Downgrade(ctx); !errors.Is(err, holdfast.ErrUncertain) {
					t.Fatalf("got %v", err)
				}
				w.release(lease)
				w.nothingLeft()
			})
		})
	}
}

// After a refusal the lease writes as before, is renewed, and can be downgraded later.
func TestDowngradeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		other, _ := w.client()
		sent.downgrade = lossy(1, false, errNo)
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		var refused *holdfast.StoreError
		if err := lease.Downgrade(t.Context()); !errors.As(err, &refused) || refused.Kind != holdfast.StoreDenied {
			t.Errorf("got %v", err)
		}
		<-time.After(time.Minute)
		if _, err := other.RWMutex("n").TryRLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) || lease.Err() != nil {
			t.Errorf("another reads: %v; it has %v", err, lease.Err())
		}
		w.release(w.must(client.RWMutex("n").TryLock(leased.Context(lease))))
		if err := lease.Downgrade(t.Context()); err != nil {
			t.Error(err)
		}
		w.release(w.must(other.RWMutex("n").TryRLock(t.Context())))
		w.release(lease)
		w.nothingLeft()
	})
}

// After an unanswered request, a refusal says nothing, as the first request may have been applied.
// The downgrade is sent again until its effect is known.
func TestDowngradeRefusedAfterUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		sent.downgrade = func(n int64, send func() (protocol.Answer, error)) (protocol.Answer, error) {
			answer, err := send()
			switch n {
			case 1:
				return protocol.Answer{}, errNone
			case 2:
				return protocol.Answer{}, errNo
			}
			return answer, err
		}
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		if err := lease.Downgrade(t.Context()); err != nil || sent.downgrades.Load() != 3 {
			t.Errorf("%d sent: %v", sent.downgrades.Load(), err)
		}
		<-time.After(time.Minute)
		w.release(lease)
		w.nothingLeft()
	})
}

// A Check beside a downgrade waits for it. The form that the hold had before does not mislead the
// Check.
func TestCheckBesideDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		sent.downgrade = lossy(4, true, errNone)
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		done := make(chan error)
		go func() { done <- lease.Downgrade(t.Context()) }()
		synctest.Wait()
		if err := lease.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		w.release(lease)
	})
}

// An answer about the form that the hold had when the question was asked does not mislead a Check
// either.
func TestCheckCrossesDowngrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		client, sent := w.client()
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		sent.renew = func() {
			sent.renew = nil
			if err := lease.Downgrade(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := lease.Check(t.Context()); err != nil || sent.renewals.Load() != 2 {
			t.Errorf("%d looks: %v", sent.renewals.Load(), err)
		}
		w.release(lease)
	})
}
