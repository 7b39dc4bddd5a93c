package examples_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// The code of docs/recipes.md, word for word.

var errReplaced = errors.New("a newer run waits")

func runNewest(ctx context.Context, client *holdfast.Client, name string, work func(context.Context) error) error {
	return client.Mutex(name, holdfast.WithStrictOrder()).Do(ctx, func(ctx context.Context) error {
		if isAwaited(ctx, client, name) {
			return errReplaced // before it began
		}
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		go func() {
			for ctx.Err() == nil {
				select {
				case <-time.After(time.Second):
				case <-ctx.Done():
				}
				if isAwaited(ctx, client, name) {
					end(errReplaced)
				}
			}
		}()
		return work(ctx) // it returns context.Cause(ctx) when ctx ends
	})
}

func isAwaited(ctx context.Context, client *holdfast.Client, name string) bool {
	info, _ := client.Inspect(ctx, name) // after an error nobody is in it: the next look may tell
	for _, waiter := range info.Queue {
		if waiter.Alive != lockinfo.AliveNo {
			return true
		}
	}
	return false
}

func export(ctx context.Context, client *holdfast.Client, customer string, work func(context.Context) error) error {
	return client.Semaphore("exports", 10).Do(ctx, 1, func(ctx context.Context) error {
		return client.Mutex("customer:"+customer).Do(ctx, work)
	})
}

func mount(ctx context.Context, client *holdfast.Client, pod string) (*holdfast.Lease, error) {
	return client.Mutex("disk:7", holdfast.WithOwner(pod)).Lock(ctx)
}

// Each run ends for a newer one, and one that waited while others came does not begin.
func TestNewestRunReplacesTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		var began [4]bool
		var ended [4]chan error
		for i := range ended {
			ended[i] = make(chan error, 1)
			client := server.Client(nil)
			go func() {
				ended[i] <- runNewest(t.Context(), client, "index", func(ctx context.Context) error {
					began[i] = true
					select {
					case <-time.After(time.Minute):
						return nil
					case <-ctx.Done():
						<-time.After(time.Second) // it tidies up
						return context.Cause(ctx)
					}
				})
			}()
			synctest.Wait() // i waits, or runs
		}
		for i, want := range []error{errReplaced, errReplaced, errReplaced, nil} {
			if err := <-ended[i]; !errors.Is(err, want) || began[i] != (i == 0 || i == 3) {
				t.Errorf("run %d: began: %v, ended with %v", i, began[i], err)
			}
		}
	})
}

// A job that waits for its customer has a permit; none that waits for a permit has a customer.
func TestExportTakesThePermitFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		client := server.Client(nil)
		permits, err := client.Semaphore("exports", 10).Acquire(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() {
			done <- export(t.Context(), server.Client(nil), "7", func(ctx context.Context) error {
				if lease, _ := holdfast.LeaseFrom(ctx); lease.Name() != "customer:7" {
					t.Errorf("the token would be that of %q", lease.Name())
				}
				return nil
			})
		}()
		synctest.Wait()
		customer, err := client.Mutex("customer:7").TryLock(t.Context())
		if err != nil {
			t.Fatalf("while a job waits for a permit: %v", err)
		}
		for _, lease := range []*holdfast.Lease{customer, permits} {
			if err := lease.Release(); err != nil {
				t.Error(err)
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// A pod that comes back passes those who wait, beside its earlier run, and has a larger token. The
// others wait for both.
func TestPodComesBackBesideItsEarlierRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, began := holdfasttest.Start(t), time.Now()
		earlier, err := server.Client(nil).Mutex("disk:7", holdfast.WithOwner("pod-0"),
			holdfast.WithoutRenewal()).Lock(t.Context()) // as if it had crashed
		if err != nil {
			t.Fatal(err)
		}
		other := make(chan *holdfast.Lease)
		go func() {
			lease, err := mount(t.Context(), server.Client(nil), "pod-1")
			if err != nil {
				t.Error(err)
			}
			other <- lease
		}()
		synctest.Wait()
		again, err := mount(t.Context(), server.Client(nil), "pod-0")
		if err != nil || time.Since(began) > time.Second {
			t.Fatalf("it came back after %v: %v", time.Since(began), err)
		}
		if earlier.Err() != nil || again.Err() != nil || again.Token() <= earlier.Token() {
			t.Errorf("%v and %v are not both trusted, in order", earlier, again)
		}
		if err := again.Release(); err != nil {
			t.Error(err)
		}
		lease := <-other
		if waited := time.Since(began); waited < 15*time.Second || waited > 20*time.Second {
			t.Errorf("the other pod got %v after %v", lease, waited)
		}
	})
}
