package holdfast_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

var (
	errUnknown = newFailure(protocol.NoAnswer, errNoAnswer)
	errDenied  = newFailure(protocol.Denied, errors.New("NOPERM"))
)

// forEachLoss runs a test of answers that are lost, where requests are carried out, and of requests
// that are lost.
func forEachLoss(t *testing.T, run func(t *testing.T, w world, apply bool)) {
	for name, apply := range map[string]bool{"answers lost": true, "requests lost": false} {
		runInWorld(t, name, func(t *testing.T, w world) { run(t, w, apply) })
	}
}

// Readers that come at once cost what one reader costs.
func TestRWMutexReadersCostWhatOneDoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		const thousand = 1000
		client, sent := w.client()
		leases := make([]*holdfast.Lease, thousand)
		var all sync.WaitGroup
		for i := range leases {
			all.Go(func() { leases[i] = w.must(client.RWMutex("n").RLock(t.Context())) })
		}
		all.Wait()
		<-time.After(time.Minute) // renewed every 5 s
		for _, lease := range leases {
			if lease.Token() != leases[0].Token() {
				t.Fatalf("token %d beside %d", lease.Token(), leases[0].Token())
			}
			w.release(lease)
		}
		if asks, frees, renewals := sent.count("ask"), sent.count("free"), sent.count("renew"); asks != 1 ||
			frees != 1 || renewals > 13 {
			t.Errorf("%d asked, %d gave back, %d renewals, for %d readers", asks, frees, renewals, thousand)
		}
		w.nothingLeft()
	})
}

// A downgrade without an answer is sent again, with the same ticket, and ends as if no answer had
// been lost. A refusal says nothing after that: the first request may have been carried out.
func TestDowngradeWithoutAnswerIsSentAgain(t *testing.T) {
	refusedSecond := func(_ context.Context, n int64, send func() error) error {
		err := send()
		return map[int64]error{1: errUnknown, 2: errDenied, 3: err}[n]
	}
	for name, c := range map[string]struct {
		between hook
		sent    int64
	}{
		"answers lost":  {loseFirst(3, true, errUnknown), 4},
		"requests lost": {loseFirst(3, false, errUnknown), 4},
		"not sent":      {loseFirst(3, false, newFailure(protocol.Unreachable, errNoAnswer)), 4},
		"then refused":  {refusedSecond, 3},
	} {
		runInWorld(t, name, func(t *testing.T, w world) {
			client, sent := w.client()
			other, _ := w.client()
			sent.on("downgrade", c.between)
			lease := w.must(client.RWMutex("n").Lock(t.Context()))
			if err := lease.Downgrade(t.Context()); err != nil || sent.count("downgrade") != c.sent {
				t.Fatalf("%d sent: %v", sent.count("downgrade"), err)
			}
			w.release(w.must(other.RWMutex("n").TryRLock(t.Context())))
			<-time.After(time.Minute)
			must(t, lease.Check(t.Context()))
			w.release(lease)
			w.nothingLeft()
		})
	}
}

// If no answer ever comes, the lease is lost when trust ends, and not later.
func TestDowngradeNeverAnsweredLosesLease(t *testing.T) {
	forEachLoss(t, func(t *testing.T, w world, apply bool) {
		client, sent := w.client()
		sent.on("downgrade", loseFirst(1<<60, apply, errUnknown))
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
}

// A release that crosses a downgrade frees the hold in either form: exclusive or shared.
func TestDowngradeCrossedByReleaseLeavesNothing(t *testing.T) {
	forEachLoss(t, func(t *testing.T, w world, apply bool) {
		client, sent := w.client()
		sent.on("downgrade", loseFirst(1<<60, apply, errUnknown))
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := lease.Downgrade(ctx); !errors.Is(err, holdfast.ErrUncertain) {
			t.Fatalf("got %v", err)
		}
		w.release(lease)
		w.nothingLeft()
	})
}

// After a refusal the lease writes as before, is renewed, and can be downgraded later.
func TestDowngradeRefusedWritesOn(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		other, _ := w.client()
		sent.on("downgrade", loseFirst(1, false, errDenied))
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
		must(t, lease.Downgrade(t.Context()))
		w.release(w.must(other.RWMutex("n").TryRLock(t.Context())))
		w.release(lease)
		w.nothingLeft()
	})
}

// A Check beside a downgrade waits for it. The form that the hold had before does not mislead the
// Check.
func TestCheckBesideDowngradeWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		sent.on("downgrade", loseFirst(4, true, errUnknown))
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		done := make(chan error)
		go func() { done <- lease.Downgrade(t.Context()) }()
		synctest.Wait()
		if err := lease.Check(t.Context()); err != nil {
			t.Errorf("Check: %v", err)
		}
		must(t, <-done)
		w.release(lease)
	})
}

// An answer about the form that the hold had when the question was asked does not mislead a Check
// either.
func TestCheckCrossedByDowngradeAsksAgain(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, sent := w.client()
		lease := w.must(client.RWMutex("n").Lock(t.Context()))
		sent.on("renew", func(_ context.Context, _ int64, send func() error) error {
			sent.on("renew", nil)
			if err := lease.Downgrade(t.Context()); err != nil {
				t.Error(err)
			}
			return send()
		})
		if err := lease.Check(t.Context()); err != nil || sent.count("renew") != 2 {
			t.Errorf("%d looks: %v", sent.count("renew"), err)
		}
		w.release(lease)
	})
}
