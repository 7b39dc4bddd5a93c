package clock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// slowAsk bounds the pause between two asks of a waiter; claimTime is how long a hand-over waits to
// be taken up.
const (
	slowAsk   = 6 * time.Second
	claimTime = 500 * time.Millisecond
)

// margin is that of the design.
func margin(ttl time.Duration) time.Duration { return ttl/100 + 5*time.Millisecond }

type lockFunc func(context.Context) (*holdfast.Lease, error)

func mutexes(a *actor, options ...holdfast.Option) lockFunc { return a.Mutex("n", options...).Lock }
func readers(a *actor, options ...holdfast.Option) lockFunc { return a.RWMutex("n", options...).RLock }
func writers(a *actor, options ...holdfast.Option) lockFunc { return a.RWMutex("n", options...).Lock }

func (s *scene) lock(a *actor, name string, options ...holdfast.Option) *holdfast.Lease {
	s.t.Helper()
	return s.acquire(a.Mutex(name, options...).Lock)
}

// acquire returns a lease that is there at once, of one who is alone.
func (s *scene) acquire(lock lockFunc) *holdfast.Lease {
	s.t.Helper()
	lease := s.take(lock)
	s.checkAlone(lease)
	return lease
}

// take returns a lease that is there at once, beside others.
func (s *scene) take(lock lockFunc) *holdfast.Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	lease, err := lock(ctx)
	fatal.If(s.t, err)
	return lease
}

func (s *scene) release(lease *holdfast.Lease) {
	s.t.Helper()
	fatal.If(s.t, lease.Release())
}

type got struct {
	lease *holdfast.Lease
	err   error
	at    time.Time
}

// startLock lets an actor wait for a name, and returns when it stands in the queue or is done.
func (s *scene) startLock(a *actor, name string, options ...holdfast.Option) <-chan got {
	return s.start(s.t.Context(), a.Mutex(name, options...).Lock)
}

// start lets somebody wait for anything, as startLock does for a mutex.
func (s *scene) start(ctx context.Context, lock lockFunc) <-chan got {
	done := make(chan got, 1)
	go func() {
		lease, err := lock(ctx)
		done <- got{lease, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// await returns what a waiter got, within a time that is long.
func (s *scene) await(waiter <-chan got) got {
	s.t.Helper()
	select {
	case g := <-waiter:
		if g.err == nil {
			s.checkAlone(g.lease)
		}
		return g
	case <-time.After(time.Hour):
		s.t.Fatal("waited for an hour")
		return got{}
	}
}

// awaitBetween fails unless a waiter gets in so long after a moment.
func (s *scene) awaitBetween(waiter <-chan got, since time.Time, least, most time.Duration) got {
	s.t.Helper()
	g := <-waiter
	if took := g.at.Sub(since); g.err != nil || took < least || took > most {
		s.t.Errorf("the next got in after %v, %v; want %v to %v", took, g.err, least, most)
	}
	return g
}

// checkAlone checks rule 1: whoever got a lease before knows by now that it is over, and had a
// smaller token.
func (s *scene) checkAlone(lease *holdfast.Lease) {
	s.t.Helper()
	for _, earlier := range s.held {
		if earlier.Name() != lease.Name() {
			continue
		}
		if earlier.Err() == nil {
			s.t.Errorf("two trusted leases of %q: tokens %d and %d", lease.Name(), earlier.Token(), lease.Token())
		}
		if earlier.Token() >= lease.Token() {
			s.t.Errorf("token %d after %d", lease.Token(), earlier.Token())
		}
	}
	s.held = append(s.held, lease)
}

// awaitLoss waits for the end of a lease, checks that it was lost, and why, and returns when.
func awaitLoss(t *testing.T, lease *holdfast.Lease, reason holdfast.Reason) time.Time {
	t.Helper()
	select {
	case <-lease.Done():
	case <-time.After(time.Hour):
		t.Fatal("not lost within an hour")
	}
	var why *holdfast.LostError
	if err := context.Cause(leased.Context(lease)); !errors.As(err, &why) || !errors.Is(err, holdfast.ErrLost) ||
		why.Reason != reason {
		t.Errorf("lost with %v, want %q", err, reason)
	}
	if err := lease.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("Err is %v", err)
	}
	if until := lease.Until(); until.After(time.Now()) {
		t.Errorf("lost, and trusted for another %v", time.Until(until))
	}
	return time.Now()
}

// key is where the state of a name lies.
func key(name string) string { return "holdfast:{" + name + "}" }

// remainingTTL is how long the key of a name still lives; negative when it is gone.
func (s *scene) remainingTTL(name string) time.Duration {
	s.t.Helper()
	d, err := s.rdb.PTTL(context.WithoutCancel(s.t.Context()), key(name)).Result()
	fatal.If(s.t, err)
	return d
}
