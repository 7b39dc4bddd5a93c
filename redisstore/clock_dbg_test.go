package redisstore_test

import (
	"testing"
	"time"
)

func TestDbg(t *testing.T) {
	play(t, func(t *testing.T, s *scene) {
		a, granted := s.actor("a"), time.Now()
		lease := s.lock(a, "n")
		s.wait(s.actor("b"), "n")
		pass(6 * time.Second)
		a.lose(there, s.sha["renew"], 1)
		until(granted.Add(61 * time.Second))
		for _, c := range s.seen(a, granted) {
			t.Log(c.at.Sub(granted), c.op)
		}
		t.Log(lease.Err())
	})
}
