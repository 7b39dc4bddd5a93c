package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A reader leads, and learns late that a hold of its process was opened to readers. Another reader
// came meanwhile, too late to enter that hold. It must not wait for the end of the hold.
func TestReaderBehindLeaderThatJoinsLateLeads(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		const slice = 5 * time.Millisecond
		p := newHost(t, server)
		writes := p.try(p.rw(false))
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		silent := make(chan struct{})
		p.setAsks(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
			<-silent
			return protocol.Answer{}, &protocol.Failure{Op: "lock", Name: "n", Reason: protocol.Unreachable,
				Err: errors.New("gone")}
		})
		first := p.startAcquire(ctx, p.rw(true))
		if err := writes.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		sleep(2 * slice)
		second := p.startAcquire(ctx, p.rw(true))
		p.setAsks(nil)
		close(silent)
		p.release(first.await())
		p.release(second.await())
		p.release(writes)
	})
}
