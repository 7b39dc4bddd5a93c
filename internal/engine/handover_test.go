package engine_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A hand-over by message takes no request, and its first renewal comes after a tenth of the claim.
func TestHandOverByMessageNeedsNoRequest(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		next := b.waits(t.Context(), engine.Options{})
		sleep(time.Second)
		a.releases(lease)
		released := time.Now()
		held := next.in()
		if !next.at.Equal(released) || len(b.since(released, "")) > 0 {
			t.Errorf("in after %v, with %v", next.at.Sub(released), b.since(released, ""))
		}
		if held.Token() <= lease.Token() {
			t.Errorf("token %d after %d", held.Token(), lease.Token())
		}
		sleep(claim)
		if renewals := b.since(released, "renew"); len(renewals) != 1 || renewals[0].at.After(released.Add(claim/10)) {
			t.Errorf("renewed %v", renewals)
		}
		if left := time.Until(held.Until()); left < 14*time.Second {
			t.Errorf("trusted for %v", left)
		}
	})
}

// Trap 4: a hand-over that is never renewed is trusted for its claim alone, from the hand-over on.
// The next contender gets in when the claim is over.
func TestHandOverNotRenewedIsTrustedForClaim(t *testing.T) {
	bubbles(t, map[string]time.Duration{"at once": 0, "late message": 200 * time.Millisecond},
		func(t *testing.T, server *memory.Server, late time.Duration) {
			a, b, c := newHost(t, server), newHost(t, server), newHost(t, server)
			lease := a.holds(engine.Options{})
			first, second := b.waits(t.Context(), engine.Options{}), c.waits(t.Context(), engine.Options{})
			sleep(time.Second)
			b.goes(way{noRequests: true, messages: late})
			a.releases(lease)
			released := time.Now()
			held := first.in()
			if until := held.Until(); until.After(released.Add(claim-margin(claim))) ||
				until.Before(released.Add(claim/2)) {
				t.Errorf("trusted for %v", until.Sub(released))
			}
			end := lost(t, held, engine.Expired)
			if second.in(); second.at.Before(released.Add(claim)) || second.at.Before(end) {
				t.Errorf("the next got in after %v", second.at.Sub(released))
			}
		})
}

// Trap 4: a message that comes when less than half of the claim is left is confirmed by asking. A
// message that comes after the claim is no lease.
func TestHandOverLateMessageIsConfirmed(t *testing.T) {
	bubbles(t, map[string]time.Duration{"late in the claim": 400 * time.Millisecond,
		"after the claim": 700 * time.Millisecond}, func(t *testing.T, server *memory.Server, late time.Duration) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		next := b.waits(t.Context(), engine.Options{})
		sleep(time.Second)
		b.goes(way{messages: late})
		a.releases(lease)
		released := time.Now()
		next.in()
		if asks := b.since(released, "ask"); !next.at.Equal(released.Add(late)) || len(asks) != 1 ||
			!asks[0].at.Equal(next.at) {
			t.Errorf("in after %v, with %v", next.at.Sub(released), asks)
		}
	})
}

// Trap 17: a message that is lost costs a slow ask, not the lease.
func TestHandOverMessageLostIsFoundByAsking(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		next := b.waits(t.Context(), engine.Options{})
		sleep(time.Second)
		b.goes(way{noMessages: true})
		a.releases(lease)
		released := time.Now()
		if next.in(); next.at.Sub(released) > askEvery*6/5 {
			t.Errorf("in after %v", next.at.Sub(released))
		}
	})
}

