package holdfast_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
)

var errShutdown = errors.New("shutting down")

// endings are contexts that end after a minute, and what an error that reports this end matches.
var endings = map[string]struct {
	make       func(context.Context) (context.Context, context.CancelFunc)
	is, isNone []error
}{
	"timeout": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Minute)
		}, []error{context.DeadlineExceeded}, []error{context.Canceled},
	},
	"timeout with a cause": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Minute, errShutdown)
		}, []error{context.DeadlineExceeded, errShutdown}, []error{context.Canceled},
	},
	"deadline with a cause": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithDeadlineCause(ctx, time.Now().Add(time.Minute), errShutdown)
		}, []error{context.DeadlineExceeded, errShutdown}, []error{context.Canceled},
	},
	"timeout whose cause is a cancellation": {
		func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeoutCause(ctx, time.Minute, context.Canceled)
		}, []error{context.DeadlineExceeded, context.Canceled}, nil,
	},
	"cancellation": {cancelled(nil), []error{context.Canceled}, []error{context.DeadlineExceeded}},
	"cancellation with a cause": {
		cancelled(errShutdown), []error{context.Canceled, errShutdown}, []error{context.DeadlineExceeded},
	},
	"cancellation whose cause is a deadline": {
		cancelled(context.DeadlineExceeded), []error{context.Canceled, context.DeadlineExceeded}, nil,
	},
}

func cancelled(cause error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		timer := time.AfterFunc(time.Minute, func() { cancel(cause) })
		return ctx, func() { timer.Stop() }
	}
}

// checkEnding compares an error with the end of a context that it reports.
func checkEnding(t *testing.T, err error, is, isNone []error) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%q does not match %q", err, want)
		}
		if n := strings.Count(err.Error(), want.Error()); n != 1 {
			t.Errorf("%q says %q %d times", err, want, n)
		}
	}
	for _, other := range isNone {
		if errors.Is(err, other) {
			t.Errorf("%q matches %q", err, other)
		}
	}
}

// A wait that its context ended matches what ctx.Err said, and the cause.
func TestWaitErrorMatchesErrAndCause(t *testing.T) {
	lease := func(_ *holdfast.Lease, err error) error { return err }
	first := func(_ holdfast.Leader, err error) error { return err }
	polling := holdfast.WithPolling(7*time.Second, 0)
	for name, wait := range map[string]func(context.Context, *holdfast.Client) error{
		"Mutex.Lock": func(ctx context.Context, c *holdfast.Client) error { return lease(c.Mutex("m").Lock(ctx)) },
		"Mutex.Lock, strict": func(ctx context.Context, c *holdfast.Client) error {
			return lease(c.Mutex("m", holdfast.WithStrictOrder()).Lock(ctx))
		},
		"Mutex.Lock, owner": func(ctx context.Context, c *holdfast.Client) error {
			return lease(c.Mutex("m", holdfast.WithOwner("o")).Lock(ctx))
		},
		"Mutex.Lock, polling": func(ctx context.Context, c *holdfast.Client) error {
			return lease(c.Mutex("m", polling).Lock(ctx))
		},
		"Mutex.Do": func(ctx context.Context, c *holdfast.Client) error {
			return c.Mutex("m").Do(ctx, func(context.Context) error { return nil })
		},
		"RWMutex.Lock":      func(ctx context.Context, c *holdfast.Client) error { return lease(c.RWMutex("r").Lock(ctx)) },
		"RWMutex.RLock":     func(ctx context.Context, c *holdfast.Client) error { return lease(c.RWMutex("r").RLock(ctx)) },
		"Semaphore.Acquire": func(ctx context.Context, c *holdfast.Client) error { return lease(c.Semaphore("s", 1).Acquire(ctx, 1)) },
		"Group.Lock":        func(ctx context.Context, c *holdfast.Client) error { return lease(c.All([]string{"a", "m"}).Lock(ctx)) },
		"Group.Lock, polling": func(ctx context.Context, c *holdfast.Client) error {
			return lease(c.All([]string{"a", "m"}, polling).Lock(ctx))
		},
		"Election.Campaign": func(ctx context.Context, c *holdfast.Client) error { return lease(c.Election("e").Campaign(ctx)) },
		"Election.Run": func(ctx context.Context, c *holdfast.Client) error {
			return c.Election("e").Run(ctx, func(context.Context) error { return nil })
		},
		"Election.Observe": func(ctx context.Context, c *holdfast.Client) error {
			for leader, err := range c.Election("nobody").Observe(ctx) {
				return first(leader, err)
			}
			return nil
		},
		"Latch.Wait": func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
	} {
		for what, end := range endings {
			t.Run(name+", "+what, func(t *testing.T) {
				pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
					holdAll(t, other)
					ctx, cancel := end.make(t.Context())
					defer cancel()
					err := wait(ctx, one)
					checkEnding(t, err, end.is, end.isNone)
					if waited := (*holdfast.WaitError)(nil); !errors.As(err, &waited) || waited.Waited < time.Minute || errors.Is(err, holdfast.ErrUnavailable) {
						t.Errorf("got %+v", err)
					}
					synctest.Wait()
					checkEnding(t, wait(ctx, one), end.is, end.isNone) // it was over before the call
				})
			})
		}
	}
}

