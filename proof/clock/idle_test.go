package clock_test

import (
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