// Trap 20: a hand-over that crosses giving up goes on to the next contender, and nothing stays.
func TestHandOverCrossesGivingUpGoesOn(t *testing.T) {
	bubbles(t, map[string]time.Duration{"at one moment": 0, "before the message": 10 * time.Millisecond},
		func(t *testing.T, server *memory.Server, late time.Duration) {
			a, b, c := newHost(t, server), newHost(t, server), newHost(t, server)
			lease := a.holds(engine.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			first, second := b.waits(ctx, engine.Options{}), c.waits(t.Context(), engine.Options{})
			sleep(time.Second)
			b.goes(way{messages: late})
			released := time.Now()
			go cancel()
			a.releases(lease)
			if <-first.done; first.err == nil {
				b.releases(first.lease)
			}
			held := second.in()
			if took := second.at.Sub(released); took > late+claim/2 {
				t.Errorf("the next got in after %v", took)
			}
			c.releases(held)
			sleep(3 * time.Second)
			nothingLeft(t, server)
		})
}

// Trap 20: the ask of one who gave up arrives after it was taken back, and joins the queue once
// more. Its process gives the hand-over to it back at once.
func TestHandOverToLateAskGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		other := a.takes(a.rw(false))
		reader := b.waitsFor(t.Context(), b.rw(true)) // so that b listens
		sleep(3 * time.Second)
		b.goes(way{there: 300 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		first := b.waits(ctx, engine.Options{})
		sleep(100 * time.Millisecond)
		b.goes(way{})
		cancel()
		<-first.done
		sleep(250 * time.Millisecond)
		second := c.waits(t.Context(), engine.Options{})
		sleep(50 * time.Millisecond)
		released := time.Now()
		a.releases(lease)
		if second.in(); !second.at.Equal(released) {
			t.Errorf("the next got in after %v", second.at.Sub(released))
		}
		a.releases(other)
		b.releases(reader.in())
	})
}

// A message proves nothing: one that says what a server would say is believed for one claim, and
// another message not at all. SECURITY.md says so.
func TestHandOverForgedIsTrustedForOneClaim(t *testing.T) {
	type row struct {
		forge    func(*protocol.Grant)
		believed bool
	}
	bubbles(t, map[string]row{
		"as a server would": {func(*protocol.Grant) {}, true},
		"for an hour":       {func(g *protocol.Grant) { g.Claim = time.Hour }, false},
		"for ever":          {func(g *protocol.Grant) { g.Claim = math.MaxInt64 }, false},
		"from the future":   {func(g *protocol.Grant) { g.At += time.Hour.Microseconds() }, false},
		"for another":       {func(g *protocol.Grant) { g.ID = protocol.NewID() }, false},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		next := b.waits(t.Context(), engine.Options{})
		sleep(time.Second)
		in := a.seen()
		forged := time.Now()
		grant := protocol.Grant{ID: in.Queue[0].ID, Token: in.Server, Block: 1, At: in.Server, Claim: claim}
		test.forge(&grant)
		b.Granted(grant)
		sleep(time.Millisecond)
		if next.out() == test.believed {
			t.Fatalf("believed: %v, want %v", !test.believed, test.believed)
		}
		if test.believed {
			if end := lost(t, next.lease, engine.Gone); end.Sub(forged) > claim {
				t.Errorf("believed for %v", end.Sub(forged))
			}
			if err := lease.Err(); err != nil {
				t.Errorf("the holder: %v", err)
			}
		}
		a.releases(lease)
		if !test.believed {
			b.releases(next.in())
		}
	})
}

// A process passes a mutex on among its goroutines without a request. After a slice another process
// gets in before the next goroutine.
func TestMutexPassedInProcessYieldsAfterSlice(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		waits := func(h *host) *waiter { return h.waits(t.Context(), engine.Options{}) }
		first := waits(a).in()
		second, third := waits(a), waits(a)
		a.releases(first) // in the request that asks for tokens to pass on
		held := second.in()
		before := a.since(time.Time{}, "")
		a.releases(held)
		held = third.in()
		if n := len(a.since(time.Time{}, "")) - len(before); n > 0 || held.Token() != second.lease.Token()+1 {
			t.Errorf("passed on with %d requests, token %d after %d", n, held.Token(), second.lease.Token())
		}
		fourth, outside := waits(a), waits(b)
		sleep(5 * time.Millisecond)
		a.releases(held)
		held = outside.in()
		if !fourth.out() {
			t.Error("a goroutine of the process is in before the other process")
		}
		b.releases(held)
		a.releases(fourth.in())
	})
}
