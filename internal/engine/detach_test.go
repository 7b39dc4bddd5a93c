package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// detach lets a lease leave the process.
func (h *host) detach(lease *engine.Lease) engine.Detached {
	h.t.Helper()
	all, err := lease.Detach()
	fatal.If(h.t, err)
	return all[0]
}

// attach takes a lease up.
func (h *host) attach(d engine.Detached) *engine.Lease {
	h.t.Helper()
	return h.must(h.Attach(h.t.Context(), d))
}

// checkAttachError fails unless an error says why a hold cannot be attached.
func checkAttachError(t *testing.T, err error, why engine.Why, by string) {
	t.Helper()
	var refused *engine.AttachError
	if !errors.As(err, &refused) || refused.Why != why || refused.By != by {
		t.Errorf("%v: %+v, want %v by %q", err, refused, why, by)
	}
}

// Trust in an attached hold counts from the sending of the renewal, and goes on by further ones.
func TestAttachTrustsFromItsSending(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const ttl = 15 * time.Second
		a, b := newHost(t, server), newHost(t, server)
		d := a.detach(a.lock(engine.Options{}))
		sleep(10 * time.Second)
		b.setWay(way{there: 100 * time.Millisecond, back: 700 * time.Millisecond})
		sent := time.Now()
		lease := b.attach(d)
		if got, want := lease.Until(), sent.Add(ttl-margin(ttl)); !got.Equal(want) {
			t.Errorf("trusted until %v after the sending, want %v", got.Sub(sent), want.Sub(sent))
		}
		b.setWay(way{})
		sleep(time.Hour)
		fatal.If(t, lease.Err())
		b.setWay(silent)
		silentSince := time.Now()
		if at := awaitLoss(t, lease, engine.Expired); at.Sub(silentSince) > ttl {
			t.Errorf("lost after %v", at.Sub(silentSince))
		}
	})
}

// An attached hold is never passed on inside the process: two users of a ticket would draw the same
// tokens from its block.
func TestAttachedHoldIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		outer := a.lock(engine.Options{})
		w1, w2 := b.startLock(ctx, engine.Options{}), b.startLock(ctx, engine.Options{})
		a.release(outer)
		first := w1.await() // its grant has a block of tokens, as another goroutine waits
		d := b.detach(first)
		here, there := b.attach(d), a.attach(d)
		if !w2.isWaiting() {
			t.Fatal("the waiter has the detached hold")
		}
		b.release(here)
		second := w2.await()
		if second.Token() <= first.Token() || second.Owner() == first.Owner() {
			t.Errorf("tokens %d and then %d, owners %q and %q", first.Token(), second.Token(), first.Owner(),
				second.Owner())
		}
		awaitLoss(t, there, engine.Gone)
		b.release(second)
	})
}

// A reader that is alone in its hold may leave with it, and later readers do not join it.
func TestDetachedReaderIsNotJoined(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		one := a.must(a.rw(true).Acquire(t.Context()))
		two := a.try(a.rw(true)) // joins
		if one.Token() != two.Token() {
			t.Fatal("they do not share a hold")
		}
		a.release(one)
		d := a.detach(two)
		three := a.try(a.rw(true))
		if three.Token() == two.Token() {
			t.Error("a reader joined a hold that had left")
		}
		again := b.attach(d)
		if four := b.try(b.rw(true)); four.Token() == again.Token() {
			t.Error("a reader joined an attached hold")
		} else {
			b.release(four)
		}
		a.release(three)
		b.release(again)
	})
}

// Detach waits until an ask whose connection broke can arrive no more. Otherwise that ask would win
// the hold again after its release, for nobody.
func TestDetachWaitsForALateAsk(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		l := a.mutex(engine.Options{Strict: true})
		a.setAsks(func(_ context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			a.setAsks(nil) // for the next ask
			time.AfterFunc(900*time.Millisecond, func() { _, _ = r.Ask(context.Background(), ask) })
			return protocol.Answer{}, &protocol.Failure{Op: "ask", Reason: protocol.Unreachable, Unknown: true,
				Err: errors.New("broken")}
		})
		asked := time.Now()
		lease, err := l.Acquire(t.Context())
		if err != nil || time.Since(asked) > 500*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(asked))
		}
		b.release(b.attach(a.detach(lease)))
		sleep(2 * time.Second)
		nothingLeft(t, server)
	})
}

// A hold without renewal that was prolonged all the same takes the longer time along, from process
// to process.
func TestDetachedFixedHoldKeepsItsEnd(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const ttl, drift = 30 * time.Second, time.Second
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{TTL: ttl, Fixed: true})
		for range 3 {
			<-time.After(20 * time.Second)
			a.extend(lease)
			end := lease.Until()
			<-time.After(5 * time.Second)
			lease, a, b = b.attach(a.detach(lease)), b, a
			if more := lease.Until().Sub(end); more > 0 || more < -drift {
				t.Errorf("trusted for another %v", more)
			}
		}
		a.release(lease)
	})
}

