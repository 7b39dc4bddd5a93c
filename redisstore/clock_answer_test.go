package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// granted is in every answer that grants: "H" and a token, which is the server's microseconds.
const granted = "H1"

// Trap 10: an acquire whose answer is lost is asked again and finds its own hold. Nobody else's is in the way.
func TestClockAcquireAnswerLost(t *testing.T) {
	for name, test := range map[string]struct {
		lost int
		max  time.Duration
	}{
		"once":        {1, 1100 * time.Millisecond},
		"three times": {3, 3500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a := s.actor("a")
				a.lose(back, granted, test.lost)
				asked := time.Now()
				lease := s.lock(a, "n")
				if took := time.Since(asked); took > test.max {
					t.Errorf("took %v", took)
				}
				asks := s.seen(a, asked, "ask")
				if len(asks) != test.lost+1 {
					t.Fatalf("asked %d times", len(asks))
				}
				for _, ask := range asks {
					if ask.args[0] != asks[0].args[0] {
						t.Errorf("another ticket: %q, %q", ask.args[0], asks[0].args[0])
					}
				}
				if got, want := lease.Until(), asks[test.lost].at.Add(15*time.Second-margin(15*time.Second)); !got.Equal(want) {
					t.Errorf("trusted until %v after the last ask", got.Sub(asks[test.lost].at))
				}
				pass(time.Minute)
				s.release(lease)
				pass(time.Minute)
				if left := s.left("n"); left > 0 {
					t.Errorf("after the release the key has %v left", left)
				}
			})
		})
	}
}

// Trap 10 and 12: whoever gives up after a lost answer leaves nothing behind, so that the next need not wait for the TTL.
func TestClockAcquireGivenUp(t *testing.T) {
	for name, try := range map[string]func(context.Context, *actor) error{
		"TryLock": func(ctx context.Context, a *actor) error {
			_, err := a.Mutex("n").TryLock(ctx)
			if !errors.Is(err, holdfast.ErrUnavailable) || errors.Is(err, holdfast.ErrHeld) {
				return err
			}
			return nil
		},
		"Lock with a deadline": func(ctx context.Context, a *actor) error {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			_, err := a.Mutex("n").Lock(ctx)
			if !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return nil
		},
		"polling": func(ctx context.Context, a *actor) error {
			_, err := a.Mutex("n", holdfast.WithPolling(time.Second, 1)).Lock(ctx)
			if !errors.Is(err, holdfast.ErrUnavailable) {
				return err
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				a.lose(back, granted, 1)
				if err := try(t.Context(), a); err != nil {
					t.Fatal(err)
				}
				asked := time.Now()
				next := s.take(s.wait(b, "n"))
				if took := next.at.Sub(asked); next.err != nil || took > 2*time.Second {
					t.Errorf("the next got in after %v, %v", took, next.err)
				}
				pass(time.Minute)
				if err := next.lease.Err(); err != nil {
					t.Errorf("the next lost it: %v", err)
				}
			})
		})
	}
}

// Trap 10: one that joined the line without hearing so keeps its place.
func TestClockJoinAnswerLost(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease := s.lock(a, "n")
		b.lose(back, "|0|", 1)
		first := s.wait(b, "n")
		second := s.wait(c, "n")
		pass(3 * time.Second)
		if asks := s.seen(b, time.Time{}, "ask"); len(asks) < 2 || asks[0].args[0] != asks[len(asks)-1].args[0] {
			t.Errorf("%d asks", len(asks))
		}
		s.release(lease)
		released := time.Now()
		g := s.take(first)
		if g.err != nil || !g.at.Equal(released) {
			t.Errorf("the first got in after %v, %v", g.at.Sub(released), g.err)
		}
		s.release(g.lease)
		if g := s.take(second); g.err != nil || !g.at.Equal(released) {
			t.Errorf("the second got in after %v, %v", g.at.Sub(released), g.err)
		}
	})
}

