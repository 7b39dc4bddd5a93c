package examples_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
)

// The code of docs/recipes.md, word for word.

var errReplaced = errors.New("a newer run waits")

func runNewest(ctx context.Context, client *holdfast.Client, name string, work func(context.Context) error) error {
	m := client.Mutex(name, holdfast.WithStrictOrder(), holdfast.WithWanted())
	return m.Do(ctx, func(ctx context.Context) error {
		lease, _ := holdfast.LeaseFrom(ctx)
		wanted := lease.Wanted()
		ctx, end := context.WithCancelCause(ctx)
		defer end(nil)
		go func() {
			select {
			case <-wanted:
				end(errReplaced)
			case <-ctx.Done():
			}
		}()
		return work(ctx) // it returns context.Cause(ctx) when ctx ends
	})
}

func export(ctx context.Context, client *holdfast.Client, customer string, work func(context.Context) error) error {
	return client.Semaphore("exports", 10).Do(ctx, 1, func(ctx context.Context) error {
		return client.Mutex("customer:"+customer).Do(ctx, work)
	})
}

func mount(ctx context.Context, client *holdfast.Client, pod string) (*holdfast.Lease, error) {
	return client.Mutex("disk:7", holdfast.WithOwner(pod)).Lock(ctx)
}

type Locker interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context, name string) error
}

type nameLocker struct {
	client *holdfast.Client
	names  sync.Map // of a name, to its *heldName
}

type heldName struct {
	inside chan struct{} // has one element from the end of Lock until Unlock
	lease  *holdfast.Lease
}

func (l *nameLocker) Lock(ctx context.Context, name string) error {
	v, _ := l.names.LoadOrStore(name, &heldName{inside: make(chan struct{}, 1)})
	held := v.(*heldName)
	select {
	case held.inside <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	lease, err := l.client.Mutex("certificates:" + name).Lock(ctx)
	if err != nil {
		<-held.inside
		return err
	}
	held.lease = lease
	return nil
}

func (l *nameLocker) Unlock(_ context.Context, name string) error {
	v, ok := l.names.Load(name)
	if !ok || len(v.(*heldName).inside) == 0 {
		return fmt.Errorf("unlock of %q, which is not locked: %w", name, holdfast.ErrNotHeld)
	}
	held := v.(*heldName)
	err := held.lease.Release()
	<-held.inside
	return err
}

// Each run ends for a newer one, also one that waited while others came.
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
			if err := <-ended[i]; !errors.Is(err, want) || !began[i] {
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

// By a name, goroutines of one process and of others exclude each other. A holder that lost its
// lease keeps its own process out until it unlocks, and its Unlock gives back no lease of another.
func TestNameLockerExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		var one, other Locker = &nameLocker{client: server.Client(nil)}, &nameLocker{client: server.Client(nil)}
		lock := func(l Locker) <-chan error {
			done := make(chan error, 1)
			go func() { done <- l.Lock(t.Context(), "example.com") }()
			synctest.Wait()
			return done
		}
		unlock := func(l Locker) error { return l.Unlock(t.Context(), "example.com") }
		if err := unlock(one); !errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("an Unlock without Lock: %v", err)
		}
		if err := <-lock(one); err != nil {
			t.Fatal(err)
		}
		elsewhere := lock(other)
		ended, end := context.WithCancel(t.Context())
		end()
		if err := one.Lock(ended, "example.com"); !errors.Is(err, context.Canceled) {
			t.Errorf("a second Lock of the process: %v", err)
		}
		operator := server.Client(nil)
		info, err := operator.Inspect(t.Context(), "certificates:example.com")
		if err != nil || len(info.Holds) != 1 {
			t.Fatalf("the holds are %v: %v", info.Holds, err)
		}
		if err := operator.ForceBreak(t.Context(), info.Name, info.Holds[0].Token); err != nil {
			t.Fatal(err)
		}
		if err := <-elsewhere; err != nil {
			t.Fatal(err)
		}
		here := lock(one)
		if err := unlock(other); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(here) > 0 {
			t.Error("a goroutine is in while another one of its process has not unlocked")
		}
		if err := unlock(one); !errors.Is(err, holdfast.ErrLost) {
			t.Errorf("the Unlock of a lost lease: %v", err)
		}
		if err := <-here; err != nil {
			t.Fatal(err)
		}
		if err := unlock(one); err != nil {
			t.Error(err)
		}
	})
}

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// hosts are clients on one server. Each stands for a process, on a host of its own, which would
// begin as the example of package redisstore does.
func hosts(labels ...string) (clients []*holdfast.Client, end func()) {
	server, err := redisserver.Run(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	var under []*redis.Client
	for _, label := range labels {
		rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
		client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{Label: label})
		if err != nil {
			log.Fatal(err)
		}
		clients, under = append(clients, client), append(under, rdb)
	}
	return clients, func() {
		for i, client := range clients {
			client.Close()
			under[i].Close()
		}
		_ = server.Close()
	}
}
