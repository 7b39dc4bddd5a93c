package main

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
)

func failoverNaive(s *scene) func() verdict {
	master, replica := s.node(), s.node()
	way := s.network(master)
	a := s.start("A", "unique", way.Addr())
	b := s.start("B", "unique", way.Addr())
	a.do(orderTry)
	s.say("The master crashes. The replica takes over, without A's key.")
	master.crash()
	way.Lead(replica.addr)
	way.Cut()
	b.do(orderTry)
	s.pass(shown)
	a.do(orderLeave)
	b.do(orderLeave)
	return func() verdict { return together("the replica did not know the lock of A", tenures(a, b)) }
}

func failoverHoldfast(s *scene) func() verdict {
	masters := s.nodes()
	addrs := addrsOf(masters)
	a, b := s.start("A", "holdfast", addrs...), s.start("B", "holdfast", addrs...)
	s.say("Three new masters do not count at once: they might have forgotten.")
	a.do(orderWait)
	masters[0].crash()
	s.nodeAt(addrs[0])
	s.say("Master 1 crashes, and is back at once, empty.")
	b.do(orderTry)
	b.begin(orderWait)
	s.pass(2 * ttl)
	a.do(orderLeave)
	b.answer()
	b.do(orderLeave)
	return func() verdict { return apart("the crash of a master freed nothing", tenures(a, b), "A", "B") }
}

func redlockNaive(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*fault.Proxy{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "redlock", ways[0].Addr(), ways[1].Addr(), ways[2].Addr())
	b := s.start("B", "redlock", addrsOf(masters)...)
	slow := ways[1].HoldAnswer("\r\nnx")
	a.begin(orderTry)
	s.wait(slow.Arrived())
	s.say("Masters 1 and 2 have granted. The answer of master 2 is slow.")
	s.awaitExpiry(masters[0], lockName)
	s.awaitExpiry(masters[1], lockName)
	s.say("A's keys have expired. B comes.")
	b.do(orderTry)
	s.say("B is in. The slow answer reaches A.")
	slow.Pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return together("A counted keys that had expired", tenures(a, b)) }
}

func redlockHoldfast(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*fault.Proxy{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "holdfast", ways[0].Addr(), ways[1].Addr(), ways[2].Addr())
	b := s.start("B", "holdfast", addrsOf(masters)...)
	first := s.start("C", "holdfast", addrsOf(masters)...)
	s.say("Three new masters do not count at once: they might have forgotten.")
	first.do(orderWait)
	first.do(orderLeave)
	slow := []*fault.Held{ways[1].HoldAnswer(lockName), ways[2].HoldAnswer(lockName)}
	a.begin(orderTry)
	s.wait(slow[0].Arrived())
	s.wait(slow[1].Arrived())
	s.say("The masters have granted. The answers of 2 and 3 are slow.")
	b.do(orderWait)
	s.say("B is in. The slow answers reach A.")
	slow[0].Pass()
	slow[1].Pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return apart("late answers gave A no lease", tenures(a, b), "B") }
}

func giveBackNaive(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*fault.Proxy{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "give back", ways[0].Addr(), ways[1].Addr(), ways[2].Addr())
	b := s.startRole(role{Name: "B", Lock: "give back", Addrs: addrsOf(masters), Every: ttl / 3})
	s.say("The answers of masters 2 and 3 to A will get lost.")
	lost := []<-chan struct{}{ways[1].DropAnswer("\r\nnx"), ways[2].DropAnswer("\r\nnx")}
	got := a.do(orderTry)
	s.wait(lost[0])
	s.wait(lost[1])
	s.say("A has given up, and has given back at master 1. B comes.")
	gaveUp := time.Now()
	b.do(orderWait)
	s.pass(shown)
	return func() verdict {
		waited := b.entries()[0].From.Sub(gaveUp)
		return verdictf(!got && waited > ttl/2, "nobody was inside, and B waited for %s", formatTime(waited))
	}
}

func giveBackHoldfast(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*fault.Proxy{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "holdfast", ways[0].Addr(), ways[1].Addr(), ways[2].Addr())
	b := s.start("B", "holdfast", addrsOf(masters)...)
	s.say("Three new masters do not count at once: they might have forgotten.")
	b.do(orderWait)
	b.do(orderLeave)
	s.say("The answers of masters 2 and 3 to A will get lost.")
	lost := []<-chan struct{}{ways[1].DropAnswer(lockName), ways[2].DropAnswer(lockName)}
	a.do(orderWait)
	s.wait(lost[0])
	s.wait(lost[1])
	b.begin(orderWait)
	s.pass(shown)
	a.do(orderLeave)
	b.answer()
	s.pass(shown)
	return func() verdict {
		return apart("A asked again, and gave back everywhere", tenures(a, b), "B", "A", "B")
	}
}
