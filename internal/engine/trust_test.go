package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Trap 1: trust ends at sent + TTL - margin, to the nanosecond, before another holder can be let
// in.
func TestLeaseTrustEndsMarginEarly(t *testing.T) {
	type row struct {
		ttl   time.Duration
		after time.Duration // of the grant: when the network changes
		way   way
		sent  time.Duration // the last confirmed request
	}
	bubbles(t, map[string]row{
		"silent at once":                  {15 * time.Second, 0, silent, 0},
		"silent before the first renewal": {15 * time.Second, 4999 * time.Millisecond, silent, 0},
		"silent after the third renewal":  {15 * time.Second, 15500 * time.Millisecond, silent, 15 * time.Second},
		"requests are lost":               {15 * time.Second, 6 * time.Second, way{noRequests: true}, 5 * time.Second},
		"the shortest TTL":                {100 * time.Millisecond, 0, silent, 0},
		"a long TTL":                      {5 * time.Minute, 101 * time.Second, silent, 100 * time.Second},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b := newHost(t, server), newHost(t, server)
		granted := time.Now()
		lease := a.lock(engine.Options{TTL: test.ttl})
		next := b.startLock(t.Context(), engine.Options{TTL: test.ttl})
		sleep(test.after)
		a.setWay(test.way)
		want := granted.Add(test.sent + test.ttl - margin(test.ttl))
		if got := lease.Until(); !got.Equal(want) {
			t.Errorf("trusted for %v, want %v", got.Sub(granted), want.Sub(granted))
		}
		sleep(time.Until(want.Add(-1)))
		if err := lease.Err(); err != nil {
			t.Errorf("a nanosecond too early: %v", err)
		}
		if end := awaitLoss(t, lease, engine.Expired); !end.Equal(want) {
			t.Errorf("ended after %v, want %v", end.Sub(granted), want.Sub(granted))
		}
		over := want.Add(margin(test.ttl))
		if next.await(); next.at.Before(over) || next.at.After(over.Add(200*time.Millisecond)) {
			t.Errorf("the next got in %v after the end", next.at.Sub(want))
		}
		var cause *loss
		if err := lease.Release(); !errors.As(err, &cause) {
			t.Errorf("released after loss: %v", err)
		}
	})
}

// Trap 3: an answer that comes late gives trust from the sending, never from its coming. One that
// comes when trust is over is no lease: the server is asked again.
func TestLeaseSlowAnswerShortensTrust(t *testing.T) {
	whole := 15*time.Second - margin(15*time.Second)
	type row struct {
		way     way
		takes   time.Duration
		another bool // holds by then, for another second
		asks    int
	}
	bubbles(t, map[string]row{
		"slow": {way{there: 300 * time.Millisecond, back: 600 * time.Millisecond},
			900 * time.Millisecond, false, 1},
		"when trust is almost over": {way{stopped: whole - 1}, whole - 1, false, 1},
		"when trust is over":        {way{stopped: whole}, whole, false, 2},
		"when the hold is over":     {way{stopped: 50 * time.Minute}, 50 * time.Minute, false, 2},
		"when another holds":        {way{stopped: 20 * time.Second}, 21 * time.Second, true, 2},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b := newHost(t, server), newHost(t, server)
		a.setWay(test.way)
		began := time.Now()
		next := a.startLock(context.Background(), engine.Options{Fixed: true}) // without an end: the caller itself asks
		a.setWay(way{})
		if test.another {
			sleep(16 * time.Second)
			other := b.lock(engine.Options{})
			sleep(5 * time.Second)
			b.release(other)
		}
		lease := next.await()
		sent := a.requests(began, "ask")
		if took := next.at.Sub(began); took != test.takes || len(sent) < test.asks {
			t.Errorf("took %v, with %v", took, sent)
		}
		want := sent[test.asks-1].at.Add(whole)
		if test.another { // handed over
			want = next.at.Add(whole)
		}
		if end := awaitLoss(t, lease, engine.Expired); !end.Equal(want) {
			t.Errorf("ended after %v, want %v", end.Sub(began), want.Sub(began))
		}
	})
}

// The answer to a renewal gives trust from its sending, too. One that comes when trust is over
// brings nothing back.
func TestLeaseSlowRenewalTrustsFromItsSending(t *testing.T) {
	whole := 15*time.Second - margin(15*time.Second)
	type row struct {
		way way
		end time.Duration // of trust; the network is silent after the renewal at 5 s
	}
	bubbles(t, map[string]row{
		"slow":               {way{back: 800 * time.Millisecond}, 5*time.Second + whole},
		"just in time":       {way{stopped: whole - 5*time.Second - 1}, 5*time.Second + whole},
		"when trust is over": {way{stopped: whole - 5*time.Second}, whole},
		"long after":         {way{stopped: 5 * time.Hour}, whole},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		granted := time.Now()
		lease := a.lock(engine.Options{})
		a.setWay(test.way)
		sleep(5 * time.Second)
		a.setWay(silent)
		if end := awaitLoss(t, lease, engine.Expired); end.Sub(granted) != test.end {
			t.Errorf("ended after %v, want %v", end.Sub(granted), test.end)
		}
		sleep(6 * time.Hour)
		awaitLoss(t, lease, engine.Expired)
	})
}

