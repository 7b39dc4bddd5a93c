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
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// operator is the label of those that break holds and evict waiters here.
const operator = "op"

// breakHold ends the hold of the name that has a token, and reports whether there was one.
func (h *host) breakHold(kind protocol.Kind, token int64, force bool) bool {
	h.t.Helper()
	done, err := h.Break(h.t.Context(), "n", protocol.Break{Kind: kind, Token: token, By: operator, Force: force})
	fatal.If(h.t, err)
	return done
}

func (h *host) inspect() protocol.Inspection {
	h.t.Helper()
	in, err := h.Inspect(h.t.Context(), "n", protocol.Page{Holds: 100, Queue: 100})
	fatal.If(h.t, err)
	return in
}

// awaitBreak waits until a lease is lost because an operator broke its hold, and returns when.
func awaitBreak(t *testing.T, lease *engine.Lease) time.Time {
	t.Helper()
	at := awaitLoss(t, lease, engine.Broken)
	var cause *loss
	if err := context.Cause(lease.Context()); !errors.As(err, &cause) || cause.By != operator ||
		cause.Token != lease.Token() {
		t.Errorf("lost by %v", err)
	}
	return at
}

// releaseBroken releases a lease that is lost, which says so.
func (h *host) releaseBroken(lease interface{ Release() error }) {
	h.t.Helper()
	var cause *loss
	if err := lease.Release(); !errors.As(err, &cause) || cause.Why != engine.Broken || cause.By != operator {
		h.t.Errorf("Release: %v", err)
	}
}

// A holder that lives learns of the break by message if its process listens, and otherwise at its
// next renewal. The next gets in when the holder releases, however late that is within the TTL, and
// at once then.
func TestBreakLetsNextInAfterRelease(t *testing.T) {
	type row struct {
		listens bool
		way     way
		most    time.Duration // until the holder is told
	}
	bubbles(t, map[string]row{
		"message":         {listens: true},
		"message is late": {listens: true, way: way{messages: time.Second}, most: time.Second},
		"message is lost": {listens: true, way: way{noMessages: true}, most: 5 * time.Second},
		"no listener":     {most: 5 * time.Second},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b, op := newHosts(t, server)
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		if test.listens {
			ctx, cancel := context.WithCancel(t.Context())
			own := a.startLock(ctx, engine.Options{Strict: true})
			defer func() { <-own.done }()
			defer cancel()
		}
		a.setWay(test.way)
		began := time.Now()
		if !op.breakHold(protocol.Mutex, lease.Token(), false) {
			t.Fatal("not broken")
		}
		if in := op.inspect(); len(in.Holds) != 1 || in.Holds[0].State != protocol.HoldBroken ||
			in.Holds[0].By != operator {
			t.Errorf("Inspect: %+v", in)
		}
		if told := awaitBreak(t, lease).Sub(began); told > test.most {
			t.Errorf("told after %v", told)
		}
		sleep(9 * time.Second)
		if !next.isWaiting() { // its code may still run: being told confirms nothing
			t.Fatal("the next got in before the release")
		}
		if !op.breakHold(protocol.Mutex, lease.Token(), false) {
			t.Error("a replay says that there is no such hold")
		}
		at := time.Now()
		a.releaseBroken(lease)
		second := next.await()
		if took := next.at.Sub(at); took > 0 {
			t.Errorf("the next got in %v after the release", took)
		}
		if op.breakHold(protocol.Mutex, lease.Token(), false) || second.Err() != nil {
			t.Error("a later break ended the next hold")
		}
		a.setWay(way{})
		b.release(second)
	})
}

// A message proves nothing: the server is asked, and the lease lives.
func TestBreakForgedIsNotBelieved(t *testing.T) {
	for _, fixed := range []bool{false, true} {
		bubble(t, func(t *testing.T, server *memory.Server) {
			a := newHost(t, server)
			lease := a.lock(engine.Options{Fixed: fixed})
			began := time.Now()
			for range 3 {
				a.Engine.Broken(protocol.ID(lease.Owner()))
			}
			synctest.Wait()
			if asked := len(a.requests(began, "renew")); asked == 0 || asked > 3 {
				t.Errorf("the server was asked %d times", asked)
			}
			if freed := len(a.requests(began, "free")); lease.Err() != nil || freed > 0 {
				t.Errorf("%v, %d given back", lease.Err(), freed)
			}
			a.release(lease)
		})
	}
}

