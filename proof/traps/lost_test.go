package traps_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 10: an acquire whose answer is lost is "held by another", about its own key. Lock asks again
// and finds that it holds; TryLock says that it does not know, and what it may have won is taken
// back. Trap 36: the client's own retries send it again. Here nothing goes out twice.
func TestMutexLockWithoutAnswerIsAskedAgain(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	c := harness.Locker(t, p.Addr(), harness.Brief(time.Minute), func(o *redis.Options) { o.MaxRetries = 3 })
	harness.Release(t, harness.Lock(t, c.Mutex("warm")))

	lost := p.DropAnswer("EVALSHA")
	lease := harness.Lock(t, c.Mutex("n"))
	harness.Signalled(t, "the answer is lost", lost)
	if holders := harness.Must(t, srv, "TYPE", harness.KeyOf("n")); holders != "string" {
		t.Errorf("its key is a %v", holders)
	}
	harness.Release(t, lease)
	harness.Free(t, srv, "n")

	p.Record()
	lost = p.DropAnswer("tried") // not the cleaning up after what went before
	_, err := c.Mutex("tried").TryLock(harness.Within(t, harness.Patience))
	harness.Signalled(t, "the answer is lost", lost)
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || !failure.MayHaveApplied || !errors.Is(err, holdfast.ErrUnavailable) ||
		errors.Is(err, holdfast.ErrHeld) {
		t.Errorf("got %v", err)
	}
	harness.Gone(t, srv, "tried", harness.Patience) // its TTL is a minute
	ask := p.Sent("tried")[0]
	if n := len(p.Sent(ask)); n != 1 {
		t.Errorf("the request was sent %d times", n)
	}
}

// Trap 10 with a hold of an owner: what counts entries counts a repeated one twice, and never comes
// to zero.
func TestMutexEntryWithoutAnswerCountsOnce(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	m := harness.Locker(t, p.Addr(), nil).Mutex("n", holdfast.WithOwner("me"))
	first := harness.Lock(t, m)
	lost := p.DropAnswer("EVALSHA")
	second := harness.Lock(t, m)
	harness.Signalled(t, "the answer is lost", lost)
	harness.Release(t, second)
	if n := harness.Must(t, srv, "EXISTS", harness.KeyOf("n")); n != int64(1) || harness.Checked(t, first) != nil {
		t.Error("the first entry was released with the second")
	}
	harness.Release(t, first)
	harness.Free(t, srv, "n")
}

// Trap 11: a release whose answer is lost is "not held". It is sent again, and is uncertain where
// it finds no hold; if no answer comes at all, it is uncertain too, and says so in time.
func TestLeaseReleaseWithoutAnswerIsSentAgain(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	c := harness.Locker(t, p.Addr(), nil)
	harness.Release(t, harness.Lock(t, c.Mutex("warm"))) // so that the server knows the script, and the answer that is lost is not that it does not
	lease := harness.Lock(t, c.Mutex("n"))
	next := harness.Claim(harness.Within(t, harness.Patience), harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	harness.Waiting(t, srv, "n", 1)
	lost := p.DropAnswer("EVALSHA")
	if err := lease.Release(); !errors.Is(err, holdfast.ErrUncertain) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	harness.Signalled(t, "the answer is lost", lost)
	harness.HandBack(t, next.Got(t))
	if err := lease.Release(); !errors.Is(err, holdfast.ErrNotHeld) {
		t.Errorf("a second release: %v", err)
	}

	lease = harness.Lock(t, harness.Locker(t, p.Addr(), &holdfast.Config{TTL: 2 * harness.Patience, ReleaseTimeout: 2 * time.Second}).Mutex("n"))
	p.Silence()
	said := make(chan error, 1)
	go func() { said <- lease.Release() }()
	select {
	case err := <-said:
		if !errors.Is(err, holdfast.ErrUncertain) || errors.Is(err, holdfast.ErrNotHeld) {
			t.Errorf("got %v", err)
		}
	case <-time.After(harness.Patience): // trust lasts for longer
		t.Fatal("it does not say so in time")
	}
	p.Speak()
	harness.Gone(t, srv, "n", harness.Patience)
}

// A message of a hand-over that is lost (17): the waiter finds out by asking.
func TestHandOverWithoutMessageIsFoundByAsking(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	c := harness.Locker(t, p.Addr(), nil)
	harness.Hears(t, srv, c)
	holder := harness.Lock(t, harness.Locker(t, srv.Addr(), harness.Brief(6*time.Second)).Mutex("n"))
	next := harness.Claim(harness.Within(t, 2*harness.Patience), c.Mutex("n")) // it asks once more before that is over, which is not what is meant
	harness.Waiting(t, srv, "n", 1)
	lost := p.SwallowAnswer("holdfast:@")
	harness.Release(t, holder)
	harness.Signalled(t, "the message is lost", lost)
	harness.HandBack(t, next.Got(t))
	harness.Gone(t, srv, "n", harness.Patience)
}

// Trap 12: a cancelled context may leave the request to be applied later: what it won is taken
// back.
func TestMutexLockCancelledInFlightGoesBack(t *testing.T) {
	t.Parallel()
	for name, passed := range map[string]bool{"arrives": true, "answer cut off": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := harness.Proxied(t)
			c := harness.Locker(t, p.Addr(), harness.Brief(time.Minute))
			harness.Release(t, harness.Lock(t, c.Mutex("n")))
			ctx, cancel := context.WithCancel(context.Background())
			held := p.HoldRequest("EVALSHA")
			if !passed {
				held = p.HoldAnswer("|") // of ask, which took effect
			}
			waiter := harness.Claim(ctx, c.Mutex("n"))
			harness.Signalled(t, "the request", held.Arrived())
			calls, _ := counts(srv)
			more := calls + 1 // what takes it back
			if passed {
				more++ // and the request itself
			}
			cancel()
			harness.Signalled(t, "Lock returns", waiter.Done)
			var ended *holdfast.WaitError
			if !errors.As(waiter.Err, &ended) || !errors.Is(waiter.Err, context.Canceled) || errors.Is(waiter.Err, holdfast.ErrHeld) {
				t.Errorf("got %v", waiter.Err)
			}
			held.Pass()
			harness.Eventually(t, "all arrives", func() bool { n, _ := counts(srv); return n >= more })
			harness.Gone(t, srv, "n", harness.Patience) // its TTL is a minute
			harness.Release(t, harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n")))
		})
	}
}

// Trap 13: a release with a context that is over leaks the lock until its TTL.
func TestLeaseReleaseWithDeadContextFrees(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	ctx, cancel := context.WithCancel(context.Background())
	lease, err := harness.Locker(t, p.Addr(), nil).Mutex("n").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lease.Err(); err != nil {
		t.Errorf("the lease ended with the context of Lock: %v", err)
	}
	if err := lease.Release(); err != nil {
		t.Errorf("release: %v", err)
	}
	harness.Free(t, srv, "n")
}