// Close ends the contexts of all leases at once, and takes no longer than ReleaseTimeout.
func TestEngineCloseSilentEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{TTL: time.Minute})
		waiter := a.startLock(t.Context(), engine.Options{TTL: time.Minute})
		other := b.startLock(t.Context(), engine.Options{})
		a.setWay(silent)
		began := time.Now()
		closed := make(chan error, 1)
		go func() { closed <- a.Close() }()
		<-lease.Context().Done()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, errClosed) || time.Since(began) > 0 {
			t.Errorf("ended after %v by %v", time.Since(began), cause)
		}
		if <-waiter.done; !errors.Is(waiter.err, errClosed) {
			t.Errorf("the waiter got %v", waiter.err)
		}
		if err := <-closed; err == nil || time.Since(began) != releaseTimeout {
			t.Errorf("Close returned %v after %v", err, time.Since(began))
		}
		if _, err := a.mutex(engine.Options{}).Try(t.Context()); !errors.Is(err, errClosed) {
			t.Errorf("after Close: %v", err)
		}
		other.await()
	})
}

// Trap 5: the server says that the hold is gone. The lease is lost at the next renewal, and nothing
// more is sent about it.
func TestLeaseGoneIsLostAtNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		granted := time.Now()
		lease := a.lock(engine.Options{})
		operator := server.Connect("test").Bind(a.mutex(engine.Options{}).Spec())
		if _, err := operator.Free(t.Context(),
			protocol.FreeRequest{Ticket: protocol.Ticket{ID: protocol.ID(lease.Owner())}}); err != nil {
			t.Fatal(err)
		}
		if end := awaitLoss(t, lease, engine.Gone); end.Sub(granted) != 5*time.Second {
			t.Errorf("lost after %v", end.Sub(granted))
		}
		sleep(time.Minute)
		if n := len(a.requests(granted.Add(5*time.Second), "")); n != 1 {
			t.Errorf("%d requests, want the renewal alone", n)
		}
	})
}

// A lease is renewed every third of its TTL, all leases of a client together.
func TestLeaseRenewedEveryThirdOfTTL(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const leases = 50
		a := newHost(t, server)
		began := time.Now()
		for i := range leases {
			spec := protocol.Spec{Name: fmt.Sprint(i), Kind: protocol.Mutex}
			a.try(a.NewLock(spec, engine.Options{TTL: 15 * time.Second}))
		}
		sleep(time.Minute)
		renewals := a.requests(began, "renew")
		if len(renewals) != 12 {
			t.Errorf("%d renewals in a minute, want 12", len(renewals))
		}
		for i, r := range renewals {
			if r.size != leases || r.at.Sub(began) != time.Duration(i+1)*5*time.Second {
				t.Errorf("after %v, of %d leases", r.at.Sub(began), r.size)
			}
		}
	})
}

// Trap 7: renewals that fail for a while do not end renewal, as long as trust lasts.
func TestLeaseRenewalFailsForAWhileGoesOn(t *testing.T) {
	bubbles(t, map[string]way{"silent": silent, "answers are lost": {noAnswers: true}},
		func(t *testing.T, server *memory.Server, bad way) {
			a := newHost(t, server)
			lease := a.lock(engine.Options{})
			a.setWay(bad)
			sleep(12 * time.Second)
			a.setWay(way{})
			sleep(time.Minute)
			if err := lease.Err(); err != nil {
				t.Error(err)
			}
			if left := time.Until(lease.Until()); left < 9*time.Second {
				t.Errorf("trusted for %v", left)
			}
			a.release(lease)
		})
}

// Trap 8: a release waits for the renewal under way, and a renewal that arrives after the release
// makes no hold.
func TestLeaseLateRenewalRevivesNothing(t *testing.T) {
	bubbles(t, map[string]time.Duration{"before the release": 500 * time.Millisecond,
		"after its time": 3 * time.Second}, func(t *testing.T, server *memory.Server, after time.Duration) {
		a := newHost(t, server)
		lease := a.lock(engine.Options{})
		sleep(4 * time.Second)
		a.setWay(way{there: after})
		sleep(time.Second + 100*time.Millisecond)
		a.setWay(way{})
		a.release(lease)
		released := time.Now()
		sleep(30 * time.Second)
		if n := len(a.requests(released.Add(1), "")); n > 0 {
			t.Errorf("%d requests after the release", n)
		}
		nothingLeft(t, server)
	})
}
