package clock_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A process passes a lock among its goroutines for 5 ms, then one of another process gets in; where
// nobody waits elsewhere it goes on, for a command each 5 ms.
func TestMutexPassedInProcessForOneSlice(t *testing.T) {
	const hold, slice = time.Millisecond, 5 * time.Millisecond
	for name, others := range map[string]int{"nobody else": 0, "one other": 1, "three others": 3} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a := s.actor("a")
				ctx, stop := withCancel(t)
				began := time.Now()
				var all sync.WaitGroup
				var mine, theirs turns
				for range 4 {
					all.Go(func() { mine.take(ctx, a, hold) })
				}
				for i := range others {
					b := s.actor(string(rune('b' + i)))
					all.Go(func() { theirs.take(ctx, b, hold) })
				}
				pass(time.Second)
				stop()
				all.Wait()

				commands := len(s.seen(a, began, "ask", "free", "renew"))
				if each := float64(commands) / float64(mine.n); each > 0.25 {
					t.Errorf("%d commands for %d acquisitions", commands, mine.n)
				}
				if longest := slice + hold + time.Duration(others-1)*hold; others > 0 && theirs.longest > longest {
					t.Errorf("another process waited %v, want at most %v", theirs.longest, longest)
				}
				if rounds := time.Second / (slice + hold + time.Duration(others)*hold); others > 0 && theirs.n < others*int(rounds) {
					t.Errorf("others got in %d times, want %d each", theirs.n, rounds)
				}
				if others > 0 && mine.n < 4*theirs.n/others {
					t.Errorf("passed on %d times, while others got in %d times", mine.n, theirs.n)
				}
			})
		})
	}
}

// turns are those of some goroutines.
type turns struct {
	mu      sync.Mutex
	n       int
	longest time.Duration // waited, but for the first two
}

func (r *turns) take(ctx context.Context, a *actor, hold time.Duration) {
	for i := 0; ; i++ {
		asked := time.Now()
		lease, err := a.Mutex("n", holdfast.WithTTL(time.Second)).Lock(ctx)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.n++
		if i > 1 {
			r.longest = max(r.longest, time.Since(asked))
		}
		r.mu.Unlock()
		<-time.After(hold)
		_ = lease.Release()
	}
}
