package steps

var uniqueStep = Step{
	Title: "A fixed expiry",
	Idea: `A script compares and deletes in one step, so that a release can touch no other lock. The
expiry is chosen longer than the work.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"EVAL 'compare and delete' lock:order A",
	},
	Bug:    "Work takes longer one day. It goes on without the lock, beside the next holder.",
	Source: "unique.go",
	Right: Place{
		File: "internal/engine/times.go",
		Code: "func renewalDelay(ttl time.Duration) time.Duration { return ttl / 3 }",
		Why:  "A lease is renewed every third of its TTL, for as long as its holder lives.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		a, b := s.start("A", "unique", server), s.start("B", "unique", server)
		a.do(orderTry)
		s.say("A's work takes longer than the expiry. B waits.")
		b.do(orderWait)
		s.say("A's key has expired, and B is in. A works on.")
		s.pass(shown)
		a.do(orderLeave)
		b.do(orderLeave)
		return func() verdict { return together(tenures(a, b)) }
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b := s.start("A", "holdfast", server), s.start("B", "holdfast", server)
		a.do(orderTry)
		s.say("A's work takes twice the TTL. B waits.")
		b.begin(orderWait)
		s.pass(2 * ttl)
		a.do(orderLeave)
		b.answer()
		b.do(orderLeave)
		return func() verdict { return apart(tenures(a, b), "A", "B") }
	},
}
