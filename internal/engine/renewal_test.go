package engine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A lease is renewed every third of its TTL, all leases of a client together.
func TestLeaseRenewedEveryThirdOfTTL(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const leases = 50
		a := newHost(t, server)
		began := time.Now()
		for i := range leases {
			spec := protocol.Spec{Name: fmt.Sprint(i), Kind: protocol.Mutex}
			if _, err := a.NewLock(spec, engine.Options{TTL: 15 * time.Second}).Try(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		sleep(time.Minute)
		renewals := a.requests(began, "renew")
		if len(renewals) != 12 {
			t.Errorf("%d renewals in a minute, want 12", len(renewals))
		}
		for i, r := range renewals {
			if r.size != leases || r.at.Sub(began) != time.Duration(i+1)*5*time.Second {
				t.Errorf("after %v, of %d leases", r.at.Sub(began), r.size)
			}
		}
	})
}

// Trap 7: renewals that fail for a while do not end renewal, as long as trust lasts.
func TestLeaseRenewalFailsForAWhileGoesOn(t *testing.T) {
	bubbles(t, map[string]way{"silent": silent, "answers are lost": {noAnswers: true}},
		func(t *testing.T, server *memory.Server, bad way) {
			a := newHost(t, server)
			lease := a.lock(engine.Options{})
			a.setWay(bad)
			sleep(12 * time.Second)
			a.setWay(way{})
			sleep(time.Minute)
			if err := lease.Err(); err != nil {
				t.Error(err)
			}
			if left := time.Until(lease.Until()); left < 9*time.Second {
				t.Errorf("trusted for %v", left)
			}
			a.release(lease)
		})
}

// Trap 8: a release waits for the renewal under way, and a renewal that arrives after the release
// makes no hold.
func TestLeaseLateRenewalRevivesNothing(t *testing.T) {
	bubbles(t, map[string]time.Duration{"before the release": 500 * time.Millisecond,
		"after its time": 3 * time.Second}, func(t *testing.T, server *memory.Server, after time.Duration) {
		a := newHost(t, server)
		lease := a.lock(engine.Options{})
		sleep(4 * time.Second)
		a.setWay(way{there: after})
		sleep(time.Second + 100*time.Millisecond)
		a.setWay(way{})
		a.release(lease)
		released := time.Now()
		sleep(30 * time.Second)
		if n := len(a.requests(released.Add(1), "")); n > 0 {
			t.Errorf("%d requests after the release", n)
		}
		nothingLeft(t, server)
	})
}

// An idle process sends nothing.
func TestEngineIdleSendsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		a.release(a.lock(engine.Options{}))
		idle := time.Now().Add(1)
		sleep(time.Hour)
		if n := len(a.requests(idle, "")); n > 0 {
			t.Errorf("%d requests in an idle hour", n)
		}
	})
}
