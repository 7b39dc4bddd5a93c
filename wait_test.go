package holdfast_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
)

// waits are all calls that wait, on names that another client holds, with an option.
func waits(one *holdfast.Client, option ...holdfast.Option) map[string]func(context.Context) error {
	lease := func(_ *holdfast.Lease, err error) error { return err }
	m, rw := one.Mutex("m", option...), one.RWMutex("r", option...)
	fail := func(context.Context) error { return errors.New("it ran") }
	with := func(more ...holdfast.Option) []holdfast.Option { return append(more, option...) }
	return map[string]func(context.Context) error{
		"Mutex.Lock": func(ctx context.Context) error { return lease(m.Lock(ctx)) },
		"Mutex.Do":   func(ctx context.Context) error { return m.Do(ctx, fail) },
		"Mutex.Lock, strict": func(ctx context.Context) error {
			return lease(one.Mutex("m", with(holdfast.WithStrictOrder())...).Lock(ctx))
		},
		"Mutex.Lock, polling": func(ctx context.Context) error {
			return lease(one.Mutex("m", with(holdfast.WithPolling(7*time.Millisecond, 0))...).Lock(ctx))
		},
		"RWMutex.Lock":      func(ctx context.Context) error { return lease(rw.Lock(ctx)) },
		"RWMutex.RLock":     func(ctx context.Context) error { return lease(rw.RLock(ctx)) },
		"Semaphore.Acquire": func(ctx context.Context) error { return lease(one.Semaphore("s", 2, option...).Acquire(ctx, 1)) },
		"Group.Lock":        func(ctx context.Context) error { return lease(one.All([]string{"a", "m", "z"}, option...).Lock(ctx)) },
		"Group.Lock, polling": func(ctx context.Context) error {
			return lease(one.All([]string{"a", "m"}, with(holdfast.WithPolling(7*time.Millisecond, 0))...).Lock(ctx))
		},
		"Election.Campaign": func(ctx context.Context) error { return lease(one.Election("e", option...).Campaign(ctx)) },
		"Election.Run":      func(ctx context.Context) error { return one.Election("e", option...).Run(ctx, fail) },
		"Latch.Wait":        func(ctx context.Context) error { return one.Latch("l", option...).Wait(ctx) },
	}
}

// taken takes all names of waits.
func taken(t *testing.T, other *holdfast.Client) {
	for _, take := range []func(context.Context) (*holdfast.Lease, error){
		other.Mutex("m").Lock, other.RWMutex("r").Lock, other.Election("e").Campaign,
		func(ctx context.Context) (*holdfast.Lease, error) { return other.Semaphore("s", 2).Acquire(ctx, 2) },
	} {
		_, err := take(t.Context())
		must(t, err)
	}
	must(t, other.Latch("l").Set(t.Context(), 1))
}

// WithWait ends every wait at its time, with an error of its own, and leaves ctx as it was. The
// waiting of a whole group counts. As the last answer said that another holds, the error matches
// ErrHeld and names the holder, as that of a try does. Nobody holds what a latch waits for.
func TestWithWait(t *testing.T) {
	const most = 3 * time.Second
	pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
		taken(t, other)
		for name, wait := range waits(one, holdfast.WithWait(most)) {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			err := wait(ctx)
			var waited *holdfast.WaitError
			if !errors.As(err, &waited) || !errors.Is(err, holdfast.ErrWaitOver) || waited.Reason != holdfast.WaitOver || waited.Waited != most {
				t.Errorf("%s: %v", name, err)
			}
			var held *holdfast.HeldError
			if isHeld := name != "Latch.Wait"; errors.Is(err, holdfast.ErrHeld) != isHeld || errors.As(err, &held) != isHeld {
				t.Errorf("%s: %v: held %+v", name, err, held)
			} else if isHeld && (held.Holder != waited.Holder || held.Holder == "" || held.Token != waited.Token || held.Kind == "" || held.Name != waited.Name) {
				t.Errorf("%s: %+v", name, held)
			}
			if n := strings.Count(err.Error(), "held by"); n > 1 {
				t.Errorf("%s: %v says it %d times", name, err, n)
			}
			for _, other := range []error{holdfast.ErrUnavailable, context.DeadlineExceeded, context.Canceled} {
				if errors.Is(err, other) {
					t.Errorf("%s: %v matches %v", name, err, other)
				}
			}
			if took := time.Since(start); took != most || ctx.Err() != nil {
				t.Errorf("%s: it took %v, and ctx: %v", name, took, ctx.Err())
			}
			cancel()
		}
	})
}

