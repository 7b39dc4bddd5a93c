package clock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// The release of a lost lease says that its holder has stopped. So the next waiter need not wait
// until the server has missed the holder. It would find that out by asking, up to 6 s later. A min
// hold is kept all the same.
func TestLeaseReleaseAfterLossLetsNextIn(t *testing.T) {
	for name, test := range map[string]struct {
		options []holdfast.Option
		lost    time.Duration // released at its loss if 0, else then
		next    time.Duration // when the next gets in
	}{
		"max hold": {[]holdfast.Option{holdfast.WithMaxHold(time.Minute)}, 0, time.Minute - margin(time.Minute)},
		"fixed":    {[]holdfast.Option{holdfast.WithoutRenewal()}, 0, 3*time.Second - margin(3*time.Second)},
		"fixed, min hold": {[]holdfast.Option{holdfast.WithoutRenewal(), holdfast.WithMinHold(4 * time.Second)},
			3500 * time.Millisecond, 4 * time.Second},
		"max hold, min hold": {[]holdfast.Option{holdfast.WithMaxHold(time.Minute), holdfast.WithMinHold(time.Minute)}, 0, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *scene) {
				a, b := s.actor("a"), s.actor("b")
				lease, began := s.lock(a, "n", append(test.options, holdfast.WithTTL(3*time.Second))...), time.Now()
				waiter := s.wait(b, "n")
				<-lease.Done()
				if test.lost > 0 {
					until(began.Add(test.lost))
				}
				if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("got %v", err)
				}
				g := s.take(waiter)
				if in := g.at.Sub(began); g.err != nil || in < test.next || in > test.next+2*time.Millisecond {
					t.Errorf("the next got in after %v, %v; want %v", in, g.err, test.next)
				}
			})
		})
	}
}
