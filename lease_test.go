package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A lease in a log has its name and token, and a lease that is none says so.
func TestLeaseString(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		lease := w.must(client.Mutex("order:42").Lock(t.Context()))
		want := fmt.Sprintf(`lease of "order:42" with token %d`, lease.Token())
		if got := fmt.Sprint(lease); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		var none *holdfast.Lease
		if got := fmt.Sprint(none, new(holdfast.Lease)); got != "no lease no lease" {
			t.Errorf("got %q of no lease", got)
		}
	})
}

// Do does not say that all went well if the hold may have ended while fn worked: the first release
// got no answer, and the next one found no hold. A release without any answer goes to the observer
// alone, as the lease was trusted to its end. An election goes on after both.
func TestDoWhoseReleaseFindsNothing(t *testing.T) {
	type do func(*holdfast.Client, context.Context, func(context.Context) error) error
	doMutex := func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
		return c.Mutex("n").Do(ctx, fn)
	}
	for name, test := range map[string]struct {
		do   do
		want error
		lost int // answers to releases
	}{
		"Mutex":                   {do: doMutex, want: holdfast.ErrUncertain, lost: 1},
		"Mutex, no answer at all": {do: doMutex, lost: 1 << 40},
		"Semaphore": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Semaphore("n", 1).Do(ctx, 1, fn)
		}, want: holdfast.ErrUncertain, lost: 1},
		"Group": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.All([]string{"m", "n"}).Do(ctx, fn)
		}, want: holdfast.ErrUncertain, lost: 2},
		"Election": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			terms := 0
			return c.Election("n").Run(ctx, func(ctx context.Context) error {
				if terms++; terms > 1 {
					cancel()
				}
				return fn(ctx)
			})
		}, want: context.Canceled, lost: 1},
	} {
		runInWorld(t, name, func(t *testing.T, w world) {
			one, sent := w.client()
			other, _ := w.client()
			err := test.do(one, t.Context(), func(ctx context.Context) error {
				sent.on("free", loseNext(test.lost))
				lease, _ := holdfast.LeaseFrom(ctx)
				if test.lost < 3 && name != "Election" {
					must(t, other.ForceBreak(t.Context(), "n", lease.Tokens()["n"]))
				}
				return nil
			})
			if !errors.Is(err, test.want) || errors.Is(err, holdfast.ErrLost) {
				t.Errorf("got %v, want %v", err, test.want)
			}
			sent.on("free", nil)
		})
	}
}

// A lease that is over at the moment of Close is not given back, and causes no error: its hold is
// not there any more.
func TestCloseAtTheEndOfALeaseGivesNothingBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		for range 20 {
			client, sent := w.client()
			lease := w.must(client.Mutex("n", holdfast.WithoutRenewal(), holdfast.WithTTL(time.Second)).Lock(
				t.Context()))
			<-time.After(time.Until(lease.Until())) // the clocks of both ring at once
			if err := client.Close(); err != nil || sent.count("free") != 0 {
				t.Fatalf("%d given back: %v", sent.count("free"), err)
			}
			<-time.After(time.Second)
		}
	})
}

// The question before the first request has a time of its own, which is no part of a short TTL. If
// it gets no answer, nothing is sent, and the error says so.
func TestFirstQuestionIsNoPartOfTheTTL(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		const ttl = 300 * time.Millisecond
		client, sent := w.client()
		options := []holdfast.Option{holdfast.WithTTL(ttl), holdfast.WithoutRenewal()}
		tries := map[string]func(context.Context) (*holdfast.Lease, error){
			"one": client.Mutex("n", options...).TryLock, "all": client.All([]string{"a", "b"}, options...).TryLock,
		}
		sent.on("ready", loseFirst(1<<60, false, newFailure(protocol.Unreachable, errors.New("no route"))))
		for name, try := range tries {
			var failure *holdfast.StoreError
			_, err := try(t.Context())
			if asks := sent.count("ask", "ask all"); !errors.As(err, &failure) || failure.MayHaveApplied || asks != 0 {
				t.Errorf("%s: %d asked: %v", name, asks, err)
			}
		}
		sent.on("ready", func(_ context.Context, _ int64, send func() error) error { <-time.After(ttl); return send() })
		for name, try := range tries {
			lease := w.must(try(t.Context()))
			if left := time.Until(lease.Until()); left < ttl*9/10 {
				t.Errorf("%s: %v of trust left", name, left)
			}
			w.release(lease)
		}
	})
}

// The error of a wait in vain names the holder, even if the holder is a goroutine of the same
// client and no server was asked. So does that of one who waits behind one who gave up.
func TestWaitErrorNamesOwnHolder(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		mine := holdfast.WithLabel("mine")
		w.must(client.Mutex("m", mine).Lock(t.Context()))
		w.must(client.RWMutex("r", mine).RLock(t.Context()))
		for name, lock := range map[string]func(context.Context) (*holdfast.Lease, error){
			"Mutex":          client.Mutex("m").Lock,
			"Mutex, strict":  client.Mutex("m", holdfast.WithStrictOrder()).Lock,
			"Mutex, polling": client.Mutex("m", holdfast.WithPolling(7*time.Millisecond, 0)).Lock,
			"RWMutex":        client.RWMutex("r").Lock,
		} {
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				var waited *holdfast.WaitError
				_, err := lock(ctx)
				cancel()
				if !errors.As(err, &waited) || waited.Holder != "mine" || errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("%s: %+v", name, err)
				}
			}
		}
	})
}

// Trap 20: a goroutine gives up at the very moment at which another goroutine passes the lock on to
// it. Whichever of the two it sees first, the lock goes on, and is free in the end.
func TestGivenUpAtTheHandOver(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // who is cancelled runs when the lock has been passed on
	inWorld(t, func(t *testing.T, w world) {
		client, _ := w.client()
		m := client.Mutex("n")
		in := 0
		for range 100 {
			soon, over := context.WithTimeout(t.Context(), time.Second)
			lease := w.must(m.Lock(soon)) // it was given back
			over()
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
			w.release(lease)
			lease = <-next
			cancel()
			w.release(lease)
			if lease := <-done; lease != nil {
				in++
				w.release(lease)
			}
			synctest.Wait()
		}
		t.Logf("%d of 100 were in all the same", in)
	})
}
