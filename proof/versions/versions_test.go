package versions

import (
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Each step is taken in both directions: a holder of one version, a contender of the other.
func TestVersionsSideBySide(t *testing.T) {
	now, earlier := buildBoth(t, false)
	for name, servers := range map[string]int{"one server": 1, "quorum of three": 3} {
		for direction, pair := range map[string][2]version{"earlier first": {earlier, now},
			"now first": {now, earlier}} {
			t.Run(name+", "+direction, func(t *testing.T) {
				var masters []*redisserver.Server
				for range servers {
					masters = append(masters, redisserver.Start(t))
				}
				s := &side{T: t, first: pair[0].startAgent(t, masters...), second: pair[1].startAgent(t, masters...),
					queue: servers == 1}
				s.checkMutex()
				s.checkReaders()
				s.checkPermits()
				s.checkBreak()
				s.checkTicket()
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
func (s *side) checkMutex() {
	s.Helper()
	holder, contender := s.first, s.second
	token := holder.mustDo(request{Do: "lock", Kind: "mutex", Name: "m", Lease: "l0"}).Token
	for i := range 6 {
		mine, its := leaseName(i), leaseName(i+1)
		contender.mustFail("held", request{Do: "try", Kind: "mutex", Name: "m", Lease: "never"})
		waiting := contender.send(request{Do: "lock", Kind: "mutex", Name: "m", Lease: its})
		s.awaitQueued(holder, "m")
		holder.mustDo(request{Do: "check", Lease: mine})
		holder.mustDo(request{Do: "release", Lease: mine})
		got := contender.await(waiting)
		if got.Error != "" || got.Token <= token {
			s.Fatalf("hand-over %d from %s to %s: token %d after %d, error %q", i, holder.name, contender.name,
				got.Token, token, got.Error)
		}
		token = got.Token
		holder, contender = contender, holder
	}
	holder.mustDo(request{Do: "release", Lease: leaseName(6)})
}

func leaseName(i int) string { return "l" + string(rune('0'+i)) }

// awaitQueued waits until the contender stands in the queue, where there is one.
func (s *side) awaitQueued(p *peer, name string) {
	s.Helper()
	if s.queue {
		p.awaitWaiters(name, 1)
	}
}

// checkReaders share, a writer waits for both, and excludes both.
func (s *side) checkReaders() {
	s.Helper()
	s.first.mustDo(request{Do: "lock", Kind: "read", Name: "rw", Lease: "r1"})
	s.second.mustDo(request{Do: "lock", Kind: "read", Name: "rw", Lease: "r2"})
	for _, p := range []*peer{s.first, s.second} {
		p.mustFail("held", request{Do: "try", Kind: "write", Name: "rw", Lease: "never"})
	}
	writing := s.second.send(request{Do: "lock", Kind: "write", Name: "rw", Lease: "w"})
	s.awaitQueued(s.first, "rw")
	s.second.mustDo(request{Do: "release", Lease: "r2"})
	s.first.mustDo(request{Do: "check", Lease: "r1"})
	s.first.mustDo(request{Do: "release", Lease: "r1"})
	if got := s.second.await(writing); got.Error != "" {
		s.Fatalf("%s: the writer: %s", s.second.name, got.Error)
	}
	s.first.mustFail("held", request{Do: "try", Kind: "read", Name: "rw", Lease: "never"})
	s.second.mustDo(request{Do: "release", Lease: "w"})
}

// permits: three in all, whichever version took them.
func (s *side) checkPermits() {
	s.Helper()
	if !s.queue {
		return // a quorum has no semaphore
	}
	for i, p := range []*peer{s.first, s.second, s.first} {
		p.mustDo(request{Do: "lock", Kind: "semaphore", Name: "s", Lease: "s" + leaseName(i)})
	}
	for _, p := range []*peer{s.first, s.second} {
		p.mustFail("held", request{Do: "try", Kind: "semaphore", Name: "s", Lease: "never"})
	}
	waiting := s.second.send(request{Do: "lock", Kind: "semaphore", Name: "s", Lease: "s4"})
	s.awaitQueued(s.first, "s")
	s.first.mustDo(request{Do: "release", Lease: "s" + leaseName(0)})
	if got := s.second.await(waiting); got.Error != "" {
		s.Fatalf("%s: the fourth permit: %s", s.second.name, got.Error)
	}
	s.second.mustDo(request{Do: "release", Lease: "s4"})
	s.second.mustDo(request{Do: "release", Lease: "s" + leaseName(1)})
	s.first.mustDo(request{Do: "release", Lease: "s" + leaseName(2)})
}

// broken: one version sees the hold of the other, and breaks it. The holder is told why.
func (s *side) checkBreak() {
	s.Helper()
	token := s.first.mustDo(request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b"}).Token
	if got := s.second.mustDo(request{Do: "inspect", Name: "b"}); got.Holders != 1 || got.Foreign != "" {
		s.Fatalf("%s sees %d holders, foreign %q", s.second.name, got.Holders, got.Foreign)
	}
	lost := s.first.send(request{Do: "lost", Lease: "b"})
	s.second.mustDo(request{Do: "break", Name: "b", Token: token})
	if got := s.first.await(lost); got.Class != "lost broken" {
		s.Fatalf("%s lost it by %q, %s", s.first.name, got.Class, got.Error)
	}
	if after := s.second.mustDo(request{Do: "lock", Kind: "mutex", Name: "b", Lease: "b2"}); after.Token <= token {
		s.Fatalf("token %d after %d", after.Token, token)
	}
	s.second.mustDo(request{Do: "release", Lease: "b2"})
}

// ticket: a lease leaves a process of one version, and is taken up by one of the other.
func (s *side) checkTicket() {
	s.Helper()
	token := s.first.mustDo(request{Do: "lock", Kind: "mutex", Name: "t", Lease: "t"}).Token
	ticket := s.first.mustDo(request{Do: "detach", Lease: "t"}).Ticket
	if got := s.second.mustDo(request{Do: "attach", Lease: "t2", Ticket: ticket}); got.Token != token {
		s.Fatalf("attached with token %d, was %d", got.Token, token)
	}
	s.first.mustFail("held", request{Do: "try", Kind: "mutex", Name: "t", Lease: "never"})
	s.second.mustDo(request{Do: "check", Lease: "t2"})
	s.second.mustDo(request{Do: "release", Lease: "t2"})
	s.first.mustFail("ticket", request{Do: "attach", Lease: "t3", Ticket: ticket})
}
