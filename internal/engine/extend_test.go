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

const extendTTL = 15 * time.Second

var fixed = engine.Options{Fixed: true}

// extend extends a lease, which must work.
func (h *host) extend(lease interface{ Extend(context.Context) error }) {
	h.t.Helper()
	if err := lease.Extend(h.t.Context()); err != nil {
		h.t.Errorf("Extend: %v", err)
	}
}

// checkTrust fails unless a lease is trusted until a moment.
func checkTrust(t *testing.T, lease interface{ Until() time.Time }, want time.Time) {
	t.Helper()
	if got := lease.Until(); !got.Equal(want) {
		t.Errorf("trusted for %v, want %v", time.Until(got), time.Until(want))
	}
}

// checkNoAnswer fails unless err says that no answer came.
func checkNoAnswer(t *testing.T, err error) {
	t.Helper()
	var failure *protocol.Failure
	if ended := (*engine.WaitEnded)(nil); errors.As(err, &ended) { // ctx ended before
		err = ended.Failure
	}
	if !errors.As(err, &failure) || failure.Reason != protocol.NoAnswer || !failure.Unknown {
		t.Errorf("got %v, want that no answer came", err)
	}
}

// Trap 1: trust counts from the moment at which the request was sent, not from its answer.
func TestLeaseExtendTrustsFromItsSending(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		sleep(10 * time.Second)
		a.setWay(way{there: 300 * time.Millisecond, back: 600 * time.Millisecond})
		sent := time.Now()
		if a.extend(lease); time.Since(sent) != 900*time.Millisecond {
			t.Errorf("Extend took %v", time.Since(sent))
		}
		checkTrust(t, lease, sent.Add(extendTTL-margin(extendTTL)))
	})
}

// Trap 10: without an answer trust stays as it was, whether or not the request arrived. Nothing is
// sent again. The request lasts for a sixth of the TTL, and a second at most.
func TestLeaseExtendWithoutAnswerChangesNothing(t *testing.T) {
	type row struct {
		way   way
		ttl   time.Duration
		after time.Duration
		takes time.Duration
	}
	bubbles(t, map[string]row{
		"request lost":    {way{noRequests: true}, extendTTL, 10 * time.Second, time.Second},
		"answer lost":     {way{noAnswers: true}, extendTTL, 10 * time.Second, time.Second},
		"answer late":     {way{back: 2 * time.Second}, extendTTL, 10 * time.Second, time.Second},
		"request late":    {way{there: 2 * time.Second}, extendTTL, 10 * time.Second, time.Second},
		"of a short TTL":  {silent, 3 * time.Second, time.Second, 500 * time.Millisecond},
		"at the last":     {silent, extendTTL, extendTTL - margin(extendTTL) - time.Second - 1, time.Second},
		"of the shortest": {silent, 120 * time.Millisecond, 0, 20 * time.Millisecond},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		lease := a.lock(engine.Options{Fixed: true, TTL: test.ttl})
		want := lease.Until()
		sleep(test.after)
		a.setWay(test.way)
		began := time.Now()
		checkNoAnswer(t, lease.Extend(t.Context()))
		if took := time.Since(began); took != test.takes {
			t.Errorf("Extend took %v, want %v", took, test.takes)
		}
		checkTrust(t, lease, want)
		if end := awaitLoss(t, lease, engine.Expired); !end.Equal(want) {
			t.Errorf("ended %v late", end.Sub(want))
		}
		var cause *loss
		if errors.As(lease.Err(), &cause); cause.Err == nil {
			t.Error("the loss does not say why it was not extended")
		}
		sleep(time.Minute)
		if n := len(a.requests(began, "renew")); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

// An answer that comes when trust has ended does not bring the lease back. Extend returns at the
// end of trust.
func TestLeaseExtendAnsweredAfterTrustIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		want := lease.Until()
		sleep(time.Until(want) - 100*time.Millisecond)
		a.setWay(way{back: 150 * time.Millisecond})
		var cause *loss
		if err := lease.Extend(t.Context()); !errors.As(err, &cause) || cause.Why != engine.Expired ||
			!time.Now().Equal(want) {
			t.Errorf("got %v, %v after the end of trust", err, time.Since(want))
		}
		sleep(time.Second)
		awaitLoss(t, lease, engine.Expired)
	})
}

// A lease that has ended is not extended, and nothing is sent.
func TestLeaseExtendAfterItsEndSendsNothing(t *testing.T) {
	var cause *loss
	type row struct {
		end  func(*host, *engine.Lease)
		want func(error) bool
	}
	bubbles(t, map[string]row{
		"lost": {func(_ *host, l *engine.Lease) { <-l.Context().Done() },
			func(err error) bool { return errors.As(err, &cause) }},
		"released": {func(h *host, l *engine.Lease) { h.release(l) },
			func(err error) bool { return errors.Is(err, engine.ErrNotHeld) }},
		"closed": {func(h *host, _ *engine.Lease) { _ = h.Close() },
			func(err error) bool { return errors.Is(err, errClosed) }},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		test.end(a, lease)
		if err := lease.Extend(t.Context()); !test.want(err) {
			t.Errorf("got %v", err)
		}
		if n := len(a.requests(time.Time{}, "renew")); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// A context that was over before sends nothing. A context that ends meanwhile leaves trust as it
// was, and is no failure of the server.
func TestLeaseExtendContextOverChangesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		want := lease.Until()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var ended *engine.WaitEnded
		if err := lease.Extend(over); !errors.As(err, &ended) || !errors.Is(err, context.Canceled) ||
			len(a.requests(time.Time{}, "renew")) > 0 {
			t.Errorf("over before: %v", err)
		}
		a.setWay(way{back: 900 * time.Millisecond})
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		checkNoAnswer(t, lease.Extend(short))
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("Extend took %v", took)
		}
		checkTrust(t, lease, want)
		if trouble := a.mutex(fixed).Trouble(); trouble != nil {
			t.Errorf("the caller's end is told as trouble: %v", trouble)
		}
		a.setWay(way{})
		a.release(lease)
	})
}

