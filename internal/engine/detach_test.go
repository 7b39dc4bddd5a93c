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

// detaches lets a lease leave the process.
func (h *host) detaches(lease *engine.Lease) engine.Detached {
	h.t.Helper()
	all, err := lease.Detach()
	if err != nil {
		h.t.Fatal(err)
	}
	return all[0]
}

// attaches takes a lease up.
func (h *host) attaches(d engine.Detached) *engine.Lease {
	h.t.Helper()
	lease, err := h.Attach(h.t.Context(), d)
	if err != nil {
		h.t.Fatal(err)
	}
	return lease
}

// free reports whether another process could take the mutex now. It leaves it free.
func (h *host) free() bool {
	lease, err := h.mutex(engine.Options{}).Try(h.t.Context())
	if err != nil {
		return false
	}
	h.releases(lease)
	return true
}

// cannot fails unless an error says why a hold cannot be attached.
func cannot(t *testing.T, err error, why engine.Why, by string) {
	t.Helper()
	var refused *engine.AttachError
	if !errors.As(err, &refused) || refused.Why != why || refused.By != by {
		t.Errorf("%v: %+v, want %v by %q", err, refused, why, by)
	}
}

// Detach ends renewal, and sends nothing: the hold lasts to its end and no longer.
func TestDetachedHoldEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		sleep(7 * time.Second) // renewed after 5
		until := lease.Until()
		left := time.Now()
		a.detaches(lease)
		if !errors.Is(context.Cause(lease.Context()), context.Canceled) || !errors.Is(lease.Err(), engine.ErrNotHeld) {
			t.Errorf("the context ended by %v, Err is %v", context.Cause(lease.Context()), lease.Err())
		}
		if err := lease.Release(); !errors.Is(err, engine.ErrNotHeld) {
			t.Errorf("Release: %v", err)
		}
		if err := lease.Check(t.Context()); !errors.Is(err, engine.ErrNotHeld) {
			t.Errorf("Check: %v", err)
		}
		sleep(time.Until(until))
		if b.free() {
			t.Error("free before its end")
		}
		sleep(margin(15*time.Second) + time.Millisecond)
		if !b.free() {
			t.Error("held after its end")
		}
		if n := len(a.since(left, "")); n > 0 {
			t.Errorf("%d requests after Detach", n)
		}
	})
}

// Trust in an attached hold counts from the sending of the renewal, and goes on by further ones.
func TestAttachTrustsFromItsSending(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const ttl = 15 * time.Second
		a, b := newHost(t, server), newHost(t, server)
		d := a.detaches(a.holds(engine.Options{}))
		sleep(10 * time.Second)
		b.goes(way{there: 100 * time.Millisecond, back: 700 * time.Millisecond})
		sent := time.Now()
		lease := b.attaches(d)
		if got, want := lease.Until(), sent.Add(ttl-margin(ttl)); !got.Equal(want) {
			t.Errorf("trusted until %v after the sending, want %v", got.Sub(sent), want.Sub(sent))
		}
		b.goes(way{})
		sleep(time.Hour)
		if err := lease.Err(); err != nil {
			t.Error(err)
		}
		b.goes(silent)
		silentSince := time.Now()
		if at := lost(t, lease, engine.Expired); at.Sub(silentSince) > ttl {
			t.Errorf("lost after %v", at.Sub(silentSince))
		}
	})
}

// No answer changes nothing: the ticket is good for another try.
func TestAttachWithoutAnswer(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		d := a.detaches(a.holds(engine.Options{}))
		for name, bad := range map[string]way{"silent": silent, "answers are lost": {noAnswers: true}} {
			b.goes(bad)
			began := time.Now()
			_, err := b.Attach(t.Context(), d)
			var failure *protocol.Failure
			if !errors.As(err, &failure) || !failure.Unknown {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("%s: it took %v", name, took)
			}
			b.goes(way{})
		}
		left := time.Now().Add(1)
		sleep(time.Second)
		if n := len(b.since(left, "")); n > 0 {
			t.Errorf("%d requests after an Attach that failed", n)
		}
		b.releases(b.attaches(d))
	})
}

