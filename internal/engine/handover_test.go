package engine_test

import (
	"context"
	"errors"
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
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		a.release(lease)
		released := time.Now()
		held := next.await()
		if !next.at.Equal(released) || len(b.requests(released, "")) > 0 {
			t.Errorf("in after %v, with %v", next.at.Sub(released), b.requests(released, ""))
		}
		if held.Token() <= lease.Token() {
			t.Errorf("token %d after %d", held.Token(), lease.Token())
		}
		sleep(claim)
		if renewals := b.requests(released, "renew"); len(renewals) != 1 ||
			renewals[0].at.After(released.Add(claim/10)) {
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
			a, b, c := newHosts(t, server)
			lease := a.lock(engine.Options{})
			first, second := b.startLock(t.Context(), engine.Options{}), c.startLock(t.Context(), engine.Options{})
			sleep(time.Second)
			b.setWay(way{noRequests: true, messages: late})
			a.release(lease)
			released := time.Now()
			held := first.await()
			if until := held.Until(); until.After(released.Add(claim-margin(claim))) ||
				until.Before(released.Add(claim/2)) {
				t.Errorf("trusted for %v", until.Sub(released))
			}
			end := awaitLoss(t, held, engine.Expired)
			if second.await(); second.at.Before(released.Add(claim)) || second.at.Before(end) {
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
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		b.setWay(way{messages: late})
		a.release(lease)
		released := time.Now()
		next.await()
		if asks := b.requests(released, "ask"); !next.at.Equal(released.Add(late)) || len(asks) != 1 ||
			!asks[0].at.Equal(next.at) {
			t.Errorf("in after %v, with %v", next.at.Sub(released), asks)
		}
	})
}

// Trap 17: a message that is lost costs a slow ask, not the lease.
func TestHandOverMessageLostIsFoundByAsking(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		b.setWay(way{noMessages: true})
		a.release(lease)
		released := time.Now()
		if next.await(); next.at.Sub(released) > askEvery*6/5 {
			t.Errorf("in after %v", next.at.Sub(released))
		}
	})
}

// Trap 20: a hand-over that crosses giving up goes on to the next contender, and nothing stays.
func TestHandOverCrossesGivingUpGoesOn(t *testing.T) {
	bubbles(t, map[string]time.Duration{"at one moment": 0, "before the message": 10 * time.Millisecond},
		func(t *testing.T, server *memory.Server, late time.Duration) {
			a, b, c := newHosts(t, server)
			lease := a.lock(engine.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			first, second := b.startLock(ctx, engine.Options{}), c.startLock(t.Context(), engine.Options{})
			sleep(time.Second)
			b.setWay(way{messages: late})
			released := time.Now()
			go cancel()
			a.release(lease)
			if <-first.done; first.err == nil {
				b.release(first.lease)
			}
			held := second.await()
			if took := second.at.Sub(released); took > late+claim/2 {
				t.Errorf("the next got in after %v", took)
			}
			c.release(held)
			sleep(3 * time.Second)
			nothingLeft(t, server)
		})
}

// Trap 20: the ask of one who gave up arrives after it was taken back, and joins the queue once
// more. Its process gives the hand-over to it back at once.
func TestHandOverToLateAskGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHosts(t, server)
		lease := a.lock(engine.Options{})
		other := a.try(a.rw(false))
		reader := b.startAcquire(t.Context(), b.rw(true)) // so that b listens
		sleep(3 * time.Second)
		b.setWay(way{there: 300 * time.Millisecond})
		ctx, cancel := context.WithCancel(t.Context())
		first := b.startLock(ctx, engine.Options{})
		sleep(100 * time.Millisecond)
		b.setWay(way{})
		cancel()
		<-first.done
		sleep(250 * time.Millisecond)
		second := c.startLock(t.Context(), engine.Options{})
		sleep(50 * time.Millisecond)
		released := time.Now()
		a.release(lease)
		if second.await(); !second.at.Equal(released) {
			t.Errorf("the next got in after %v", second.at.Sub(released))
		}
		a.release(other)
		b.release(reader.await())
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
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		in := a.inspect()
		forged := time.Now()
		grant := protocol.Grant{ID: in.Queue[0].ID, Token: in.Server, Block: 1, At: in.Server, Claim: claim}
		test.forge(&grant)
		b.Granted(grant)
		sleep(time.Millisecond)
		if next.isWaiting() == test.believed {
			t.Fatalf("believed: %v, want %v", !test.believed, test.believed)
		}
		if test.believed {
			if end := awaitLoss(t, next.lease, engine.Gone); end.Sub(forged) > claim {
				t.Errorf("believed for %v", end.Sub(forged))
			}
			if err := lease.Err(); err != nil {
				t.Errorf("the holder: %v", err)
			}
		}
		a.release(lease)
		if !test.believed {
			b.release(next.await())
		}
	})
}

// A process passes a mutex on among its goroutines without a request. After a slice another process
// gets in before the next goroutine.
func TestMutexPassedInProcessYieldsAfterSlice(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		waits := func(h *host) *waiter { return h.startLock(t.Context(), engine.Options{}) }
		first := waits(a).await()
		second, third := waits(a), waits(a)
		a.release(first) // in the request that asks for tokens to pass on
		held := second.await()
		before := a.requests(time.Time{}, "")
		a.release(held)
		held = third.await()
		if n := len(a.requests(time.Time{}, "")) - len(before); n > 0 || held.Token() != second.lease.Token()+1 {
			t.Errorf("passed on with %d requests, token %d after %d", n, held.Token(), second.lease.Token())
		}
		fourth, outside := waits(a), waits(b)
		sleep(5 * time.Millisecond)
		a.release(held)
		held = outside.await()
		if !fourth.isWaiting() {
			t.Error("a goroutine of the process is in before the other process")
		}
		b.release(held)
		a.release(fourth.await())
	})
}

// A reader leads, and learns late that a hold of its process was opened to readers. Another reader
// came meanwhile, too late to enter that hold. It must not wait for the end of the hold.
func TestReaderBehindLeaderThatJoinsLateLeads(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const slice = 5 * time.Millisecond
		p := newHost(t, server)
		writes := p.try(p.rw(false))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		silent := make(chan struct{})
		p.setAsks(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
			<-silent
			return protocol.Answer{}, &protocol.Failure{Op: "lock", Name: "n", Reason: protocol.Unreachable,
				Err: errors.New("gone")}
		})
		first := p.startAcquire(ctx, p.rw(true))
		if err := writes.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		sleep(2 * slice)
		second := p.startAcquire(ctx, p.rw(true))
		p.setAsks(nil)
		close(silent)
		p.release(first.await())
		p.release(second.await())
		p.release(writes)
	})
}