// The request of a caller that has left keeps its place: a release, a downgrade and the next Extend
// wait for its answer. The answer does not prolong trust, as its caller was told that none came.
func TestLeaseExtendLeftByCallerKeepsItsTurn(t *testing.T) {
	spec := protocol.Spec{Name: "n", Kind: protocol.ReadWrite}
	type row struct {
		op   string
		call func(t *testing.T, l *engine.Lease) error
	}
	bubbles(t, map[string]row{
		"free":      {"free", func(_ *testing.T, l *engine.Lease) error { return l.Release() }},
		"downgrade": {"downgrade", func(t *testing.T, l *engine.Lease) error { return l.Downgrade(t.Context()) }},
		"extend":    {"renew", func(t *testing.T, l *engine.Lease) error { return l.Extend(t.Context()) }},
	}, func(t *testing.T, server *memory.Server, then row) {
		a := newHost(t, server)
		lease := a.try(a.NewLock(spec, engine.Options{TTL: extendTTL, Fixed: true}))
		want := lease.Until()
		sleep(time.Second)
		a.setWay(way{there: 200 * time.Millisecond, back: 300 * time.Millisecond})
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		checkNoAnswer(t, lease.Extend(short))
		a.setWay(way{})
		left := time.Now()
		if err := then.call(t, lease); err != nil {
			t.Error(err)
		}
		if sent := a.requests(left, then.op); len(sent) != 1 || sent[0].at.Sub(began) != 500*time.Millisecond {
			t.Errorf("sent %v", sent)
		}
		switch then.op {
		case "downgrade":
			checkTrust(t, lease, want)
		case "renew":
			checkTrust(t, lease, began.Add(500*time.Millisecond+extendTTL-margin(extendTTL)))
		}
	})
}

// Extends of one hold follow one another, so the last one sent is the last one answered. A caller
// that gives up behind another has sent nothing.
func TestLeaseExtendsFollowOneAnother(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		a.setWay(way{there: 100 * time.Millisecond, back: 200 * time.Millisecond})
		began := time.Now()
		done := make(chan error, 3)
		for range 3 {
			go func() { done <- lease.Extend(t.Context()) }()
		}
		short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		defer cancel()
		var ended *engine.WaitEnded
		synctest.Wait()
		if err := lease.Extend(short); !errors.As(err, &ended) || ended.Waited != 150*time.Millisecond {
			t.Errorf("the one that gave up: %v", err)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Errorf("Extend: %v", err)
			}
		}
		renewals := a.requests(began, "renew")
		if len(renewals) != 3 {
			t.Fatalf("%d requests", len(renewals))
		}
		for i, r := range renewals {
			if r.at.Sub(began) != time.Duration(i)*300*time.Millisecond {
				t.Errorf("request %d was sent after %v", i+1, r.at.Sub(began))
			}
		}
		checkTrust(t, lease, began.Add(600*time.Millisecond+extendTTL-margin(extendTTL)))
		a.setWay(way{})
		a.release(lease)
	})
}

// Extend and Downgrade do not run beside each other, in either order. The hold is extended in the
// mode that it has.
func TestLeaseExtendBesideDowngradeTakesTurns(t *testing.T) {
	bubbles(t, map[string]bool{"after": true, "before": false},
		func(t *testing.T, server *memory.Server, downgradeFirst bool) {
			a := newHost(t, server)
			spec := protocol.Spec{Name: "n", Kind: protocol.ReadWrite}
			lease := a.try(a.NewLock(spec, engine.Options{TTL: extendTTL, Fixed: true}))
			sleep(5 * time.Second)
			a.setWay(way{there: 100 * time.Millisecond, back: 200 * time.Millisecond})
			began := time.Now()
			calls := []func(context.Context) error{lease.Extend, lease.Downgrade}
			if downgradeFirst {
				calls[0], calls[1] = calls[1], calls[0]
			}
			first := make(chan error, 1)
			go func() { first <- calls[0](t.Context()) }()
			synctest.Wait()
			if err := errors.Join(calls[1](t.Context()), <-first); err != nil {
				t.Error(err)
			}
			extended := a.requests(began, "renew")
			if all := a.requests(began, ""); len(all) != 2 || len(extended) != 1 ||
				all[1].at.Sub(all[0].at) != 300*time.Millisecond {
				t.Fatalf("sent %v", all)
			}
			checkTrust(t, lease, extended[0].at.Add(extendTTL-margin(extendTTL)))
			a.setWay(way{})
			if err := lease.Check(t.Context()); err != nil {
				t.Errorf("Check: %v", err)
			}
			a.release(lease)
		})
}
