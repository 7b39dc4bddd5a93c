package clock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Rule 6 and trap 15: an idle holder costs its renewals, an idle client nothing.
func TestClientIdleCostsRenewalsAlone(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		holder, waiter, unused := s.actor("holder"), s.actor("waiter"), s.actor("unused")
		for i := range 50 {
			s.lock(holder, fmt.Sprint(i))
		}
		lease := s.lock(holder, "n", holdfast.WithTTL(time.Second))
		g := s.startLock(waiter, "n", holdfast.WithTTL(time.Second))
		sleep(100 * time.Millisecond)
		s.release(lease)
		s.release(s.await(g).lease)
		sleep(6 * time.Second) // the first renewal, with which the client learns what the server is
		since := time.Now()
		sleep(15 * time.Second) // a subscription that nobody needs lingers
		quiet := time.Now()
		sleepUntil(since.Add(time.Hour))
		renewals, all := s.commands(holder, since, "renew"), s.commands(holder, since)
		if len(renewals) != 720 || len(all) != 720 {
			t.Errorf("%d commands of an idle holder in an hour, %d renewals, want 720", len(all), len(renewals))
		}
		if sent := s.commands(waiter, quiet); len(sent) != 0 {
			t.Errorf("%d commands of an idle client, the first %s", len(sent), sent[0].op)
		}
		if sent := s.commands(unused, time.Time{}); len(sent) != 0 {
			t.Errorf("%d commands of an unused client", len(sent))
		}
		if n := len(s.rdb.PubSubChannels(t.Context(), "*").Val()); n != 0 {
			t.Errorf("%d channels are still subscribed", n)
		}
	})
}

// Trap 40: where tokens are ahead of the server's clock, a leader is observed once and costs what
// it always costs, and since when it leads does not change while it does.
func TestElectionTokenAheadIsObservedOnce(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Second, time.Hour} {
		play(t, func(t *testing.T, s *scene) {
			a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
			s.clock.Ahead(ahead)
			s.release(s.lock(a, "n"))
			s.clock.Ahead(0)
			lease, began := s.take(a.Election("n").Campaign), time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			leader, err := c.Election("n").Leader(ctx)
			if err != nil || leader.Owner != lease.Owner() {
				t.Errorf("%+v leads, not %s: %v", leader, lease.Owner(), err)
			}
			told := 0
			for seen, err := range b.Election("n").Observe(ctx) {
				switch {
				case errors.Is(err, context.DeadlineExceeded):
				case err != nil, seen != leader:
					t.Errorf("ahead by %v: saw %+v, %v, want %+v", ahead, seen, err, leader)
				default:
					told++
				}
				<-time.After(time.Millisecond) // else a loop on a clock that stands still would hide
			}
			// It may ask once a second: no more than for a leader whose token is not ahead.
			if asks := len(s.commands(b, began)); told != 1 || asks > 60 {
				t.Errorf("ahead by %v: told %d times, with %d commands in a minute", ahead, told, asks)
			}
			s.release(lease)
		})
	}
}
