package holdfast_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// Trap 20: a goroutine gives up at the very moment at which another goroutine passes the lock on to
// it. Whichever of the two it sees first, the lock goes on, and is free in the end.
func TestGivenUpAtTheHandOver(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // who is cancelled runs when the lock has been passed on
	synctest.Test(t, func(t *testing.T) {
		c, err := holdfast.NewOn(memory.New(protocol.Features{Queue: true, Tokens: true}).Connect("p"), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		m := c.Mutex("n")
		in := 0
		for range 100 {
			soon, over := context.WithTimeout(t.Context(), time.Second)
			lease, err := m.Lock(soon)
			over()
			if err != nil {
				t.Fatalf("it was not given back: %v", err)
			}
			wait := func(ctx context.Context) <-chan *holdfast.Lease {
				done := make(chan *holdfast.Lease, 1)
				go func() {
					lease, _ := m.Lock(ctx)
					done <- lease
				}()
				synctest.Wait()
				return done
			}
			next := wait(t.Context()) // its grant has tokens to pass on
			ctx, cancel := context.WithCancel(t.Context())
			done := wait(ctx)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			lease = <-next
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
