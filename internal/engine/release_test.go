package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A lease that was released is not held, and a second release sends nothing.
func TestLeaseReleasedTwiceIsNotHeld(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.holds(engine.Options{})
		a.releases(lease)
		if err := lease.Release(); !errors.Is(err, engine.ErrNotHeld) || !errors.Is(lease.Err(), engine.ErrNotHeld) {
			t.Errorf("got %v and %v", err, lease.Err())
		}
		if n := len(a.since(time.Time{}, "free")); n != 1 {
			t.Errorf("%d requests gave it back", n)
		}
	})
}

// Trap 11: a release whose answer is lost is sent again, and is known to have worked.
func TestLeaseReleaseAnswerLostIsSentAgain(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.holds(engine.Options{})
		a.goes(way{noAnswers: true})
		go func() {
			<-time.After(500 * time.Millisecond)
			a.goes(way{})
		}()
		a.releases(lease)
		if n := len(a.since(time.Time{}, "free")); n != 2 {
			t.Errorf("%d requests gave it back", n)
		}
		if names := server.Names("test"); len(names) > 0 {
			t.Errorf("%q are held", names)
		}
	})
}

// A release without an answer is uncertain after ReleaseTimeout, or when trust ends if that is
// sooner. It is followed up: the name is free long before the TTL is over.
func TestLeaseReleaseUncertainIsFollowedUp(t *testing.T) {
	for name, test := range map[string]struct{ ttl, takes time.Duration }{
		"ReleaseTimeout": {time.Minute, releaseTimeout},
		"trust":          {time.Second, time.Second - margin(time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, server *memory.Server) {
				a := newHost(t, server)
				lease := a.holds(engine.Options{TTL: test.ttl})
				a.goes(silent)
				began := time.Now()
				var uncertain *engine.Uncertain
				if err := lease.Release(); !errors.As(err, &uncertain) || time.Since(began) != test.takes {
					t.Errorf("%v after %v, want after %v", err, time.Since(began), test.takes)
				}
				a.goes(way{})
				sleep(3 * time.Second)
				if names := server.Names("test"); len(names) > 0 {
					t.Errorf("%q are held", names)
				}
			})
		})
	}
}

// A lease that was lost is given back once its holder releases it. The next contender need not wait
// until the server misses it.
func TestLeaseReleasedAfterLossLetsNextIn(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const most = 20 * time.Second
		a, b := newHost(t, server), newHost(t, server)
		lease := a.holds(engine.Options{MaxHold: most})
		next := b.waits(t.Context(), engine.Options{})
		lost(t, lease, engine.MaxHold)
		at := time.Now()
		var cause *loss
		if err := lease.Release(); !errors.As(err, &cause) {
			t.Errorf("got %v", err)
		}
		if next.in(); next.at.Sub(at) > 0 {
			t.Errorf("the next got in after %v", next.at.Sub(at))
		}
	})
}
