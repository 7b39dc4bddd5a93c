package clock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// granted is in every answer that grants: it begins with "H".
const granted = "\nH"

// Trap 10: an acquire whose answer is lost is asked again and finds its own hold. Nobody else's is
// in the way.
func TestMutexLockAnswerLostFindsItsHold(t *testing.T) {
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

// Trap 10 and 12: whoever gives up after a lost answer leaves nothing behind, so that the next need
// not wait for the TTL.
func TestMutexLockGivenUpLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		try  func(context.Context, *actor) (*holdfast.Lease, error)
		want error
	}{
		"TryLock": {func(ctx context.Context, a *actor) (*holdfast.Lease, error) { return a.Mutex("n").TryLock(ctx) }, holdfast.ErrUnavailable},
		"Lock with a deadline": {func(ctx context.Context, a *actor) (*holdfast.Lease, error) {
			ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
			defer cancel()
			lease, err := a.Mutex("n").Lock(ctx)
			if err == nil { // at the very end it may be asked again
				_ = lease.Release()
				<-ctx.Done()
				err = ctx.Err()
			}
			return nil, err
		}, context.DeadlineExceeded},
		"polling": {func(ctx context.Context, a *actor) (*holdfast.Lease, error) {
			return a.Mutex("n", holdfast.WithPolling(time.Second, 1)).Lock(ctx)
		}, holdfast.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				a.lose(back, granted, 1)
				if lease, err := test.try(t.Context(), a); !errors.Is(err, test.want) || errors.Is(err, holdfast.ErrHeld) {
					t.Fatalf("%v, %v", lease, err)
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

// Trap 10: one that joined the queue without hearing so keeps its place.
func TestQueueJoinAnswerLostKeepsPlace(t *testing.T) {
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
