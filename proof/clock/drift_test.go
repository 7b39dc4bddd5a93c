package clock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// Renewals of one reader must not bring forward the end of another's hold.
func TestReaderRenewalsKeepOtherReader(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, b, c := s.actor("a"), s.actor("b"), s.actor("c")
		const ttl = 10 * time.Second
		long, err := a.RWMutex("n", holdfast.WithoutRenewal(), holdfast.WithTTL(ttl)).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		pass(300 * time.Microsecond)
		short, err := b.RWMutex("n", holdfast.WithTTL(100*time.Millisecond)).RLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		until(began.Add(ttl - 300*time.Millisecond))

		s.release(short)
		for long.Err() == nil {
			if _, err := c.RWMutex("n").TryLock(t.Context()); err == nil {
				t.Fatalf("a writer is in at %v, and a reader is trusted for %v more", time.Since(began), time.Until(long.Until()))
			}
			pass(5 * time.Millisecond)
		}
	})
}
