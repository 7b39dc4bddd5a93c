package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A waiter's sign of life: it asks every 5 s, +-20 %, and nothing else; its process says on its
// subscription that it lives.
func TestWaiterSignOfLifeIsOneAsk(t *testing.T) {
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
		signs, all := len(s.seen(b, since, "SUBSCRIBE")), len(s.seen(b, since))
		if signs > 720 || all != signs+len(asks) {
			t.Errorf("%d commands, %d of them signs of life of the subscription", all, signs)
		}
	})
}

// Rule 6: an idle holder costs its renewals, an idle client nothing.
func TestClientIdleCostsRenewalsAlone(t *testing.T) {
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
