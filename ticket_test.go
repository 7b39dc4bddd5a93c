package holdfast_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
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
		if err := context.Cause(lease.Context()); err != context.Canceled {
			t.Errorf("the context ended with %v", err)
		}
		if err := lease.Release(t.Context()); !errors.Is(err, holdfast.ErrNotHeld) {
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
