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
		long := holdfast.WithTTL(ttl)
		lease := s.take(readers(a, long, holdfast.WithoutRenewal()))
		first, giveUp := context.WithCancel(t.Context())
		gaveUp := s.start(first, writers(b, long))
		sleep(time.Second)
		entered := s.start(t.Context(), writers(c, long))
		sleep(ttl - 3*time.Second)
		began := time.Now()
		if err := lease.Extend(t.Context()); err != nil {
			t.Fatal(err)
		}
		sleep(ttl - 100*time.Millisecond)
		giveUp()
		<-gaveUp
		s.awaitBetween(entered, began, ttl, ttl+10*time.Millisecond)
	})
}
