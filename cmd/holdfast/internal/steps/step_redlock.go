package steps

var redLockStep = Step{
	Title: "RedLock without validity",
	Idea: `There are several masters without replication. A process asks each of them for the key, and
holds the lock if most of them grant it.`,
	Commands: []string{
		"master 1: SET lock:order A PX 1500 NX",
		"master 2: SET lock:order A PX 1500 NX",
		"master 3: SET lock:order A PX 1500 NX",
	},
	Bug: `The answers take time, and the expiry runs meanwhile. A process that does not subtract that time
may count keys that are gone.`,
	Source: "redlock.go",
	Right: Place{
		File: "internal/engine/attempt.go",
		Code: "from: sent, ttl: ttl, renewAfter: renewalDelay(ttl),",
		Why: `The time of a lease begins when its request is sent, not when it is answered. A majority that
answers too late gives no lease, and what it granted is given back.`,
	},
	naive: func(s *scene) func() verdict {
		masters := []*node{s.node(), s.node(), s.node()}
		ways := []*network{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
		a := s.process(role{Name: "A", Lock: "redlock", Addrs: []string{ways[0].addr(), ways[1].addr(), ways[2].addr()}})
		b := s.process(role{Name: "B", Lock: "redlock", Addrs: addrsOf(masters)})
		slow := ways[1].holdAnswer("\r\nnx")
		a.begin(orderTry)
		s.until(slow.seen)
		s.say("Masters 1 and 2 have granted. The answer of master 2 is slow.")
		s.gone(masters[0])
		s.gone(masters[1])
		s.say("A's keys have expired. B comes.")
		b.do(orderTry)
		s.say("B is in. The slow answer reaches A.")
		slow.pass()
		a.answer()
		s.pass(shown)
		return func() verdict { return together(tenures(a, b)) }
	},
	holdfast: func(s *scene) func() verdict {
		masters := []*node{s.node(), s.node(), s.node()}
		ways := []*network{s.network(masters[0]), s.network(masters[1]), s.network(masters[2])}
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: []string{ways[0].addr(), ways[1].addr(), ways[2].addr()}})
		b := s.process(role{Name: "B", Lock: "holdfast", Addrs: addrsOf(masters)})
		first := s.process(role{Name: "C", Lock: "holdfast", Addrs: addrsOf(masters)})
		s.say("Three new masters do not count at once: they might have forgotten.")
		first.do(orderWait)
		first.do(orderLeave)
		slow := []*rule{ways[1].holdAnswer(lockName), ways[2].holdAnswer(lockName)}
		a.begin(orderTry)
		s.until(slow[0].seen)
		s.until(slow[1].seen)
		s.say("The masters have granted. The answers of 2 and 3 are slow.")
		b.do(orderWait)
		s.say("B is in. The slow answers reach A.")
		slow[0].pass()
		slow[1].pass()
		a.answer()
		s.pass(shown)
		return func() verdict { return apart(tenures(a, b), "B") }
	},
}
