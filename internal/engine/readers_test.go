package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A reader leads, and learns late that a hold of its process was opened to readers. Another reader
// came meanwhile, too late to enter that hold. It must not wait for the end of the hold.
func TestReaderBehindLeaderThatJoinsLateLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memory.New(protocol.Features{Queue: true, Tokens: true}))
		options := Options{TTL: 15 * time.Second}
		writer := p.Lock(protocol.Spec{Name: "n", Kind: protocol.ReadWrite}, options)
		reader := p.Lock(protocol.Spec{Name: "n", Kind: protocol.ReadWrite, Shared: true}, options)
		writes, err := writer.Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := func(got chan<- *Lease) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			lease, err := reader.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}
		silent := make(chan struct{})
		p.wire.lead(func(context.Context, protocol.Resource, protocol.Ask) (protocol.Answer, error) {
			<-silent
			return protocol.Answer{}, &protocol.Failure{Op: "lock", Name: "n", Reason: protocol.Unreachable,
				Err: errors.New("gone")}
		})
		first, second := make(chan *Lease, 1), make(chan *Lease, 1)
		go read(first)
		synctest.Wait()
		if err := writes.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * passFor)
		go read(second)
		synctest.Wait()
		p.wire.open()
		close(silent)
		for _, got := range []chan *Lease{first, second} {
			if lease := <-got; lease != nil {
				_ = lease.Release()
			}
		}
		_ = writes.Release()
	})
}
