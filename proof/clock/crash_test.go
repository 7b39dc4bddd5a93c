package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A holder that crashes is replaced within its TTL and 200 ms.
func TestMutexHolderCrashedIsReplacedInTime(t *testing.T) {
	for _, ttl := range []time.Duration{100 * time.Millisecond, time.Second, 15 * time.Second, 5 * time.Minute} {
		for name, crash := range map[string]func(*actor){"silent": func(a *actor) { a.silence() }, "killed": func(a *actor) { a.kill() }} {
			for _, waiters := range []int{1, 3} {
				for at, after := range map[string]time.Duration{"at once": 0, "later": ttl * 7 / 3, "before a renewal": ttl/3*4 - 1} {
					t.Run(fmt.Sprintf("%v/%s/%s/%d", ttl, name, at, waiters), func(t *testing.T) {
						play(t, func(t *testing.T, s *scene) {
							a := s.actor("a")
							s.lock(a, "n", holdfast.WithTTL(ttl))
							line := make([]<-chan got, waiters)
							for i := range line {
								line[i] = s.wait(s.actor(fmt.Sprint(i)), "n", holdfast.WithTTL(ttl))
							}
							pass(after)
							crash(a)
							crashed := time.Now()
							for i := range line {
								g := s.take(line[i])
								if took := g.at.Sub(crashed); g.err != nil || i == 0 && took > ttl+200*time.Millisecond {
									t.Errorf("%d got in after %v, %v", i, took, g.err)
								}
								s.release(g.lease)
							}
						})
					})
				}
			}
		}
	}
}
