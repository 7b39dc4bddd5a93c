package moving

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// patience bounds what must happen, on a machine that has much else to do.
const patience = time.Minute

// A library is an old one, on a server.
type library struct {
	Library
	both func(ctx context.Context, client *holdfast.Client, bill func(context.Context) error) error
	keys []string // of its lock
}

// isHeld checks whether the lock is held: by a key, or by most of its keys. rueidislock begins work
// when it has two of three.
func (l library) isHeld(t *testing.T, server *redisserver.Server, want bool) {
	t.Helper()
	found := 0
	for _, key := range l.keys {
		got, err := server.Do("EXISTS", key)
		if err != nil {
			t.Error(err)
		}
		if got == int64(1) {
			found++
		}
	}
	if held := found > len(l.keys)/2; held != want {
		t.Errorf("%d of the keys %q are there", found, l.keys)
	}
}

var libraries = map[string]func(t *testing.T, addr string) library{
	"redsync": func(t *testing.T, addr string) library {
		old := redsync.New(goredis.NewPool(open(t, addr)))
		both := func(ctx context.Context, client *holdfast.Client, bill func(context.Context) error) error {
			return BothRedsync(ctx, client, old, bill)
		}
		return library{Redsync(old, 8*time.Second), both, []string{"order:42"}}
	},
	"redislock": func(t *testing.T, addr string) library {
		old := Redislock(redislock.New(open(t, addr)), 8*time.Second)
		return library{old, old.Both, []string{"order:42"}}
	},
	"rueidislock": func(t *testing.T, addr string) library {
		// With the default TryNextAfter of 20 ms, a busy machine fails to lock.
		old, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption: rueidis.ClientOption{InitAddress: []string{addr}}, TryNextAfter: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(old.Close)
		return library{Rueidislock(old), Rueidislock(old).Both,
			[]string{"rueidislock:0:order:42", "rueidislock:1:order:42", "rueidislock:2:order:42"}}
	},
}

func open(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

// with runs a test for each library that needs a redis-server.
func with(t *testing.T, test func(t *testing.T, server *redisserver.Server, old library, client *holdfast.Client)) {
	for name, opened := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // most of the time is waiting for a renewal
			server := redisserver.Start(t)
			test(t, server, opened(t, server.Addr()), connect(t, server.Addr()))
		})
	}
}

// A running is work that began and waits to be told to end.
type running struct {
	began, end chan struct{}
	ctx        context.Context
	done       chan error
}

// start runs a release, whose work lasts until its end is asked for, or its context ends.
func start(release func(bill func(context.Context) error) error) *running {
	r := &running{began: make(chan struct{}), end: make(chan struct{}), done: make(chan error, 1)}
	go func() {
		r.done <- release(func(ctx context.Context) error {
			r.ctx = ctx
			close(r.began)
			select {
			case <-r.end:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	return r
}

func (r *running) hasBegun(t *testing.T) {
	t.Helper()
	select {
	case <-r.began:
	case err := <-r.done:
		t.Fatalf("it never worked: %v", err)
	case <-time.After(patience):
		t.Fatal("it never worked")
	}
}

func (r *running) hasEnded(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		t.Fatal("it never ended")
		return nil
	}
}

// isHeld waits until the lock of holdfast is held.
func isHeld(t *testing.T, client *holdfast.Client) {
	t.Helper()
	for late := time.After(patience); ; {
		info, err := client.Inspect(t.Context(), "order:42")
		if err == nil && info.Holders == 1 {
			return
		}
		select {
		case <-late:
			t.Fatalf("nobody holds the lock: %v", err)
		case <-time.After(time.Millisecond):
		}
	}
}

// Work ends when its old lock is lost, and the error says so. Both locks are free then.
func TestBothEndsWithTheOldLock(t *testing.T) {
	with(t, func(t *testing.T, server *redisserver.Server, old library, client *holdfast.Client) {
		r := start(func(bill func(context.Context) error) error { return old.both(t.Context(), client, bill) })
		r.hasBegun(t)
		for _, key := range old.keys {
			if _, err := server.Do("DEL", key); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.hasEnded(t); !errors.Is(err, ErrOldLost) || errors.Is(err, holdfast.ErrLost) {
			t.Errorf("it ended with %v", err)
		}
		if err := old.both(t.Context(), client, func(context.Context) error { return nil }); err != nil {
			t.Errorf("the next one: %v", err)
		}
	})
}

// Work ends when the lease of holdfast is lost, and gives the old lock back.
func TestBothEndsWithTheLease(t *testing.T) {
	with(t, func(t *testing.T, server *redisserver.Server, old library, client *holdfast.Client) {
		r := start(func(bill func(context.Context) error) error { return old.both(t.Context(), client, bill) })
		r.hasBegun(t)
		lease, _ := holdfast.LeaseFrom(r.ctx)
		if err := connect(t, server.Addr()).ForceBreak(t.Context(), "order:42", lease.Token()); err != nil {
			t.Fatal(err)
		}
		if err := r.hasEnded(t); !errors.Is(err, holdfast.ErrLost) || errors.Is(err, ErrOldLost) {
			t.Errorf("it ended with %v", err)
		}
		old.isHeld(t, server, false)
	})
}

// A request that is cancelled while it waits for the old lock leaves nothing behind.
func TestBothIsCancelledBetweenTheLocks(t *testing.T) {
	with(t, func(t *testing.T, server *redisserver.Server, old library, client *holdfast.Client) {
		before := start(func(bill func(context.Context) error) error { return old.Only(t.Context(), bill) })
		before.hasBegun(t)
		ctx, cancel := context.WithCancel(t.Context())
		between := start(func(bill func(context.Context) error) error { return old.both(ctx, client, bill) })
		isHeld(t, client)
		cancel()
		if err := between.hasEnded(t); err == nil {
			t.Error("it ended without an error")
		}
		close(before.end)
		if err := before.hasEnded(t); err != nil {
			t.Error(err)
		}
		old.isHeld(t, server, false)
		if _, err := client.Mutex("order:42").TryLock(t.Context()); err != nil {
			t.Errorf("the lock is not free: %v", err)
		}
	})
}

// A request that is cancelled while it works keeps its old lock until its work has ended.
func TestBothKeepsTheOldLockUntilWorkHasEnded(t *testing.T) {
	with(t, func(t *testing.T, server *redisserver.Server, old library, client *holdfast.Client) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		err := old.both(ctx, client, func(ctx context.Context) error {
			cancel()
			<-ctx.Done()
			for range 500 { // work that takes its time to end
				old.isHeld(t, server, true)
				if t.Failed() {
					break
				}
			}
			return context.Cause(ctx)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("it ended with %v", err)
		}
		old.isHeld(t, server, false)
	})
}
