package engine_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A holder behind whom goroutines of its own process wait is told as they would be: at once by
// message, also where the message is lost with a connection, and of what happened before they
// listened. They ask anew, and are in after the release.
func TestBreakReachesHolderWithLocalWaiters(t *testing.T) {
	const soon = 300 * time.Millisecond // within which a process listens behind its own hold
	type row struct {
		waited time.Duration // before the break
		way    way
		gap    bool
		most   time.Duration
	}
	bubbles(t, map[string]row{
		"they waited long":        {waited: 3 * time.Second},
		"they have just come":     {most: soon},
		"the connection was lost": {waited: 3 * time.Second, way: way{noMessages: true}, gap: true},
		"asked as the message arrives": {waited: 300 * time.Millisecond, way: way{back: 100 * time.Millisecond},
			most: soon},
	}, func(t *testing.T, server *memory.Server, test row) {
		a, op := newHost(t, server), newHost(t, server)
		lease := a.startLock(t.Context(), engine.Options{}).await()
		next := a.startLock(t.Context(), engine.Options{})
		a.setWay(test.way)
		sleep(test.waited)
		began := time.Now()
		op.breakHold(protocol.Mutex, lease.Token(), false)
		if test.gap {
			a.setWay(way{})
			a.Gap()
		}
		if told := awaitBreak(t, lease).Sub(began); told > test.most {
			t.Errorf("told after %v", told)
		}
		if !next.isWaiting() {
			t.Fatal("the next got in before the release")
		}
		a.releaseBroken(lease)
		a.release(next.await())
	})
}

// Goroutines that pass a hold on, slice after slice, cost no subscription.
func TestLocalPassingNeedsNoMessages(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.startLock(t.Context(), engine.Options{}).await()
		for range 300 {
			next := a.startLock(t.Context(), engine.Options{})
			sleep(4 * time.Millisecond)
			a.release(lease)
			lease = next.await()
		}
		a.release(lease)
		if n := len(a.requests(time.Time{}, "listen")); n > 0 {
			t.Errorf("%d subscriptions", n)
		}
	})
}
