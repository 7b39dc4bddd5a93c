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