// The next goroutine of the pool asks for itself, and is in once the hold has ended.
func TestDetachPromotesTheNextWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease, err := a.mutex(engine.Options{}).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := a.waits(t.Context(), engine.Options{})
		sleep(1)
		asked := time.Now()
		d := a.detaches(lease)
		synctest.Wait()
		if n := len(a.since(asked, "ask")); n == 0 || !next.out() {
			t.Errorf("%d asks after Detach", n)
		}
		a.releases(a.attaches(d))
		a.releases(next.in())
	})
}

func TestDetachAndAttachRefused(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHost(t, server), newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{})
		entered, err := a.mutex(engine.Options{}).Acquire(lease.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Detach(); !errors.Is(err, engine.ErrShared) || lease.Err() != nil || entered.Err() != nil {
			t.Errorf("entered: %v, then %v and %v", err, lease.Err(), entered.Err())
		}
		a.releases(lease)
		d := a.detaches(entered) // the last entry
		over, cancel := context.WithCancel(t.Context())
		cancel()
		var ended *engine.WaitEnded
		if _, err := b.Attach(over, d); !errors.As(err, &ended) {
			t.Errorf("ctx is over: %v", err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if _, err := c.Attach(t.Context(), d); !errors.Is(err, errClosed) {
			t.Errorf("closed: %v", err)
		}
		other := d
		other.Origin = "n3123:pchannel"
		if _, err := b.Attach(t.Context(), other); !errors.Is(err, protocol.ErrOrigin) {
			t.Errorf("of another protocol: %v", err)
		}
		again := b.attaches(d)
		b.goes(silent)
		lost(t, again, engine.Expired)
		var cause *loss
		if _, err := again.Detach(); !errors.As(err, &cause) {
			t.Errorf("lost: %v", err)
		}
		b.goes(way{})
		sleep(time.Minute)
		closed := b.holds(engine.Options{})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if _, err := closed.Detach(); !errors.Is(err, errClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// A ticket whose max hold is over is not renewed.
func TestAttachAfterMaxHold(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const most = 10 * time.Second
		a, b := newHost(t, server), newHost(t, server)
		d := a.detaches(a.holds(engine.Options{TTL: most, MaxHold: most}))
		sleep(most - 10*time.Millisecond)
		sent := time.Now()
		_, err := b.Attach(t.Context(), d)
		cannot(t, err, engine.Gone, "")
		if n := len(b.since(sent, "renew")); n > 0 {
			t.Errorf("%d renewals", n)
		}
	})
}

// rw is the lock that readers and writers contend for.
func (h *host) rw(shared bool) *engine.Lock {
	return h.Lock(protocol.Spec{Name: "rw", Kind: protocol.ReadWrite, Shared: shared},
		engine.Options{TTL: 15 * time.Second})
}

func (h *host) takes(l *engine.Lock) *engine.Lease {
	h.t.Helper()
	lease, err := l.Try(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	return lease
}

// Close while an Attach is under way: nothing is attached, and the hold is left alone.
func TestAttachClosedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b, c := newHost(t, server), newHost(t, server), newHost(t, server)
		d := a.detaches(a.holds(engine.Options{}))
		b.goes(way{back: 500 * time.Millisecond})
		done := make(chan error, 1)
		go func() {
			_, err := b.Attach(t.Context(), d)
			done <- err
		}()
		sleep(100 * time.Millisecond)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, errClosed) {
			t.Errorf("got %v", err)
		}
		c.releases(c.attaches(d))
	})
}

