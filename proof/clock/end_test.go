package clock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Waiting ends when its ctx does, to the nanosecond, whatever the network does (traps 20, 22).
func TestMutexWaitEndsWithContext(t *testing.T) {
	for name, test := range map[string]struct {
		silent  time.Duration // after the beginning; negative: never
		options []holdfast.Option
		answers bool // some came
	}{
		"waiting in the queue":      {-1, nil, true},
		"in strict order":           {-1, []holdfast.Option{holdfast.WithStrictOrder()}, true},
		"polling":                   {-1, []holdfast.Option{holdfast.WithPolling(7*time.Millisecond, 0)}, true},
		"silent from the beginning": {0, nil, false},
		"silent, polling":           {0, []holdfast.Option{holdfast.WithPolling(7*time.Millisecond, 0)}, false},
		"silent after a while":      {time.Second, nil, true},
	} {
		for kind, want := range map[string]error{"deadline": context.DeadlineExceeded, "cancel": context.Canceled} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, b, began := s.actor("a"), s.actor("b"), time.Now()
					s.lock(a, "n")
					const limit = 13*time.Second + 1
					ctx, cancel := withCancel(t)
					if kind == "deadline" {
						ctx, cancel = context.WithTimeout(ctx, limit)
						defer cancel()
					} else {
						time.AfterFunc(limit, cancel)
					}
					if test.silent == 0 {
						b.silence()
					}
					waiter := s.waitFor(ctx, b, "n", test.options...)
					if test.silent > 0 {
						pass(test.silent)
						b.silence()
					}
					g := s.take(waiter)
					var wait *holdfast.WaitError
					if !errors.Is(g.err, want) || !errors.As(g.err, &wait) || errors.Is(g.err, holdfast.ErrHeld) {
						t.Errorf("got %v", g.err)
					} else if wait.Waited != limit || test.answers && wait.Holder != "a" {
						t.Errorf("got %+v", wait)
					}
					if errors.Is(g.err, holdfast.ErrUnavailable) == test.answers && test.silent < 0 {
						t.Errorf("got %v", g.err)
					}
					if took := g.at.Sub(began); took != limit {
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// TryLock on a silent network takes no longer than one request may; the first of a client asks what
// the server is before that, for a second at most.
func TestMutexTryOnSilentNetworkEndsInTime(t *testing.T) {
	for _, ttl := range []time.Duration{120 * time.Millisecond, 3 * time.Second, time.Minute} {
		for name, known := range map[string]bool{"first": false, "later": true} {
			t.Run(fmt.Sprint(ttl, "/", name), func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a := s.actor("a")
					if known {
						s.release(s.lock(a, "other"))
					}
					a.silence()
					for range 3 { // the connection at hand first, then new ones
						began := time.Now()
						_, err := a.Mutex("n", holdfast.WithTTL(ttl)).TryLock(t.Context())
						want := min(ttl/6, time.Second)
						if !known {
							want = time.Second
						}
						if took := time.Since(began); took > want || !errors.Is(err, holdfast.ErrUnavailable) {
							t.Errorf("%v after %v, want %v", err, took, want)
						}
					}
				})
			})
		}
	}
}