// A wait without any answer is no "busy": the server is away. So it is behind a goroutine that
// waits for the same answer, and if the time is over before a request is. Once there was an answer,
// its word counts, and the error tells also that the server was away at last (trap 22).
func TestWithWaitAtSilentServer(t *testing.T) {
	for what, test := range map[string]struct {
		most     time.Duration
		answered bool // the first request
	}{
		"long": {most: 5 * time.Second}, "short": {most: 20 * time.Millisecond}, "answered once": {most: 10 * time.Second, answered: true},
	} {
		for name := range waits(new(holdfast.Client)) {
			if test.answered && (name == "Latch.Wait" || name == "Group.Lock") { // nobody holds, or this client
				continue
			}
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := memory.New(protocol.Features{Queue: true, Tokens: true})
					other, err := holdfast.NewOn(server.Connect("p"), nil)
					must(t, err)
					defer other.Close()
					taken(t, other)
					s := &silence{Protocol: server.Connect("p"), reason: protocol.NoAnswer, err: os.ErrDeadlineExceeded}
					one, err := holdfast.NewOn(s, nil)
					must(t, err)
					defer one.Close()
					s.silent.Store(!test.answered)
					ended := make(chan error, 2)
					for range cap(ended) {
						go func() { ended <- waits(one, holdfast.WithWait(test.most))[name](t.Context()) }()
						synctest.Wait()
					}
					s.silent.Store(true)
					for range cap(ended) {
						err := <-ended
						if errors.Is(err, holdfast.ErrHeld) != test.answered || errors.Is(err, holdfast.ErrWaitOver) != test.answered ||
							!errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
							t.Error(err)
						}
						if waited := (*holdfast.WaitError)(nil); !errors.As(err, &waited) || waited.Waited != test.most {
							t.Errorf("got %+v", err)
						}
					}
					s.silent.Store(false)
				})
			})
		}
	}
}

// ctx ends a wait that it bounds more closely, with its own error.
func TestWithWaitBesideContext(t *testing.T) {
	pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
		taken(t, other)
		for name, wait := range waits(one, holdfast.WithWait(time.Minute)) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrWaitOver) || errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
			cancel()
		}
	})
}

// Polling and WithWait: the first to end counts, with its own error.
func TestWithWaitBesidePolling(t *testing.T) {
	pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
		taken(t, other)
		for attempts, want := range map[int]error{3: holdfast.ErrHeld, 300: holdfast.ErrWaitOver} {
			_, err := one.Mutex("m", holdfast.WithPolling(100*time.Millisecond, attempts), holdfast.WithWait(time.Second)).Lock(t.Context())
			if over := attempts > 3; !errors.Is(err, want) || !errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrWaitOver) != over {
				t.Errorf("%d attempts: %v", attempts, err)
			}
		}
	})
}

// Config.Wait bounds what waits for a Mutex, an RWMutex, a Semaphore and a Group, and nothing else.
func TestConfigWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		open := func(wait time.Duration) *holdfast.Client {
			client, err := holdfast.NewOn(server.Connect("p"), &holdfast.Config{Wait: wait})
			must(t, err)
			t.Cleanup(func() { client.Close() })
			return client
		}
		taken(t, open(0))
		one := open(2 * time.Second)
		for name, wait := range waits(one) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			want := holdfast.ErrWaitOver
			if name == "Election.Campaign" || name == "Election.Run" || name == "Latch.Wait" {
				want = context.DeadlineExceeded
			}
			if err := wait(ctx); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
			cancel()
		}
		if _, err := one.Mutex("m").TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("TryLock: %v", err)
		}
		start := time.Now()
		if _, err := one.Mutex("m", holdfast.WithWait(5*time.Second)).Lock(t.Context()); !errors.Is(err, holdfast.ErrWaitOver) || time.Since(start) != 5*time.Second {
			t.Errorf("an option of its own: %v after %v", err, time.Since(start))
		}
	})
}

// A goroutine waits in the pool of its process no longer than WithWait says, also behind a leader
// that waits longer, and after it became the leader. No waiter behind it is held up.
func TestWithWaitInPool(t *testing.T) {
	pair(t, func(t *testing.T, _ *faulty, one, other *holdfast.Client) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // longer than all of them wait
		defer cancel()
		lease, err := other.Mutex("m").Lock(ctx)
		must(t, err)
		start, ended := time.Now(), make(chan error, 3)
		for _, most := range []time.Duration{4 * time.Second, 2 * time.Second, 6 * time.Second} {
			go func() {
				_, err := one.Mutex("m", holdfast.WithWait(most)).Lock(ctx)
				if took := time.Since(start); took != most {
					t.Errorf("WithWait(%v) ended after %v", most, took)
				}
				ended <- err
			}()
			synctest.Wait()
		}
		got := make(chan *holdfast.Lease)
		go func() {
			lease, err := one.Mutex("m").Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- lease
		}()
		for range cap(ended) {
			if err := <-ended; !errors.Is(err, holdfast.ErrWaitOver) {
				t.Error(err)
			}
		}
		must(t, lease.Release())
		must(t, (<-got).Release())
	})
}

// With Do, ctx bounds the waiting and the work, and WithWait the waiting alone.
func TestWithWaitDoesNotBoundWork(t *testing.T) {
	pair(t, func(t *testing.T, _ *faulty, one, _ *holdfast.Client) {
		m := one.Mutex("m", holdfast.WithWait(time.Second))
		must(t, m.Do(t.Context(), func(ctx context.Context) error {
			<-time.After(time.Minute)
			if _, bounded := ctx.Deadline(); bounded {
				t.Error("the work has a deadline")
			}
			return ctx.Err()
		}))
		lease, err := m.Lock(t.Context())
		must(t, err)
		<-time.After(time.Minute)
		must(t, leased.Context(lease).Err())
		must(t, lease.Release())
	})
}
