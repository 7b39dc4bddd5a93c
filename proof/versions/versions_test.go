package versions

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Each step is taken in both directions: a holder of one version, a contender of the other.
func TestVersionsSideBySide(t *testing.T) {
	now, earlier := both(t, false)
	for name, servers := range map[string]int{"one server": 1, "quorum of three": 3} {
		for direction, pair := range map[string][2]version{"earlier first": {earlier, now}, "now first": {now, earlier}} {
			t.Run(name+", "+direction, func(t *testing.T) {
				var masters []*redisserver.Server
				for range servers {
					masters = append(masters, redisserver.Start(t))
				}
				s := &side{T: t, first: pair[0].run(t, masters...), second: pair[1].run(t, masters...), queue: servers == 1}
				s.mutex()
				s.readers()
				s.permits()
				s.broken()
				s.ticket()
			})
		}
	}
}

// A side has a holder of one version and a contender of the other.
type side struct {
	*testing.T
	first, second *peer
	queue         bool // a quorum has none
}

// mutex: the contender is refused, waits, and gets the lock with a larger token, to and fro.
func (s *side) mutex() {
	s.Helper()
	holder, contender := s.first, s.second
	token := holder.ask(request{Do: "lock", Kind: "mutex", Name: "m", Lease: "l0"}).Token
	for i := range 6 {
		mine, its := lease(i), lease(i+1)
		contender.refused("held", request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
		waiting := contender.begin(request{Do: "lock", Kind: "mutex", Name: "m", Lease: its})
		s.inQueue(holder, "m")
		holder.ask(request{Do: "check", Lease: mine})
		holder.ask(request{Do: "release", Lease: mine})
		got := contender.wait(waiting)
		if got.Error != "" || got.Token <= token {
			s.Fatalf("hand-over %d from %s to %s: token %d after %d, error %q", i, holder.name, contender.name, got.Token, token, got.Error)
		}
		token = got.Token
		holder, contender = contender, holder
	}
	holder.ask(request{Do: "release", Lease: lease(6)})
}

func lease(i int) string { return "l" + string(rune('0'+i)) }

// inQueue waits until the contender stands in the queue, where there is one.
func (s *side) inQueue(p *peer, name string) {
	s.Helper()
	if s.queue {
		p.queued(name, 1)
	}
}

// readers share, a writer waits for both, and excludes both.
func (s *side) readers() {
	s.Helper()
	s.first.ask(request{Do: "lock", Kind: "read", Name: "rw", Lease: "r1"})
	s.second.ask(request{Do: "lock", Kind: "read", Name: "rw", Lease: "r2"})
	for _, p := range []*peer{s.first, s.second} {
		p.refused("held", request{Do: "try", Kind: "write", Name: "rw", Lease: "never"})
	}
	writing := s.second.begin(request{Do: "lock", Kind: "write", Name: "rw", Lease: "w"})
	s.inQueue(s.first, "rw")
	s.second.ask(request{Do: "release", Lease: "r2"})
	s.first.ask(request{Do: "check", Lease: "r1"})
	s.first.ask(request{Do: "release", Lease: "r1"})
	if got := s.second.wait(writing); got.Error != "" {
		s.Fatalf("%s: the writer: %s", s.second.name, got.Error)
	}
	s.first.refused("held", request{Do: "try", Kind: "read", Name: "rw", Lease: "never"})
	s.second.ask(request{Do: "release", Lease: "w"})
}

// permits: three in all, whichever version took them.
func (s *side) permits() {
	s.Helper()
	if !s.queue {
		return // a quorum has no semaphore
	}
	for i, p := range []*peer{s.first, s.second, s.first} {
		p.ask(request{Do: "lock", Kind: "semaphore", Name: "s", Lease: "s" + lease(i)})
	}
	for _, p := range []*peer{s.first, s.second} {
		p.refused("held", request{Do: "try", Kind: "semaphore", Name: "s", Lease: "never"})
	}
	waiting := s.second.begin(request{Do: "lock", Kind: "semaphore", Name: "s", Lease: "s4"})
	s.inQueue(s.first, "s")
	s.first.ask(request{Do: "release", Lease: "s" + lease(0)})
	if got := s.second.wait(waiting); got.Error != "" {
		s.Fatalf("%s: the fourth permit: %s", s.second.name, got.Error)
	}
	s.second.ask(request{Do: "release", Lease: "s4"})
	s.second.ask(request{Do: "release", Lease: "s" + lease(1)})
	s.first.ask(request{Do: "release", Lease: "s" + lease(2)})
}

// broken: one version sees the hold of the other, and breaks it. The holder is told why.
func (s *side) broken() {
	s.Helper()
	token := s.first.ask(request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b"}).Token
	if got := s.second.ask(request{Do: "inspect", Name: "b"}); got.Holders != 1 || got.Foreign != "" {
		s.Fatalf("%s sees %d holders, foreign %q", s.second.name, got.Holders, got.Foreign)
	}
	lost := s.first.begin(request{Do: "lost", Lease: "b"})
	s.second.ask(request{Do: "break", Name: "b", Token: token})
	if got := s.first.wait(lost); got.Class != "lost broken" {
		s.Fatalf("%s lost it by %q, %s", s.first.name, got.Class, got.Error)
	}
	if after := s.second.ask(request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b2"}); after.Token <= token {
		s.Fatalf("token %d after %d", after.Token, token)
	}
	s.second.ask(request{Do: "release", Lease: "b2"})
}

// ticket: a lease leaves a process of one version, and is taken up by one of the other.
func (s *side) ticket() {
	s.Helper()
	token := s.first.ask(request{Do: "lock", Kind: "mutex", Name: "t", Lease: "t"}).Token
	ticket := s.first.ask(request{Do: "detach", Lease: "t"}).Ticket
	if got := s.second.ask(request{Do: "attach", Lease: "t2", Ticket: ticket}); got.Token != token {
		s.Fatalf("attached with token %d, was %d", got.Token, token)
	}
	s.first.refused("held", request{Do: "try", Kind: "mutex", Name: "t", Lease: "never"})
	s.second.ask(request{Do: "check", Lease: "t2"})
	s.second.ask(request{Do: "release", Lease: "t2"})
	s.first.refused("ticket", request{Do: "attach", Lease: "t3", Ticket: ticket})
}
