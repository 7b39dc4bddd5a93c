package clock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

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
