package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Waiting ends when its context does, to the nanosecond, whatever the network does (traps 20, 22).
func TestMutexWaitEndsWithContext(t *testing.T) {
	bubbles(t, map[string]way{"all is well": {}, "silent": silent, "slow": {there: 900 * time.Millisecond}},
		func(t *testing.T, server *memory.Server, w way) {
			a, b := newHost(t, server), newHost(t, server)
			lease := a.lock(engine.Options{})
			b.setWay(w)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 1234567891)
			defer cancel()
			next := b.startLock(ctx, engine.Options{})
			var ended *engine.WaitFailure
			if <-next.done; !errors.As(next.err, &ended) || !errors.Is(next.err, context.DeadlineExceeded) ||
				next.at.Sub(began) != 1234567891 {
				t.Errorf("ended after %v: %v", next.at.Sub(began), next.err)
			}
			b.setWay(way{})
			a.release(lease)
			sleep(5 * time.Second)
			nothingLeft(t, server)
		})
}

// Trap 10: an ask whose answer is lost is sent again, and finds its own hold.
func TestMutexLockAnswerLostFindsItsHold(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		a.setWay(way{noAnswers: true})
		next := a.startLock(t.Context(), engine.Options{})
		sleep(500 * time.Millisecond)
		a.setWay(way{})
		lease := next.await()
		asks := a.requests(time.Time{}, "ask")
		if len(asks) != 2 || !lease.Until().Equal(asks[1].at.Add(15*time.Second-margin(15*time.Second))) {
			t.Errorf("asked %v, trusted until %v", asks, lease.Until())
		}
		a.release(lease)
		nothingLeft(t, server)
	})
}

// Traps 10 and 12: a caller that gives up after a lost answer leaves nothing behind.
func TestMutexLockGivenUpLeavesNothing(t *testing.T) {
	bubbles(t, map[string]way{"answers are lost": {noAnswers: true},
		"requests are late": {there: 950 * time.Millisecond}}, func(t *testing.T, server *memory.Server, w way) {
		a := newHost(t, server)
		a.setWay(w)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if next := a.startLock(ctx, engine.Options{TTL: time.Minute}); next.isWaiting() {
			<-next.done
		}
		a.setWay(way{})
		sleep(5 * time.Second)
		nothingLeft(t, server)
	})
}

// A waiter's sign of life is one ask every 5 s, +-20 %.
func TestWaiterSignOfLifeIsOneAsk(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{TTL: 10 * time.Minute})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second) // it asks again once it listens
		before := time.Now()
		sleep(time.Minute)
		asks := b.requests(before, "")
		if len(asks) < 10 || len(asks) > 15 {
			t.Errorf("%d requests in a minute", len(asks))
		}
		for i := range asks[1:] {
			if pause := asks[i+1].at.Sub(asks[i].at); asks[i].op != "ask" || pause < askEvery*4/5 ||
				pause > askEvery*6/5 {
				t.Errorf("%v after a pause of %v", asks[i+1].op, pause)
			}
		}
		a.release(lease)
		b.release(next.await())
	})
}

// Trap 17: after a gap in the messages a waiter asks at once.
func TestWaiterGapAsksAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		next := b.startLock(t.Context(), engine.Options{})
		sleep(time.Second)
		b.setWay(way{noMessages: true})
		a.release(lease)
		sleep(100 * time.Millisecond)
		if !next.isWaiting() {
			t.Fatal("in without a message")
		}
		at := time.Now()
		b.Gap()
		if next.await(); !next.at.Equal(at) {
			t.Errorf("in %v after the gap", next.at.Sub(at))
		}
	})
}

// Trap 18: waiters that show no life are passed over, a claim for each of them, and the next one
// gets in.
func TestWaiterSilentIsPassedOver(t *testing.T) {
	for _, n := range []int{1, 5} {
		runBubble(t, fmt.Sprint(n), func(t *testing.T, server *memory.Server) {
			a, c := newHost(t, server), newHost(t, server)
			lease := a.lock(engine.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			var heads []*host
			for range n {
				heads = append(heads, newHost(t, server))
				heads[len(heads)-1].startLock(ctx, engine.Options{})
			}
			next := c.startLock(t.Context(), engine.Options{})
			sleep(time.Second)
			for _, head := range heads {
				head.setWay(silent)
			}
			a.release(lease)
			released := time.Now()
			held := next.await()
			const place = 20 * time.Millisecond // later, for each place in the queue
			most := askEvery*6/5 + time.Duration(n)*(claim+time.Duration(n)*place)
			if took := next.at.Sub(released); took < claim || took > most {
				t.Errorf("the next got in after %v, want %v to %v", took, claim, most)
			}
			cancel()
			c.release(held)
		})
	}
}

// Polling asks every interval, so many times, and tells who holds.
func TestMutexPollingAsksEveryInterval(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a, b := newHost(t, server), newHost(t, server)
		a.lock(engine.Options{})
		began := time.Now()
		next := b.startLock(t.Context(), engine.Options{Interval: 70 * time.Millisecond, Attempts: 4})
		var busy *engine.BusyError
		if <-next.done; !errors.As(next.err, &busy) || busy.Answer.Holders != 1 {
			t.Errorf("got %v", next.err)
		}
		asks := b.requests(began, "")
		for i, ask := range asks {
			if ask.op != "ask" || ask.at.Sub(began) != time.Duration(i)*70*time.Millisecond {
				t.Errorf("%s after %v", ask.op, ask.at.Sub(began))
			}
		}
		if len(asks) != 4 {
			t.Errorf("%d requests", len(asks))
		}
	})
}
