package holdfast_test

import (
	"context"
	"errors"
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
			if err := lease.Release(); err != nil {
				t.Fatal(err)
			}
			lease = <-next
			cancel()
			if err := lease.Release(); err != nil {
				t.Fatal(err)
			}
			if lease := <-done; lease != nil {
				in++
				if err := lease.Release(); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		t.Logf("%d of 100 were in all the same", in)
	})
}

// The first renewal after a hand-over confirms its claim, half a second at most. It is not told as
// a renewal, before which two thirds of the TTL are left.
func TestConfirmationIsNoRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		holder, err := holdfast.NewOn(server.Connect("p"), nil)
		must(t, err)
		var confirmed, renewed []holdfast.Event // in the background
		waiter, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{TTL: 15 * time.Second, Observer: observing(func(e holdfast.Event) {
			switch e.Kind {
			case holdfast.EventConfirmed:
				confirmed = append(confirmed, e)
			case holdfast.EventRenewed:
				renewed = append(renewed, e)
			}
		})})
		must(t, err)
		lease, err := holder.Mutex("m").Lock(t.Context())
		must(t, err)
		next := make(chan *holdfast.Lease, 1)
		go func() {
			lease, err := waiter.Mutex("m").Lock(t.Context())
			must(t, err)
			next <- lease
		}()
		synctest.Wait()
		must(t, lease.Release())
		lease = <-next
		<-time.After(11 * time.Second)
		must(t, lease.Release())
		synctest.Wait()
		if len(confirmed) != 1 || confirmed[0].Token != lease.Token() || confirmed[0].Headroom != 0 || confirmed[0].Kind.String() != "confirmed" {
			t.Errorf("the hand-over was confirmed: %+v", confirmed)
		}
		if len(renewed) != 2 || min(renewed[0].Headroom, renewed[1].Headroom) < 9*time.Second {
			t.Errorf("the lease was renewed: %+v", renewed)
		}
		must(t, errors.Join(holder.Close(), waiter.Close()))
	})
}
