package clock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Trap 18: a waiter that died is skipped. After three missed asks, 18 s, it has no place any more.
func TestQueueDeadWaiterIsSkipped(t *testing.T) {
	for name, test := range map[string]struct {
		die   func(b *actor)
		after time.Duration // of its death: the release
		max   time.Duration // until the next got in
	}{
		"silent, within its life":        {func(b *actor) { b.silence() }, 10 * time.Second, claimTime + slowAsk},
		"silent, after its life":         {func(b *actor) { b.silence() }, 20 * time.Second, 0},
		"requests lost, after its life":  {func(b *actor) { b.silence(there) }, 20 * time.Second, 0},
		"killed, within its life":        {func(b *actor) { b.kill() }, time.Second, 0},
		"killed, after its life":         {func(b *actor) { b.kill() }, 20 * time.Second, 0},
		"silent, after ten times it all": {func(b *actor) { b.silence() }, 200 * time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
				lease := s.lock(a, "n")
				s.wait(b, "n")
				second := s.wait(c, "n")
				pass(time.Second)
				test.die(b)
				pass(test.after)
				s.release(lease)
				released := time.Now()
				g := s.take(second)
				if took := g.at.Sub(released); g.err != nil || took > test.max {
					t.Errorf("the next got in after %v, %v", took, g.err)
				}
				pass(20 * time.Second)
				s.release(g.lease)
				pass(7 * time.Second)
				if n := s.rdb.Exists(t.Context(), key("n")).Val(); n != 0 {
					t.Errorf("the dead one is still there: %v", s.rdb.ZRange(t.Context(), key("n"), 0, -1).Val())
				}
			})
		})
	}
}

// Trap 17: one whose subscription broke asks as soon as it is there again.
func TestWaiterAsksAfterSubscriptionGap(t *testing.T) {
	for name, away := range map[string]time.Duration{"short": 0, "long": time.Second} { // so that it does not ask by itself sooner
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
				waiter := s.wait(b, "n", holdfast.WithTTL(time.Minute))
				pass(time.Second)
				b.kill()
				s.release(lease)
				pass(away)
				b.resume()
				back := time.Now()
				if g := s.take(waiter); g.err != nil || g.at.Sub(back) > 3*time.Second/2 {
					t.Errorf("got in %v after it was back, %v", g.at.Sub(back), g.err)
				}
			})
		})
	}
	t.Run("others are told", func(t *testing.T) {
		play(t, func(t *testing.T, s *scene) {
			a, b := s.actor("a"), s.actor("b")
			for i := range 10 {
				s.lock(a, fmt.Sprint(i))
				s.wait(b, fmt.Sprint(i))
			}
			pass(3 * time.Second)
			cut := time.Now()
			b.cut()
			pass(100 * time.Millisecond)
			if asks := len(s.seen(b, cut, "ask")); asks < 10 {
				t.Errorf("%d of 10 asked after the gap", asks)
			}
		})
	})
}

// Waiting does not cure a permission that was taken away: who waits is told at its next request.
// Being out of memory may pass.
func TestWaiterPermissionTakenAwayIsTold(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		ends bool
	}{
		"no permission": {"NOPERM this user has no permissions to run the 'evalsha' command", true},
		"out of memory": {"OOM command not allowed when used memory > 'maxmemory'.", false},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
				waiter := s.wait(b, "n")
				pass(time.Second)
				s.refuse(b, test.line)
				pass(8 * time.Second)
				select {
				case g := <-waiter:
					var failure *holdfast.StoreError
					if !test.ends || !errors.As(g.err, &failure) || failure.Kind != holdfast.StoreDenied {
						t.Errorf("waiting ended: %v", g.err)
					}
					s.refuse(b, "")
					s.release(lease)
					return
				default:
					if test.ends {
						t.Error("it still waits")
					}
				}
				s.refuse(b, "")
				s.release(lease)
				if g := s.take(waiter); g.err != nil {
					t.Error(g.err)
				}
			})
		})
	}
}

// A caller whose wait is over in vain is not told who held when he last asked, if nobody answers
// any more: one more request goes out in time.
func TestWaiterServerGoneSaysUnavailable(t *testing.T) {
	for name, silent := range map[string]bool{"silent": true, "it answers": false} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease := s.lock(a, "n", holdfast.WithTTL(time.Minute))
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				done := make(chan error, 1)
				go func() { _, err := b.Mutex("n").Lock(ctx); done <- err }()
				pass(500 * time.Millisecond)
				if silent {
					b.silence()
				}
				var ended *holdfast.WaitError
				err := <-done
				if !errors.As(err, &ended) || errors.Is(err, holdfast.ErrUnavailable) != silent || time.Since(began) != 4*time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				if n := len(s.seen(b, began.Add(500*time.Millisecond), "ask")); !silent && n != 1 {
					t.Errorf("it asked %d times more", n)
				}
				s.release(lease)
			})
		})
	}
}
