package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
)

// Questions are answered while there are holds and for a while longer, and not before. The oldest
// lease of a hold is told, and none of a hold that is given back or lost.
func TestQuestionsAreAnsweredWhileThereAreHolds(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		var running, begun atomic.Int64
		e := newEngine(server.Connect("p"), func(c *engine.Config) {
			c.Answer = func(ctx context.Context) {
				begun.Add(1)
				running.Add(1)
				<-ctx.Done()
				running.Add(-1)
			}
		})
		t.Cleanup(func() { _ = e.Close() })
		readers := e.NewLock(protocol.Spec{Name: "n", Kind: protocol.ReadWrite, Shared: true},
			engine.Options{TTL: 15 * time.Second})
		check := func(what string, runs, times int64, stacks, leases int, age time.Duration) {
			t.Helper()
			sleep(0)
			if running.Load() != runs || begun.Load() != times {
				t.Errorf("%s: %d run, %d began", what, running.Load(), begun.Load())
			}
			all := e.Stacks("n", 100)
			if len(all) != stacks || len(e.Stacks("m", 100)) > 0 || len(e.Stacks("n", 1)) > 1 {
				t.Fatalf("%s: %+v", what, all)
			}
			for _, s := range all {
				if s.Token <= 0 || s.Leases != leases || time.Since(s.Began) != age || len(s.Frames) == 0 {
					t.Errorf("%s: %+v", what, s)
				}
			}
		}
		check("an idle client", 0, 0, 0, 0, 0)
		lease, err := readers.Acquire(t.Context())
		fatal.If(t, err)
		sleep(time.Millisecond)
		joined, err := readers.Acquire(t.Context())
		fatal.If(t, err)
		entered, err := readers.Acquire(joined.Context())
		fatal.If(t, err)
		check("two leases", 1, 1, 1, 2, time.Millisecond)
		release(t, lease)
		release(t, joined)
		sleep(time.Minute)
		check("an entry is left", 1, 1, 1, 1, time.Minute)
		release(t, entered)
		check("all are released", 1, 1, 0, 0, 0)
		sleep(11 * time.Second)
		check("a pause", 0, 1, 0, 0, 0)

		alone := e.NewLock(protocol.Spec{Name: "n", Kind: protocol.Election}, engine.Options{TTL: 15 * time.Second})
		if lease, err = alone.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("another lease", 1, 2, 1, 1, 0)
		if done, err := server.Connect("p").Break(t.Context(), "n",
			protocol.Break{Kind: protocol.Election, Token: lease.Token(), Force: true}); err != nil || !done {
			t.Fatal(done, err)
		}
		sleep(6 * time.Second)
		check("it is lost", 1, 2, 0, 0, 0)
		if err := e.Close(); err != nil || running.Load() != 0 {
			t.Errorf("Close: %v, %d run", err, running.Load())
		}
	})
}

func release(t *testing.T, lease *engine.Lease) {
	t.Helper()
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}
