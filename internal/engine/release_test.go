package engine_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Trap 11: a release that has no answer is sent again. It is done if the hold is there. If the hold
// is gone, nobody knows whether the first request removed it, or whether it had been ended before
// and another held it: that is neither done nor lost, for Close as well.
func TestLeaseReleaseWithoutAnswerIsSentAgain(t *testing.T) {
	type row struct {
		way     way  // of the first request
		broken  bool // before it, by force, and another holds
		close   bool // it is Close that gives back
		certain bool
	}
	bubbles(t, map[string]row{
		"the request is lost":                {way: silent, certain: true},
		"the answer is lost":                 {way: way{noAnswers: true}},
		"the answer of Close is lost":        {way: way{noAnswers: true}, close: true},
		"it was broken before, and held":     {way: way{noAnswers: true}, broken: true},
		"broken, and the request is lost":    {way: silent, broken: true},
		"broken, and Close's answer is lost": {way: way{noAnswers: true}, broken: true, close: true},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b := newHost(t, server), newHost(t, server)
		lease := a.lock(engine.Options{})
		if test.broken {
			b.breakHold(protocol.Mutex, lease.Token(), true)
			b.lock(engine.Options{})
		}
		a.setWay(test.way)
		go func() {
			<-time.After(500 * time.Millisecond)
			a.setWay(way{})
		}()
		release := lease.Release
		if test.close {
			release = a.Close
		}
		err := release()
		var uncertain *engine.UncertainError
		if test.certain && err != nil || !test.certain &&
			(!errors.As(err, &uncertain) || !errors.Is(err, engine.ErrGoneLater)) {
			t.Errorf("got %v", err)
		}
		if n := len(a.requests(time.Time{}, "free")); n != 2 {
			t.Errorf("%d requests gave it back", n)
		}
		if names := server.Names("test"); !test.broken && len(names) > 0 {
			t.Errorf("%q are held", names)
		}
	})
}

// A release without an answer is uncertain after ReleaseTimeout, or when trust ends if that is
// sooner. It is followed up: the name is free long before the TTL is over.
func TestLeaseReleaseUncertainIsFollowedUp(t *testing.T) {
	type row struct{ ttl, silent, held, takes time.Duration }
	bubbles(t, map[string]row{
		"ReleaseTimeout":      {time.Minute, 0, 0, releaseTimeout},
		"trust":               {time.Second, 0, 0, time.Second - margin(time.Second)},
		"a renewal under way": {15 * time.Second, 4 * time.Second, 5500 * time.Millisecond, releaseTimeout},
		"much of trust gone":  {15 * time.Second, time.Second, 14 * time.Second, time.Second - margin(15*time.Second)},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		lease := a.lock(engine.Options{TTL: test.ttl})
		sleep(test.silent)
		a.setWay(silent)
		sleep(test.held - test.silent)
		began := time.Now()
		var uncertain *engine.UncertainError
		if err := lease.Release(); !errors.As(err, &uncertain) || time.Since(began) != test.takes {
			t.Errorf("%v after %v, want after %v", err, time.Since(began), test.takes)
		}
		a.setWay(way{})
		sleep(3 * time.Second)
		nothingLeft(t, server)
	})
}

// A lease that was lost is given back once its holder releases it. The next contender need not wait
// until the server misses it. A min hold is kept all the same.
func TestLeaseReleasedAfterLossLetsNextIn(t *testing.T) {
	const ttl, most, least = 3 * time.Second, time.Minute, 4 * time.Second
	type row struct {
		options  engine.Options
		why      engine.Why
		released time.Duration // after the grant, if not at the loss
		next     time.Duration // when the next gets in
	}
	bubbles(t, map[string]row{
		"max hold": {engine.Options{MaxHold: most}, engine.MaxHold, 0, most - margin(most)},
		"fixed":    {engine.Options{Fixed: true}, engine.Expired, 0, ttl - margin(ttl)},
		"fixed, min hold": {engine.Options{Fixed: true, MinHold: least}, engine.Expired, 3500 * time.Millisecond,
			least},
		"max hold, min hold": {engine.Options{MaxHold: most, MinHold: most}, engine.MaxHold, 0, most},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, b := newHost(t, server), newHost(t, server)
		test.options.TTL = ttl
		granted := time.Now()
		lease := a.lock(test.options)
		next := b.startLock(t.Context(), engine.Options{})
		awaitLoss(t, lease, test.why)
		sleep(test.released - time.Since(granted))
		var cause *loss
		if err := lease.Release(); !errors.As(err, &cause) {
			t.Errorf("got %v", err)
		}
		if next.await(); next.at.Sub(granted) < test.next || next.at.Sub(granted) > test.next+2*time.Millisecond {
			t.Errorf("the next got in after %v, want %v", next.at.Sub(granted), test.next)
		}
	})
}
