package holdfast_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Trap 20: a goroutine gives up at the very moment at which another passes the lock on to it. Whichever of the two it sees first,
// the lock goes on, and is free in the end.
func TestGivenUpAtTheHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := holdfast.NewOn(memory.New(protocol.Features{Queue: true, Tokens: true}).Connect("p"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Mutex("n")
		in := 0
		for range 100 {
			lease, err := m.TryLock(t.Context())
			if err != nil {
				t.Fatalf("it was not given back: %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan *holdfast.Lease, 1)
			go func() {
				lease, _ := m.Lock(ctx)
				done <- lease
			}()
			synctest.Wait()
			cancel()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lease := <-done; lease != nil {
				in++
				if err := lease.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		t.Logf("%d of 100 were in all the same", in)
	})
}
