package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

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

// A hold is broken after the server granted it, and before its process knows. The answer that
// grants it comes after the message of the break, or there is no such message, or the answer is
// lost as well.
func TestBreakBeforeAnswerIsTold(t *testing.T) {
	type row struct {
		listens, lost bool
		most          time.Duration // until the lease is lost
	}
	bubbles(t, map[string]row{
		"message":        {listens: true},
		"no message":     {most: 5 * time.Second},
		"answer is lost": {lost: true},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, op := newHost(t, server), newHost(t, server)
		if test.listens {
			kept := a.try(a.NewLock(protocol.Spec{Name: "other", Kind: protocol.Mutex},
				engine.Options{TTL: 15 * time.Second}))
			waits := make(chan *engine.Lease)
			go func() {
				lease, err := a.NewLock(protocol.Spec{Name: "other", Kind: protocol.Mutex},
					engine.Options{TTL: 15 * time.Second}).Acquire(t.Context())
				if err != nil {
					t.Error(err)
				}
				waits <- lease
			}()
			synctest.Wait()
			defer func() {
				a.release(kept)
				a.release(<-waits)
			}()
		}
		a.setWay(way{back: 100 * time.Millisecond, noAnswers: test.lost})
		waits := a.startLock(t.Context(), engine.Options{})
		token := op.inspect().Holds[0].Token
		if !op.breakHold(protocol.Mutex, token, false) {
			t.Fatal("not broken")
		}
		sleep(time.Second)
		a.setWay(way{})
		began := time.Now()
		lease := waits.await()
		if test.lost { // with a new ticket
			if lease.Token() <= token {
				t.Errorf("token %d after %d", lease.Token(), token)
			}
			a.release(lease)
			return
		}
		if took := awaitBreak(t, lease).Sub(began); took > test.most {
			t.Errorf("told after %v", took)
		}
		a.releaseBroken(lease)
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