// The client that has a hold needs no message to learn that it broke the hold itself. Without an
// answer to its Break it asks at once.
func TestBreakReachesOwnClient(t *testing.T) {
	type row struct {
		force bool
		way   way
		most  time.Duration // until the holder is told
	}
	bubbles(t, map[string]row{
		"break":                  {way: way{noMessages: true}},
		"by force":               {way: way{noMessages: true}, force: true},
		"the answer is too late": {way: way{back: 500 * time.Millisecond}, most: 600 * time.Millisecond},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		lease := a.lock(engine.Options{})
		a.setWay(test.way)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		done, err := a.Break(ctx, "n", protocol.Break{Kind: protocol.Mutex, Token: lease.Token(), By: operator,
			Force: test.force})
		if test.most == 0 && (!done || err != nil || lease.Err() == nil) {
			t.Fatalf("Break: %v, %v; the lease: %v", done, err, lease.Err())
		}
		if test.force {
			awaitLoss(t, lease, engine.Gone)
		} else if told := awaitBreak(t, lease).Sub(began); told > test.most {
			t.Errorf("told after %v", told)
		}
		_ = lease.Release()
	})
}

// A hold is broken as it is handed over. Whatever comes first, or is lost, of the message of the
// grant, the message of the break and the answers: no two leases are trusted at a time, none
// outlasts the claim, and the waiter that had not taken its hold up asks anew, behind the next.
func TestBreakAtHandOverExcludes(t *testing.T) {
	const late = 100 * time.Millisecond
	type row struct {
		grant, broken way           // what becomes of messages at the grant, and at the break
		leased        bool          // a lease is made of the hold
		most          time.Duration // until the next gets in, at most
	}
	bubbles(t, map[string]row{
		"grant, break":      {leased: true, most: late},
		"grant, late break": {broken: way{messages: late}, leased: true, most: 2 * late},
		"late grant, break": {grant: way{messages: late}, most: late},
		"both late": {grant: way{messages: late}, broken: way{messages: 2 * late}, leased: true,
			most: 3 * late},
		"lost grant, break": {grant: way{noMessages: true}, most: late},
		"grant, lost break": {broken: way{noMessages: true}, leased: true, most: claim},
		"both lost": {grant: way{noMessages: true}, broken: way{noMessages: true},
			most: claim + 7*time.Second},
		"grant, then silence": {broken: silent, leased: true, most: claim + 7*time.Second},
		"late break, slow answer": {grant: way{messages: late, back: late}, broken: way{messages: late / 2, back: late},
			most: 3 * late},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b, c, op := newHost(t, server), newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		waits := b.startLock(t.Context(), engine.Options{})
		next := c.startLock(t.Context(), engine.Options{})
		b.setWay(test.grant)
		a.release(lease)
		if test.leased && test.grant == (way{}) {
			waits.await()
		}
		hold := op.inspect().Holds[0]
		if hold.State != protocol.HoldOffered && !test.leased {
			t.Fatalf("the hold is %v", hold.State)
		}
		at := time.Now()
		b.setWay(test.broken)
		if !op.breakHold(protocol.Mutex, hold.Token, false) {
			t.Fatal("not broken")
		}
		sleep(late / 4)
		if test.leased {
			former := waits.await()
			broke := make(chan struct{})
			go func() {
				defer close(broke)
				<-former.Context().Done()
				if took := time.Since(at); took > claim {
					t.Errorf("trusted for %v", took)
				}
				_ = former.Release()
			}()
			defer func() { <-broke }()
		}
		second := next.await()
		if took := next.at.Sub(at); took > test.most {
			t.Errorf("the next got in after %v, want %v at most", took, test.most)
		}
		if test.leased && waits.lease.Err() == nil {
			t.Error("two leases are trusted")
		}
		b.setWay(way{})
		sleep(6 * time.Second)
		if err := second.Err(); err != nil {
			t.Errorf("the next lost it: %v", err)
		}
		c.release(second)
		if !test.leased {
			third := waits.await()
			if third.Token() <= second.Token() {
				t.Errorf("token %d after %d", third.Token(), second.Token())
			}
			b.release(third)
		}
	})
}

// The offer to a kept place is broken: the wait there ends, and so does what is left of the hold.
func TestBreakOfOfferEndsKeptPlace(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c, op := newHost(t, server), newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		place := b.keepPlace(time.Minute)
		waits := b.startAttach(t.Context(), place)
		next := c.startLock(t.Context(), engine.Options{})
		b.setWay(way{noMessages: true})
		a.release(lease)
		b.setWay(way{})
		op.breakHold(protocol.Mutex, op.inspect().Holds[0].Token, false)
		<-waits.done
		var refused *engine.AttachError
		if !errors.As(waits.err, &refused) || refused.Why != engine.Broken || refused.By != operator {
			t.Errorf("AttachWait: %v", waits.err)
		}
		c.release(next.await())
		b.checkGone(place)
	})
}