// Trap 11: a release whose answer is lost is given back or uncertain, never "not held"; whoever came next keeps what it has.
func TestClockReleaseAnswerLost(t *testing.T) {
	for name, test := range map[string]struct {
		lose    func(*scene, *actor)
		timeout time.Duration
		max     time.Duration
		want    error
		freed   bool // at the server, at once
	}{
		"answer":           {func(s *scene, a *actor) { a.lose(back, ":1\r\n", 1) }, 0, 1200 * time.Millisecond, nil, true},
		"request":          {func(s *scene, a *actor) { a.lose(there, s.sha["free"], 1) }, 0, 1200 * time.Millisecond, nil, false},
		"all answers":      {func(s *scene, a *actor) { a.silence(back) }, 0, 5 * time.Second, holdfast.ErrUncertain, true},
		"all":              {func(s *scene, a *actor) { a.silence() }, 0, 5 * time.Second, holdfast.ErrUncertain, false},
		"a short patience": {func(s *scene, a *actor) { a.silence() }, 50 * time.Millisecond, 50 * time.Millisecond, holdfast.ErrUncertain, false},
	} {
		for kind, waiting := range map[string]bool{"alone": false, "while others wait": true} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				play(t, func(t *testing.T, s *scene) {
					a, b := s.actor("a", func(c *holdfast.Config) { c.ReleaseTimeout = test.timeout }), s.actor("b")
					lease := s.lock(a, "n")
					var waiter <-chan got
					if waiting {
						waiter = s.wait(b, "n")
					}
					pass(3 * time.Second)
					released := time.Now()
					test.lose(s, a)
					err := lease.Release(t.Context())
					if took := time.Since(released); !errors.Is(err, test.want) || took > test.max {
						t.Errorf("got %v after %v", err, took)
					}
					if errors.Is(err, holdfast.ErrNotHeld) || errors.Is(err, holdfast.ErrLost) {
						t.Errorf("got %v", err)
					}
					if err := lease.Release(t.Context()); !errors.Is(err, holdfast.ErrNotHeld) {
						t.Errorf("second release: %v", err)
					}
					if !waiting {
						waiter = s.wait(b, "n")
					}
					next := s.take(waiter)
					if waiting && test.freed && !next.at.Equal(released) {
						t.Errorf("the next got in after %v", next.at.Sub(released))
					}
					a.resume()
					pass(time.Minute)
					if err := next.lease.Err(); err != nil {
						t.Errorf("the next lost it: %v", err)
					}
				})
			})
		}
	}
}

// Trap 35: an acquire that reaches the server after its sender gave up does nothing: it neither holds nor joins the line.
func TestClockNotAfter(t *testing.T) {
	for name, test := range map[string]struct {
		known bool // the client has heard the server's time before
		held  bool
		lock  func(*holdfast.Mutex, context.Context) (*holdfast.Lease, error)
	}{
		"TryLock":            {true, false, (*holdfast.Mutex).TryLock},
		"TryLock, the first": {false, false, (*holdfast.Mutex).TryLock},
		"Lock":               {true, false, (*holdfast.Mutex).Lock},
		"Lock, held":         {true, true, (*holdfast.Mutex).Lock},
		"Lock, the first":    {false, true, (*holdfast.Mutex).Lock},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				if test.known {
					s.release(s.lock(a, "other"))
				}
				if test.held {
					s.lock(b, "n")
				}
				began := time.Now()
				a.slow(there, s.sha["ask"], 10, 1100*time.Millisecond)
				a.lose(there, s.sha["free"], 100) // its cleaning up does not help
				ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
				defer cancel()
				if lease, err := test.lock(a.Mutex("n"), ctx); err == nil {
					t.Fatalf("got a lease %v", lease.Token())
				}
				if took := time.Since(began); took > 900*time.Millisecond {
					t.Errorf("gave up after %v", took)
				}
				pass(2 * time.Second)
				if n := len(s.seen(a, began, "ask")); n == 0 {
					t.Fatal("the request did not arrive, so this test shows nothing")
				}
				if s.rdb.Exists(t.Context(), key("n")).Val() != 0 && !test.held {
					t.Errorf("it took effect: the key has %v left", s.left("n"))
				}
				if kind := s.rdb.Type(t.Context(), key("n")).Val(); test.held && kind != "string" {
					t.Errorf("it joined the line: the key is a %s", kind)
				}
			})
		})
	}
}