// holdAll holds all that others wait for.
func holdAll(t *testing.T, c *holdfast.Client) {
	t.Helper()
	for _, hold := range []func() (*holdfast.Lease, error){
		func() (*holdfast.Lease, error) { return c.Mutex("m").Lock(t.Context()) },
		func() (*holdfast.Lease, error) { return c.RWMutex("r").Lock(t.Context()) },
		func() (*holdfast.Lease, error) { return c.Semaphore("s", 1).Acquire(t.Context(), 1) },
		func() (*holdfast.Lease, error) { return c.Election("e").Campaign(t.Context()) },
	} {
		lease, err := hold()
		must(t, err)
		t.Cleanup(func() { _ = lease.Release() })
	}
}

// A goroutine gets the same error if it waits behind another goroutine of its process, or leads
// after that goroutine gave up.
func TestWaitErrorMatchesErrAndCauseBehindALeader(t *testing.T) {
	for what, end := range endings {
		for name, leads := range map[string]time.Duration{"the leader waits on": time.Hour, "the leader gives up before": time.Second} {
			t.Run(what+", "+name, func(t *testing.T) {
				pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
					holdAll(t, other)
					leader, stop := context.WithTimeout(t.Context(), leads)
					defer stop()
					first := make(chan error, 1)
					go func() {
						_, err := one.Mutex("m").Lock(leader)
						first <- err
					}()
					synctest.Wait()
					ctx, cancel := end.make(t.Context())
					defer cancel()
					_, err := one.Mutex("m").Lock(ctx)
					checkEnding(t, err, end.is, end.isNone)
					stop()
					if err := <-first; !errors.As(err, new(*holdfast.WaitError)) {
						t.Error(err)
					}
				})
			})
		}
	}
}

// The same is true while the server is away. The error then matches ErrUnavailable as well.
func TestWaitErrorMatchesErrAndCauseWithoutAnswer(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *holdfast.Client) error{
		"Latch.Wait":       func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Wait(ctx) },
		"Latch.Set":        func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").Set(ctx, 1) },
		"Latch.CountDown":  func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").CountDown(ctx) },
		"Election.Observe": func(ctx context.Context, c *holdfast.Client) error { return observeOnce(ctx, c.Election("e")) },
		"Group.Lock, polling": func(ctx context.Context, c *holdfast.Client) error {
			_, err := c.All([]string{"a", "b"}, holdfast.WithPolling(7*time.Second, 0)).Lock(ctx)
			return err
		},
	} {
		for what, end := range endings {
			t.Run(name+", "+what, func(t *testing.T) {
				pair(t, func(t *testing.T, f *faulty, one, _ *holdfast.Client) {
					f.set(func() { f.away = true })
					defer f.set(func() { f.away = false })
					ctx, cancel := end.make(t.Context())
					defer cancel()
					<-time.After(time.Minute - 3*time.Second) // less than Config.ReleaseTimeout is left
					err := wait(ctx, one)
					checkEnding(t, err, end.is, end.isNone)
					if !errors.Is(err, holdfast.ErrUnavailable) || !errors.Is(err, errNoAnswer) {
						t.Errorf("got %v", err)
					}
				})
			})
		}
	}
}

func observeOnce(ctx context.Context, e *holdfast.Election) error {
	for _, err := range e.Observe(ctx) {
		return err
	}
	return nil
}

// The error of a Downgrade that its context ended before an answer came says how the context ended.
func TestDowngradeUncertainMatchesErrAndCause(t *testing.T) {
	for what, end := range endings {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, sent := w.client()
				sent.downgrade = lossy(1<<60, false, errNone)
				lease := w.must(client.RWMutex("n", holdfast.WithTTL(4*time.Minute)).Lock(t.Context()))
				ctx, cancel := end.make(t.Context())
				defer cancel()
				err := lease.Downgrade(ctx)
				checkEnding(t, err, append([]error{holdfast.ErrUncertain}, end.is...), end.isNone)
				sent.downgrade = lossy(0, false, nil)
				w.release(lease)
				w.nothingLeft()
			})
		})
	}
}

// A request may see the deadline of a context a moment before the context ends. The error reports
// that end, too.
func TestWaitErrorAfterDeadlineSeenFirst(t *testing.T) {
	for name, wait := range map[string]func(context.Context, *holdfast.Client) error{
		"Latch.CountDown": func(ctx context.Context, c *holdfast.Client) error { return c.Latch("l").CountDown(ctx) },
		"Group.Lock, polling once": func(ctx context.Context, c *holdfast.Client) error {
			_, err := c.All([]string{"a", "b"}, holdfast.WithPolling(time.Second, 1)).Lock(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			pair(t, func(t *testing.T, f *faulty, one, _ *holdfast.Client) {
				f.set(func() { f.away, f.stalls = true, true })
				defer f.set(func() { f.away, f.stalls = false, false })
				const wait5 = 5*time.Second - time.Millisecond // Config.ReleaseTimeout leaves no time for another request
				inner, cancel := context.WithTimeoutCause(t.Context(), wait5+time.Millisecond/2, errShutdown)
				defer cancel()
				err := wait(lateEnd{inner, time.Now().Add(wait5)}, one)
				checkEnding(t, err, []error{context.DeadlineExceeded, errShutdown}, []error{context.Canceled})
				if !errors.As(err, new(*holdfast.WaitError)) {
					t.Errorf("got %#v", err)
				}
			})
		})
	}
}

// A lateEnd is a context that ends a moment after its deadline, as on a machine that is busy.
type lateEnd struct {
	context.Context
	deadline time.Time
}

func (l lateEnd) Deadline() (time.Time, bool) { return l.deadline, true }