// A holder behind whom goroutines of its own process wait is told as they would be: at once by
// message, also where the message is lost with a connection, and of what happened before they
// listened. They ask anew, and are in after the release.
func TestBreakReachesHolderWithLocalWaiters(t *testing.T) {
	const soon = 300 * time.Millisecond // within which a process listens behind its own hold
	type row struct {
		waited time.Duration // before the break
		way    way
		gap    bool
		most   time.Duration
	}
	bubbles(t, map[string]row{
		"they waited long":        {waited: 3 * time.Second},
		"they have just come":     {most: soon},
		"the connection was lost": {waited: 3 * time.Second, way: way{noMessages: true}, gap: true},
		"asked as the message arrives": {waited: 300 * time.Millisecond, way: way{back: 100 * time.Millisecond},
			most: soon},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, op := newHost(t, server), newHost(t, server)
		lease := a.startLock(t.Context(), engine.Options{}).await()
		next := a.startLock(t.Context(), engine.Options{})
		a.setWay(test.way)
		sleep(test.waited)
		began := time.Now()
		op.breakHold(protocol.Mutex, lease.Token(), false)
		if test.gap {
			a.setWay(way{})
			a.Gap()
		}
		if told := awaitBreak(t, lease).Sub(began); told > test.most {
			t.Errorf("told after %v", told)
		}
		if !next.isWaiting() {
			t.Fatal("the next got in before the release")
		}
		a.releaseBroken(lease)
		a.release(next.await())
	})
}

// Goroutines that pass a hold on, slice after slice, cost no subscription.
func TestLocalPassingNeedsNoMessages(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.startLock(t.Context(), engine.Options{}).await()
		for range 300 {
			next := a.startLock(t.Context(), engine.Options{})
			sleep(4 * time.Millisecond)
			a.release(lease)
			lease = next.await()
		}
		a.release(lease)
		if n := len(a.requests(time.Time{}, "listen")); n > 0 {
			t.Errorf("%d subscriptions", n)
		}
	})
}

// evict takes the first waiter out of the queue.
func (h *host) evict() {
	h.t.Helper()
	done, err := h.Evict(h.t.Context(), "n", protocol.Mutex, h.inspect().Queue[0].ID, operator)
	if err != nil || !done {
		h.t.Fatalf("Evict: %v, %v", done, err)
	}
}

// awaitEviction waits until the goroutine learns that it was taken out of the queue.
func (w *waiter) awaitEviction() {
	w.t.Helper()
	w.awaitEnd()
	var ended *engine.WaitFailure
	var evicted *protocol.Evicted
	if !errors.As(w.err, &ended) || !errors.As(ended.Err, &evicted) || evicted.By != operator || evicted.Name != "n" {
		w.t.Errorf("the wait ended with %v", w.err)
	}
}

// A client needs no message to learn what it did itself to a waiter, or to a ticket that it uses.
func TestOwnCallsNeedNoMessage(t *testing.T) {
	noMessages := way{noMessages: true}
	bubbles(t, map[string]func(a *host) (isTold bool){
		"Evict": func(a *host) bool {
			a.lock(engine.Options{})
			w := a.startLock(a.t.Context(), engine.Options{Strict: true})
			a.setWay(noMessages)
			a.evict()
			return !w.isWaiting()
		},
		"Resize": func(a *host) bool {
			a.try(a.semaphore(1).Weigh(1))
			w := a.startAcquirePermit(a.semaphore(1))
			a.setWay(noMessages)
			a.resize(2)
			return !w.isWaiting()
		},
		"DropPlace": func(a *host) bool {
			a.lock(engine.Options{})
			place := a.keepPlace(time.Minute)
			w := a.startAttach(a.t.Context(), place)
			a.setWay(noMessages)
			return a.DropPlace(a.t.Context(), place) == nil && !w.isWaiting()
		},
		"DropDetached": func(a *host) bool {
			d := a.detach(a.lock(engine.Options{}))
			lease := a.attach(d)
			a.setWay(noMessages)
			err := a.DropDetached(a.t.Context(), []engine.Detached{d})
			sleep(0)
			return err == nil && lease.Err() != nil
		},
	}, func(t *testing.T, server *memory.Server, isTold func(*host) bool) {
		if !isTold(newHost(t, server)) {
			t.Error("it is not told")
		}
	})
}

// The end of ctx at the moment of the eviction leaves no goroutine of the pool without a leader.
func TestEvictAsContextEndsReachesNextLeader(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, op := newHosts(t, server)
		lease := a.lock(engine.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		leads, follows := b.startLock(ctx, engine.Options{}), b.startLock(t.Context(), engine.Options{})
		b.setWay(way{noMessages: true})
		op.evict()
		cancel()
		<-leads.done
		b.setWay(way{})
		follows.awaitEviction() // it went on with the ticket
		a.release(lease)
	})
}
