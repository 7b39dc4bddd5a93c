package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
)

// Trap 10: an acquire whose answer is lost is "held by another", about its own key. Lock asks again and finds that it
// holds; TryLock says that it does not know, and what it may have won is taken back.
// Trap 36: the client's own retries send it again. Here nothing goes out twice.
func TestAcquireWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	c := locker(t, p.Addr(), brief(time.Minute), func(o *redis.Options) { o.MaxRetries = 3 })
	release(t, lock(t, c.Mutex("warm")))

	lost := p.DropAnswer("EVALSHA")
	lease := lock(t, c.Mutex("n"))
	signalled(t, "the answer is lost", lost)
	if holders := must(t, srv, "TYPE", keyOf("n")); holders != "string" {
		t.Errorf("its key is a %v", holders)
	}
	release(t, lease)
	free(t, srv, "n")

	p.Record()
	lost = p.DropAnswer("tried") // not the cleaning up after what went before
	_, err := c.Mutex("tried").TryLock(within(t, patience))
	signalled(t, "the answer is lost", lost)
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Applied != holdfast.AppliedUnknown || !errors.Is(err, holdfast.ErrUnavailable) ||
		errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("got %v", err)
	}
	gone(t, srv, "tried", patience) // its TTL is a minute
	ask := p.Sent("tried")[0]
	if n := len(p.Sent(ask)); n != 1 {
		t.Errorf("the request was sent %d times", n)
	}
}

// Trap 10 with a hold of an owner: what counts entries counts a repeated one twice, and never comes to zero.
func TestEntryWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	m := locker(t, p.Addr(), nil).Mutex("n", holdfast.WithOwner("me"))
	first := lock(t, m)
	lost := p.DropAnswer("EVALSHA")
	second := lock(t, m)
	signalled(t, "the answer is lost", lost)
	release(t, second)
	if n := must(t, srv, "EXISTS", keyOf("n")); n != int64(1) || checked(t, first) != nil {
		t.Error("the first entry was released with the second")
	}
	release(t, first)
	free(t, srv, "n")
}

// Trap 11: a release whose answer is lost is "not held". It is sent again, and what it did is known by then; if no
// answer comes at all, it is uncertain, and says so in time.
func TestReleaseWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	c := locker(t, p.Addr(), nil)
	release(t, lock(t, c.Mutex("warm"))) // so that the server knows the script, and the answer that is lost is not that it does not
	lease := lock(t, c.Mutex("n"))
	next := claim(within(t, patience), locker(t, srv.Addr(), nil).Mutex("n"))
	waiting(t, srv, "n", 1)
	lost := p.DropAnswer("EVALSHA")
	release(t, lease)
	signalled(t, "the answer is lost", lost)
	handBack(t, next.got(t))
	if err := lease.Release(context.Background()); !errors.Is(err, holdfast.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}

	lease = lock(t, locker(t, p.Addr(), &holdfast.Config{TTL: 2 * patience, ReleaseTimeout: 2 * time.Second}).Mutex("n"))
	p.Silence()
	said := make(chan error, 1)
	go func() { said <- lease.Release(context.Background()) }()
	select {
	case err := <-said:
		if !errors.Is(err, holdfast.ErrUncertain) || errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("got %v", err)
		}
	case <-time.After(patience): // trust lasts for longer
		t.Fatal("it does not say so in time")
	}
	p.Speak()
	gone(t, srv, "n", patience)
}

// Traps 10 and 20: a Resume whose answer is lost has taken the hold from its owner; it asks again, and holds.
func TestResumeWithoutAnswer(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	m := locker(t, p.Addr(), nil).Mutex("n")
	known := lock(t, m) // and so is the script, once it was resumed
	known, err := m.Resume(within(t, patience), known.Owner(), known.Token())
	if err != nil {
		t.Fatal(err)
	}
	release(t, known)
	let := lock(t, locker(t, srv.Addr(), nil).Mutex("n"))
	lost := p.DropAnswer("EVALSHA")
	lease, err := m.Resume(within(t, patience), let.Owner(), let.Token())
	signalled(t, "the answer is lost", lost)
	if err != nil {
		t.Fatal(err)
	}
	if lease.Token() <= let.Token() || !errors.Is(checked(t, let), holdfast.ErrLost) {
		t.Errorf("token %d after %d; the old lease: %v", lease.Token(), let.Token(), let.Err())
	}
	release(t, lease)
	gone(t, srv, "n", patience) // once the old process has ended its lease
}

// A message of a hand-over that is lost (17): the waiter finds out by asking.
func TestHandOverWithoutMessage(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	c := locker(t, p.Addr(), nil)
	hears(t, srv, c)
	holder := lock(t, locker(t, srv.Addr(), brief(6*time.Second)).Mutex("n"))
	next := claim(within(t, 2*patience), c.Mutex("n")) // it asks once more before that is over, which is not what is meant
	waiting(t, srv, "n", 1)
	lost := p.SwallowAnswer("holdfast:@")
	release(t, holder)
	signalled(t, "the message is lost", lost)
	handBack(t, next.got(t))
	gone(t, srv, "n", patience)
}

// Trap 12: a cancelled context may leave the request to be applied later: what it won is taken back.
func TestCancelledInFlight(t *testing.T) {
	t.Parallel()
	for name, passed := range map[string]bool{"arrives": true, "answer cut off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := proxied(t)
			c := locker(t, p.Addr(), brief(time.Minute))
			release(t, lock(t, c.Mutex("n")))
			ctx, cancel := context.WithCancel(context.Background())
			held := p.HoldRequest("EVALSHA")
			if !passed {
				held = p.HoldAnswer("|") // of ask, which took effect
			}
			waiter := claim(ctx, c.Mutex("n"))
			signalled(t, "the request", held.Arrived())
			calls, _ := counts(srv)
			more := calls + 1 // what takes it back
			if passed {
				more++ // and the request itself
			}
			cancel()
			signalled(t, "Lock returns", waiter.done)
			var ended *holdfast.WaitError
			if !errors.As(waiter.err, &ended) || !errors.Is(waiter.err, context.Canceled) || errors.Is(waiter.err, holdfast.ErrHeld) {
				t.Errorf("got %v", waiter.err)
			}
			held.Pass()
			eventually(t, "all arrives", func() bool { n, _ := counts(srv); return n >= more })
			gone(t, srv, "n", patience) // its TTL is a minute
			release(t, lock(t, locker(t, srv.Addr(), nil).Mutex("n")))
		})
	}
}

// Trap 13: a release with a context that is over leaks the lock until its TTL.
func TestReleaseWithDeadContext(t *testing.T) {
	t.Parallel()
	srv, p := proxied(t)
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := locker(t, p.Addr(), nil).Mutex("n").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lease.Err(); err != nil {
		t.Errorf("the lease ended with the context of Lock: %v", err)
	}
	if err := lease.Release(ctx); err != nil {
		t.Errorf("release: %v", err)
	}
	free(t, srv, "n")
}
