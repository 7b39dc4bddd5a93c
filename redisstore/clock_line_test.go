package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Trap 18: a waiter that died is skipped. After three missed asks, 18 s, it has no place any more.
func TestClockDeadWaiter(t *testing.T) {
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

// A waiter's sign of life: it asks every 5 s, +-20 %, and nothing else; its process says on its subscription that it lives.
func TestClockSignOfLife(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b := s.actor("a"), s.actor("b")
		s.lock(a, "n")
		s.wait(b, "n")
		pass(time.Second)
		since := time.Now()
		pass(time.Hour)
		asks := s.seen(b, since, "ask")
		if n := len(asks); n < 690 || n > 750 {
			t.Errorf("%d asks in an hour, want about 720", n)
		}
		short, long := time.Hour, time.Duration(0)
		for i := 1; i < len(asks); i++ {
			d := asks[i].at.Sub(asks[i-1].at)
			short, long = min(short, d), max(long, d)
		}
		if short < 4*time.Second || long > slowAsk || short > 4100*time.Millisecond || long < 5900*time.Millisecond {
			t.Errorf("asked every %v to %v, want 4 s to 6 s", short, long)
		}
		pings, all := len(s.seen(b, since, "PING")), len(s.seen(b, since))
		if pings > 720 || all != pings+len(asks) {
			t.Errorf("%d commands, %d of them pings of the subscription", all, pings)
		}
	})
}

// Rule 6: an idle holder costs its renewals, an idle client nothing.
func TestClockIdle(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		holder, waiter, unused := s.actor("holder"), s.actor("waiter"), s.actor("unused")
		for i := range 50 {
			s.lock(holder, fmt.Sprint(i))
		}
		lease := s.lock(holder, "n", holdfast.WithTTL(time.Second))
		g := s.wait(waiter, "n", holdfast.WithTTL(time.Second))
		pass(100 * time.Millisecond)
		s.release(lease)
		s.release(s.take(g).lease)
		pass(6 * time.Second) // the first renewal, with which the client learns what the server is
		since := time.Now()
		pass(15 * time.Second) // a subscription that nobody needs lingers
		quiet := time.Now()
		until(since.Add(time.Hour))
		renewals, all := s.seen(holder, since, "renew"), s.seen(holder, since)
		if len(renewals) != 720 || len(all) != 720 {
			t.Errorf("%d commands of an idle holder in an hour, %d renewals, want 720", len(all), len(renewals))
		}
		if sent := s.seen(waiter, quiet); len(sent) != 0 {
			t.Errorf("%d commands of an idle client, the first %s", len(sent), sent[0].op)
		}
		if sent := s.seen(unused, time.Time{}); len(sent) != 0 {
			t.Errorf("%d commands of an unused client", len(sent))
		}
		if n := len(s.rdb.PubSubChannels(t.Context(), "*").Val()); n != 0 {
			t.Errorf("%d channels are still subscribed", n)
		}
	})
}

// Trap 17: one whose subscription broke asks as soon as it is there again.
func TestClockSubscriptionGap(t *testing.T) {
	for name, away := range map[string]time.Duration{"short": 0, "long": 3 * time.Second} {
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

// A holder that crashes is replaced within its TTL and 200 ms.
func TestClockHolderCrash(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, time.Second, 15 * time.Second, 5 * time.Minute} {
		for name, crash := range map[string]func(*actor){"silent": func(a *actor) { a.silence() }, "killed": func(a *actor) { a.kill() }} {
			for _, waiters := range []int{1, 3} {
				for at, after := range map[string]time.Duration{"at once": 0, "later": ttl * 7 / 3, "before a renewal": ttl/3*4 - 1} {
					t.Run(fmt.Sprintf("%v/%s/%s/%d", ttl, name, at, waiters), func(t *testing.T) {
						play(t, func(t *testing.T, s *scene) {
							a := s.actor("a")
							s.lock(a, "n", holdfast.WithTTL(ttl))
							line := make([]<-chan got, waiters)
							for i := range line {
								line[i] = s.wait(s.actor(fmt.Sprint(i)), "n", holdfast.WithTTL(ttl))
							}
							pass(after)
							crash(a)
							crashed := time.Now()
							for i := range line {
								g := s.take(line[i])
								if took := g.at.Sub(crashed); g.err != nil || i == 0 && took > ttl+200*time.Millisecond {
									t.Errorf("%d got in after %v, %v", i, took, g.err)
								}
								s.release(g.lease)
							}
						})
					})
				}
			}
		}
	}
}