// A group leaves as a whole, or stays as a whole.
func TestGroupDetachesAsAWhole(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lockAll(t.Context(), engine.Options{}, "m", "n")
		entered := a.must(a.mutex(engine.Options{}).Acquire(lease.Context()))
		if _, err := lease.Detach(); !errors.Is(err, engine.ErrShared) || lease.Err() != nil {
			t.Errorf("entered: %v, then %v", err, lease.Err())
		}
		a.release(entered)
		all, err := lease.Detach()
		if err != nil || len(all) != 2 {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(lease.Context()), context.Canceled) || !errors.Is(lease.Err(), engine.ErrNotHeld) {
			t.Errorf("the context ended by %v, Err is %v", context.Cause(lease.Context()), lease.Err())
		}
		sent := time.Now()
		again, err := b.AttachGroup(t.Context(), all)
		fatal.If(t, err)
		if n := len(b.requests(sent, "renew")); n != 1 {
			t.Errorf("%d requests", n)
		}
		inner := b.must(b.mutex(engine.Options{}).Acquire(again.Context()))
		if inner.Token() != lease.Tokens()["n"] {
			t.Errorf("under its context: token %d", inner.Token())
		}
		b.release(inner)
		b.release(again)
		var part *engine.PartError
		_, err = b.AttachGroup(t.Context(), all)
		if checkAttachError(t, err, engine.Gone, ""); !errors.As(err, &part) || part.Name != "m" {
			t.Errorf("which part: %v", err)
		}
	})
}

// keepPlace joins the queue with a ticket whose place is kept.
func (h *host) keepPlace(keep time.Duration) engine.Detached {
	h.t.Helper()
	place, err := h.mutex(engine.Options{}).Place(h.t.Context(), keep)
	fatal.If(h.t, err)
	return place
}

// startAttach starts a goroutine in AttachWait, and returns when it waits or is done.
func (h *host) startAttach(ctx context.Context, place engine.Detached) *waiter {
	return h.start(func() (*engine.Lease, error) { return h.AttachWait(ctx, place) })
}

func (h *host) waitInVain(place engine.Detached, after time.Duration) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), after)
	defer cancel()
	_, err := h.AttachWait(ctx, place)
	var ended *engine.WaitFailure
	if !errors.As(err, &ended) || !errors.Is(err, context.DeadlineExceeded) || !ended.Answered ||
		ended.Answer.Holders != 1 {
		h.t.Fatalf("the wait ended with %v", err)
	}
}

// checkGone fails unless the server knows neither a place nor a hold of the ticket.
func (h *host) checkGone(place engine.Detached) {
	h.t.Helper()
	var gone *engine.AttachError
	if lease, err := h.AttachWait(h.t.Context(), place); !errors.As(err, &gone) || gone.Why != engine.Gone ||
		lease != nil {
		h.t.Errorf("AttachWait: %v", err)
	}
}

// A place lives for its time after the last ask, not less and not more. Then the ticket does not
// join again, and nothing is taken, although the name is free.
func TestPlaceEndsWithItsLife(t *testing.T) {
	for keep, test := range map[time.Duration]struct{ alive, dead time.Duration }{
		time.Second:      {900 * time.Millisecond, 1001 * time.Millisecond},
		time.Minute:      {59 * time.Second, 61 * time.Second},
		10 * time.Minute: {599 * time.Second, 601 * time.Second},
	} {
		runBubble(t, keep.String(), func(t *testing.T, server *memory.Server) {
			a, b, c := newHosts(t, server)
			lease := a.lock(engine.Options{})
			place := b.keepPlace(keep)
			sleep(test.alive)
			b.waitInVain(place, 20*time.Second) // asking is a sign of life
			sleep(test.alive)
			c.waitInVain(place, time.Second)
			sleep(test.dead)
			a.release(lease)
			b.checkGone(place)
			nothingLeft(t, server)
		})
	}
}

// The wait ends while the lock is on its way: the caller gets the lease, although ctx is over, and
// not a claim that nobody takes up (trap 20).
func TestPlaceGrantedAtTheEndOfTheWait(t *testing.T) {
	bubbles(t, map[string]way{
		"a late message":  {messages: 50 * time.Millisecond},
		"a lost message":  {noMessages: true},
		"a slow network":  {there: 40 * time.Millisecond, back: 40 * time.Millisecond, messages: 50 * time.Millisecond},
		"lost and denied": {noMessages: true, denied: true},
	}, func(t *testing.T, server *memory.Server, w way) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{TTL: time.Minute})
		place := b.keepPlace(time.Minute)
		b.setWay(w)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		kept := b.startAttach(ctx, place)
		sleep(10*time.Second - 10*time.Millisecond)
		a.release(lease)
		lease = kept.await()
		sleep(time.Minute)
		fatal.If(t, lease.Err())
		b.release(lease)
		nothingLeft(t, server)
	})
}

// After the end of a wait the lock is never handed to the place, although the server still takes
// the connection for open.
func TestPlaceNotHandedOverAfterTheWait(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHosts(t, server)
		lease := a.lock(engine.Options{})
		place := b.keepPlace(time.Minute)
		behind := c.startLock(t.Context(), engine.Options{})
		stuck, err := server.Connect("test").ListenTicket(t.Context(), place.Ticket.ID, b)
		fatal.If(t, err)
		defer stuck.Close()
		b.waitInVain(place, time.Second)
		released := time.Now()
		a.release(lease)
		lease = behind.await()
		if !behind.at.Equal(released) {
			t.Errorf("the waiter behind the place got in after %v", behind.at.Sub(released))
		}
		c.release(lease)
		b.release(b.startAttach(t.Context(), place).await())
	})
}

// A place whose join got no answer is taken back (traps 10 and 12).
func TestPlaceAnswerLostLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		a.setWay(way{noAnswers: true})
		var failure *protocol.Failure
		if _, err := a.mutex(engine.Options{}).Place(t.Context(), time.Minute); !errors.As(err, &failure) ||
			!failure.Unknown {
			t.Error(err)
		}
		a.setWay(way{})
		sleep(5 * time.Second)
		nothingLeft(t, server)
	})
}
