package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// A lease goes on in another process: the same hold, the same token.
func TestTicketAttachedElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, sentA := w.client()
		b, sentB := w.client()
		lease := w.must(a.Mutex("n", holdfast.WithTTL(time.Second), holdfast.WithLabel("first")).Lock(t.Context()))
		before := sentA.asks.Load() + sentA.frees.Load() + sentA.renewals.Load()
		ticket, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Err(); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("Err after Detach: %v", err)
		}
		if err := context.Cause(leased.Context(lease)); !errors.Is(err, context.Canceled) {
			t.Errorf("the context ended with %v", err)
		}
		if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("Release after Detach: %v", err)
		}
		if _, err := lease.Detach(); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("second Detach: %v", err)
		}
		if after := sentA.asks.Load() + sentA.frees.Load() + sentA.renewals.Load(); after != before {
			t.Errorf("%d requests by Detach", after-before)
		}
		again := w.must(b.Attach(t.Context(), ticket))
		if n := sentB.asks.Load() + sentB.frees.Load() + sentB.renewals.Load(); n != 1 {
			t.Errorf("%d requests by Attach", n)
		}
		if again.Token() != lease.Token() || again.Name() != "n" || again.Owner() != lease.Owner() {
			t.Errorf("token %d, name %q, owner %q", again.Token(), again.Name(), again.Owner())
		}
		<-time.After(time.Minute)
		if err := again.Err(); err != nil {
			t.Errorf("a minute later: %v", err)
		}
		var busy *holdfast.HeldError
		if _, err := a.Mutex("n").TryLock(t.Context()); !errors.As(err, &busy) || busy.Holder != "first" {
			t.Errorf("TryLock: %v", err)
		}
		w.release(again)
		w.nothingLeft()
	})
}

// While nobody knows whether a downgrade was done, the lease cannot leave.
func TestTicketDowngradeUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, between := w.client()
		lease := w.must(a.RWMutex("n").Lock(t.Context()))
		var refused error
		between.downgrade = func(_ int64, send func() (protocol.Answer, error)) (protocol.Answer, error) {
			_, refused = lease.Detach()
			return send()
		}
		if err := lease.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		var bad *holdfast.ArgumentError
		if !errors.As(refused, &bad) || lease.Err() != nil {
			t.Errorf("Detach meanwhile: %v, then %v", refused, lease.Err())
		}
		ticket, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		again := w.must(a.Attach(t.Context(), ticket))
		w.release(w.must(a.RWMutex("n").TryRLock(t.Context())))
		w.release(again)
		w.nothingLeft()
	})
}

func TestTicketErrorTexts(t *testing.T) {
	for want, err := range map[string]*holdfast.TicketError{
		`holdfast: ticket of "n": the hold was broken by "B"`:           {Name: "n", Reason: holdfast.TicketBroken, By: "B"},
		`holdfast: ticket of "n": it is of clients with another prefix`: {Name: "n", Reason: holdfast.TicketPrefix},
		`holdfast: ticket: it has another format`:                       {Reason: holdfast.TicketFormat},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err.Error(), want)
		}
	}
}

// A ticket stays good while the server is away, and a bad call sends nothing.
func TestTicketAttachRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, _ := w.client()
		b, sent := w.client()
		lease := w.must(a.Mutex("n").Lock(t.Context()))
		entered := w.must(a.Mutex("n").Lock(leased.Context(lease)))
		var bad *holdfast.ArgumentError
		if _, err := lease.Detach(); !errors.As(err, &bad) || lease.Err() != nil {
			t.Errorf("Detach of one of two: %v, then %v", err, lease.Err())
		}
		w.release(entered)
		ticket, err := lease.Detach()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Attach(t.Context(), ticket[:len(ticket)-1]); !errors.As(err, &bad) {
			t.Errorf("a part of a ticket: %v", err)
		} else if strings.Contains(err.Error(), string(ticket[20:40])) {
			t.Errorf("the error tells the secret: %v", err)
		}
		t.Logf("a ticket has %d bytes", len(ticket))
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var ended *holdfast.WaitError
		if _, err := b.Attach(over, ticket); !errors.As(err, &ended) || !errors.Is(err, context.Canceled) {
			t.Errorf("ctx is over: %v", err)
		}
		if n := sent.renewals.Load(); n != 0 {
			t.Errorf("%d requests", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		sent.renew = cancel // the renewal is not answered
		var store *holdfast.StoreError
		if _, err := b.Attach(ctx, ticket); !errors.As(err, &store) || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("no answer: %v", err)
		}
		sent.renew = nil
		w.release(w.must(b.Attach(t.Context(), ticket)))
		if _, err := (*holdfast.Client)(nil).Attach(t.Context(), ticket); !errors.As(err, &bad) {
			t.Errorf("nil client: %v", err)
		}
		if _, err := new(holdfast.Lease).Detach(); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("zero lease: %v", err)
		}
		w.nothingLeft()
	})
}
