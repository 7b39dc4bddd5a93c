package main

func failoverNaive(s *scene) func() verdict {
	master, replica := s.node(), s.node()
	way := s.network(master)
	a := s.start("A", "unique", way.addr)
	b := s.start("B", "unique", way.addr)
	a.do(orderTry)
	s.say("The master crashes. The replica takes over, without A's key.")
	master.crash()
	way.lead(replica.addr)
	b.do(orderTry)
	s.pass(shown)
	a.do(orderLeave)
	b.do(orderLeave)
	return func() verdict { return together(tenures(a, b)) }
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
	return func() verdict { return apart(tenures(a, b), "A", "B") }
}

func redlockNaive(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*network{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "redlock", ways[0].addr, ways[1].addr, ways[2].addr)
	b := s.start("B", "redlock", addrsOf(masters)...)
	slow := ways[1].holdAnswer("\r\nnx")
	a.begin(orderTry)
	s.wait(slow.arrived)
	s.say("Masters 1 and 2 have granted. The answer of master 2 is slow.")
	s.awaitExpiry(masters[0])
	s.awaitExpiry(masters[1])
	s.say("A's keys have expired. B comes.")
	b.do(orderTry)
	s.say("B is in. The slow answer reaches A.")
	slow.pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return together(tenures(a, b)) }
}

func redlockHoldfast(s *scene) func() verdict {
	masters := s.nodes()
	ways := []*network{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
	a := s.start("A", "holdfast", ways[0].addr, ways[1].addr, ways[2].addr)
	b := s.start("B", "holdfast", addrsOf(masters)...)
	first := s.start("C", "holdfast", addrsOf(masters)...)
	s.say("Three new masters do not count at once: they might have forgotten.")
	first.do(orderWait)
	first.do(orderLeave)
	slow := []*rule{ways[1].holdAnswer(lockName), ways[2].holdAnswer(lockName)}
	a.begin(orderTry)
	s.wait(slow[0].arrived)
	s.wait(slow[1].arrived)
	s.say("The masters have granted. The answers of 2 and 3 are slow.")
	b.do(orderWait)
	s.say("B is in. The slow answers reach A.")
	slow[0].pass()
	slow[1].pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return apart(tenures(a, b), "B") }
}
