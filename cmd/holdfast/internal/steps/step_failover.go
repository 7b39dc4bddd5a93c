package steps

var failoverStep = Step{
	Title: "One node's crash",
	Idea: `The server must not be a single point of failure, so it has a replica, which takes over when it
crashes.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"SET lock:order B PX 1500 NX",
	},
	Bug: `Replication is asynchronous. The replica may not have the lock yet when it takes over, and then
lets a second process in.`,
	Source: "unique.go",
	Right: Place{
		File: "internal/quorum/node.go",
		Code: "func (p *Protocol) counts(f facts) bool {\n\treturn (f.counts || p.config.Trust) && !f.ahead && f.same == nil\n}",
		Why: `A quorum needs no replication: most of its masters have each lock. A master that comes back
without its data does not count until all that it forgot is over.`,
	},
	naive: func(s *scene) func() verdict {
		master, replica := s.node(), s.node()
		way := s.network(master)
		a := s.process(role{Name: "A", Lock: "unique", Addrs: []string{way.addr()}})
		b := s.process(role{Name: "B", Lock: "unique", Addrs: []string{way.addr()}})
		a.do(orderTry)
		s.say("The master crashes. The replica takes over, without A's key.")
		master.crash()
		way.lead(replica.addr)
		b.do(orderTry)
		s.pass(shown)
		a.do(orderLeave)
		b.do(orderLeave)
		return func() verdict { return together(tenures(a, b)) }
	},
	holdfast: func(s *scene) func() verdict {
		masters := []*node{s.node(), s.node(), s.node()}
		addrs := addrsOf(masters)
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: addrs})
		b := s.process(role{Name: "B", Lock: "holdfast", Addrs: addrs})
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
	},
}

func addrsOf(nodes []*node) (addrs []string) {
	for _, n := range nodes {
		addrs = append(addrs, n.addr)
	}
	return addrs
}
