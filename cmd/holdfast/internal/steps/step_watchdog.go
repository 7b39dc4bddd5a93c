package steps

var watchdogStep = Step{
	Title: "A watchdog that learns too late",
	Idea: `A watchdog renews the lock every third of its expiry, so that the lock lives as long as its
holder.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"EVAL 'compare and expire' lock:order A 1500",
		"EVAL 'compare and delete' lock:order A",
	},
	Bug: `The watchdog learns of a loss from an answer of the server. While the network is silent, no
answer comes, the key expires, and the holder works on.`,
	Source: "watchdog.go",
	Right: Place{
		File: "internal/engine/hold.go",
		Code: "h.trustEnd = sent.Add(ttl - margin(ttl))",
		Why: `A lease ends by the holder's own clock, counted from the moment at which the last confirmed
request was sent, and a margin before the server lets another process in. No answer is needed to
end it.`,
	},
	naive:    func(s *scene) func() verdict { return silence(s, "watchdog", together) },
	holdfast: func(s *scene) func() verdict { return silence(s, "holdfast", aThenB) },
}

func aThenB(list []tenure) verdict { return apart(list, "A", "B") }

// silence cuts A off while it holds.
func silence(s *scene, lock string, judge func([]tenure) verdict) func() verdict {
	server := s.node()
	way := s.network(server)
	a := s.process(role{Name: "A", Lock: lock, Addrs: []string{way.addr()}})
	b := s.start("B", lock, server)
	a.do(orderTry)
	s.until(way.answered("pexpire"))
	way.silence()
	s.say("A has renewed. Now A's network falls silent. B waits.")
	b.do(orderWait)
	s.say("B is in.")
	s.pass(shown)
	s.say("A's network is back.")
	way.speak()
	a.do(orderLeave)
	return func() verdict { return judge(tenures(a, b)) }
}
