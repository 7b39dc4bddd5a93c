package holdfast_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// Detach sends nothing, Attach of a lease that renews itself one request.
func TestTicketCostsOneRequest(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		a, sentA := w.client()
		b, sentB := w.client()
		lease := w.must(a.Mutex("n").Lock(t.Context()))
		before := sentA.total()
		ticket, err := lease.Detach()
		must(t, err)
		if _, err := lease.Detach(); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("second Detach: %v", err)
		}
		if n := sentA.total() - before; n != 0 {
			t.Errorf("%d requests by Detach", n)
		}
		again := w.must(b.Attach(t.Context(), ticket))
		if n := sentB.count("ask", "free", "renew", "adopt"); n != 1 {
			t.Errorf("%d requests by Attach", n)
		}
		w.release(again)
		w.nothingLeft()
	})
}

// A ticket stays good while the server is away, and a bad call sends nothing.
func TestTicketAttachRefusedKeepsTicket(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
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
		must(t, err)
		if _, err := b.Attach(t.Context(), ticket[:len(ticket)-1]); !errors.As(err, &bad) {
			t.Errorf("a part of a ticket: %v", err)
		} else if strings.Contains(err.Error(), string(ticket[20:40])) {
			t.Errorf("the error tells the secret: %v", err)
		}
		other := "holdfast-ticket-1" + ticket[strings.Index(string(ticket), "."):]
		var refused *holdfast.TicketError
		if _, err := b.Attach(t.Context(), other); !errors.As(err, &refused) ||
			refused.Reason != holdfast.TicketFormat || !errors.Is(err, holdfast.ErrTicket) {
			t.Errorf("another format: %v", err)
		}
		if n := sent.total(); n != 0 {
			t.Errorf("%d requests", n)
		}
		sent.on("renew", loseAll)
		if _, err := b.Attach(t.Context(), ticket); !errors.As(err, new(*holdfast.StoreError)) ||
			!errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("no answer: %v", err)
		}
		sent.on("renew", nil)
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
