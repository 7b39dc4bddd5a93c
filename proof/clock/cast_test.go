package clock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

// lock locks what is free.
func (s *scene) lock(a *actor, name string, options ...holdfast.Option) *holdfast.Lease {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	lease, err := a.Mutex(name, options...).Lock(ctx)
	if err != nil {
		s.t.Fatalf("%s: %v", a.name, err)
	}
	s.alone(lease)
	return lease
}

func (s *scene) release(lease *holdfast.Lease) {
	s.t.Helper()
	if err := lease.Release(); err != nil {
		s.t.Fatal(err)
	}
}

// got is what a waiter got, and when.
type got struct {
	lease *holdfast.Lease
	err   error
	at    time.Time
}

// wait lets an actor wait for a name, and returns when it stands in the queue or is done.
func (s *scene) wait(a *actor, name string, options ...holdfast.Option) <-chan got {
	return s.waitFor(s.t.Context(), a, name, options...)
}

func (s *scene) waitFor(ctx context.Context, a *actor, name string, options ...holdfast.Option) <-chan got {
	done := make(chan got, 1)
	go func() {
		lease, err := a.Mutex(name, options...).Lock(ctx)
		done <- got{lease, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

// take takes what a waiter got, within a time that is long.
func (s *scene) take(waiter <-chan got) got {
	s.t.Helper()
	select {
	case g := <-waiter:
		if g.err == nil {
			s.alone(g.lease)
		}
		return g
	case <-time.After(time.Hour):
		s.t.Fatal("waited for an hour")
		return got{}
	}
}

// alone checks rule 1: whoever got a lease before knows by now that it is over, and had a smaller
// token.
func (s *scene) alone(lease *holdfast.Lease) {
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

// key is where the state of a name lies, and left how long it still lives there; negative when it
// is gone.
func key(name string) string { return "holdfast:{" + name + "}" }

func (s *scene) left(name string) time.Duration {
	s.t.Helper()
	d, err := s.rdb.PTTL(context.WithoutCancel(s.t.Context()), key(name)).Result()
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func withCancel(t *testing.T) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}