// An attached hold is never passed on inside the process: two users of a ticket would draw the same
// tokens from its block.
func TestAttachedHoldIsNotPassedOn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		outer := a.holds(engine.Options{})
		w1, w2 := b.waits(ctx, engine.Options{}), b.waits(ctx, engine.Options{})
		a.releases(outer)
		first := w1.in() // its grant has a block of tokens, as another goroutine waits
		d := b.detaches(first)
		here, there := b.attaches(d), a.attaches(d)
		if !w2.out() {
			t.Fatal("the waiter has the detached hold")
		}
		b.releases(here)
		second := w2.in()
		if second.Token() <= first.Token() || second.Owner() == first.Owner() {
			t.Errorf("tokens %d and then %d, owners %q and %q", first.Token(), second.Token(), first.Owner(),
				second.Owner())
		}
		lost(t, there, engine.Gone)
		b.releases(second)
	})
}

// Readers that share a hold keep it. A reader alone may leave with it, and later readers of the
// process do not join it.
func TestDetachReaders(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		one, err := a.rw(true).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		two := a.takes(a.rw(true)) // joins
		if one.Token() != two.Token() {
			t.Fatal("they do not share a hold")
		}
		if _, err := one.Detach(); !errors.Is(err, engine.ErrShared) || one.Err() != nil || two.Err() != nil {
			t.Errorf("%v, then %v and %v", err, one.Err(), two.Err())
		}
		a.releases(one)
		d := a.detaches(two)
		three := a.takes(a.rw(true))
		if three.Token() == two.Token() {
			t.Error("a reader joined a hold that had left")
		}
		again := b.attaches(d)
		if four := b.takes(b.rw(true)); four.Token() == again.Token() {
			t.Error("a reader joined an attached hold")
		} else {
			b.releases(four)
		}
		a.releases(three)
		if _, err := a.rw(false).Try(t.Context()); err == nil {
			t.Error("a writer is in beside the attached reader")
		}
		b.releases(again)
		a.releases(a.takes(a.rw(false)))
	})
}

// Detach waits until an ask whose connection broke can arrive no more. Otherwise that ask would win
// the hold again after its release, for nobody.
func TestDetachWaitsForALateAsk(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		l := a.mutex(engine.Options{Strict: true})
		a.lead(func(_ context.Context, r protocol.Resource, ask protocol.Ask) (protocol.Answer, error) {
			a.lead(nil) // for the next ask
			time.AfterFunc(900*time.Millisecond, func() { _, _ = r.Ask(context.Background(), ask) })
			return protocol.Answer{}, &protocol.Failure{Op: "ask", Reason: protocol.Unreachable, Unknown: true,
				Err: errors.New("broken")}
		})
		asked := time.Now()
		lease, err := l.Acquire(t.Context())
		if err != nil || time.Since(asked) > 500*time.Millisecond {
			t.Fatalf("%v after %v", err, time.Since(asked))
		}
		b.releases(b.attaches(a.detaches(lease)))
		sleep(2 * time.Second)
		nothingLeft(t, server)
	})
}

// A hold without renewal that was prolonged all the same takes the longer time along, from process
// to process.
func TestDetachFixedProlonged(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const ttl, drift = 30 * time.Second, time.Second
		a, b := newHost(t, server), newHost(t, server)
		granted := time.Now()
		lease := a.holds(engine.Options{TTL: ttl, Fixed: true})
		var end time.Time
		for range 3 {
			<-time.After(20 * time.Second)
			a.extends(lease)
			end = time.Now().Add(ttl - margin(ttl))
			<-time.After(5 * time.Second)
			for range 2 {
				d := a.detaches(lease)
				a, b = b, a
				lease = a.attaches(d)
				if until := lease.Until(); until.After(end) || until.Before(end.Add(-drift)) {
					t.Errorf("after %v trusted until %v, want some %v", time.Since(granted), until.Sub(granted),
						end.Sub(granted))
				}
				end = lease.Until()
			}
		}
		a.releases(lease)
	})
}
