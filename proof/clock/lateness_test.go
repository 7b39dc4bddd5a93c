package clock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/lateness"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/proof/embedded"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The first in the queue enters when it can, whatever mix of holds it waits for. The protocol in
// memory passes the same test in internal/engine, with many more mixes.
func TestWaiterEntersWhenItCan(t *testing.T) {
	mixes := 60
	if harness.Thorough {
		mixes = 600
	}
	for _, m := range lateness.Mixes(mixes) {
		var run *lateness.Run
		synctest.Test(t, func(t *testing.T) {
			srv := embedded.Start(t)
			run = lateness.Play(m, func(int) protocol.Protocol { return overEmbedded(srv) })
			sleep(time.Minute)
		})
		if faults := run.Faults(); len(faults) > 0 {
			t.Errorf("%s\n%v", strings.Join(faults, "\n"), run)
		}
	}
}

// overEmbedded is the protocol of one process over the embedded server.
func overEmbedded(srv *embedded.Server) protocol.Protocol {
	rdb := srv.Client(func(o *redis.Options) {
		o.DisableIdentity = true
		o.PoolSize = 1000 // go-redis waits for a turn with timers that all bubbles would share
	})
	return native.New(wire.Route(redisstore.New(rdb)),
		native.Config{Prefix: "p", Process: string(protocol.NewID()), Timeout: time.Second})
}

// A writer that becomes the first in the queue after a fixed reader was extended, past the end that
// the reader had before, is told when the reader's hold is over. It enters then, and not 20 ms
// later. The definition in memory passes the same test in internal/engine.
func TestWriterEntersWhenExtendedReaderEnds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const ttl = time.Minute
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		long := holdfast.WithTTL(ttl)
		lease := s.take(readers(a, long, holdfast.WithoutRenewal()))
		first, giveUp := context.WithCancel(t.Context())
		gaveUp := s.start(first, writers(b, long))
		sleep(time.Second)
		entered := s.start(t.Context(), writers(c, long))
		sleep(ttl - 3*time.Second)
		began := time.Now()
		if err := lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		sleep(ttl - 100*time.Millisecond)
		giveUp()
		<-gaveUp
		s.awaitBetween(entered, began, ttl, ttl+10*time.Millisecond)
	})
}
