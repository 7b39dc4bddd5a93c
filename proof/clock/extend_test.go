package clock_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A writer that becomes the first in the queue after a fixed reader was extended, past the end that
// the reader had before, is told when the reader's hold is over. It enters then, and not 20 ms
// later. The definition in memory passes the same test in internal/engine.
func TestWriterEntersWhenExtendedReaderEnds(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		const ttl = time.Minute
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		lease, err := a.RWMutex("n", holdfast.WithTTL(ttl), holdfast.WithoutRenewal()).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		first, giveUp := context.WithCancel(t.Context())
		defer giveUp()
		gaveUp, entered := make(chan struct{}), make(chan time.Time, 1)
		go func() {
			defer close(gaveUp)
			_, _ = b.RWMutex("n", holdfast.WithTTL(ttl)).Lock(first)
		}()
		sleep(time.Second)
		go func() {
			if _, err := c.RWMutex("n", holdfast.WithTTL(ttl)).Lock(t.Context()); err != nil {
				t.Error(err)
			}
			entered <- time.Now()
		}()
		sleep(ttl - 3*time.Second)
		began := time.Now()
		if err := lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		over := began.Add(ttl)
		sleep(ttl - 100*time.Millisecond)
		giveUp()
		<-gaveUp
		if at := <-entered; at.Before(over) || at.Sub(over) > 10*time.Millisecond {
			t.Errorf("it entered %v after the end of the hold", at.Sub(over))
		}
	})
}
