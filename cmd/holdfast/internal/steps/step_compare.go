package steps

import "time"

var compareStep = Step{
	Title: "Ask, then delete",
	Idea: `The value of the key is unique to its holder. A release gets the value first, and deletes the
key only if the value is its own.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"GET lock:order",
		"DEL lock:order",
	},
	Bug:    "GET and DEL are two commands. Between them the key may expire, and be taken by another process.",
	Source: "compare.go",
	Right: Place{
		File: "internal/native/lua/free.lua",
		Code: "return redis.call('DEL', state)",
		Why:  "The script that compares is the script that deletes. Nothing can come between.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "compare", Addrs: []string{way.addr()}})
		b, c := s.start("B", "compare", server), s.start("C", "compare", server)
		a.do(orderTry)
		late := way.holdRequest("del")
		a.begin(orderLeave)
		s.until(late.seen)
		s.say("A has found its own value. Its DEL is slow on the way. B waits.")
		b.do(orderWait)
		s.say("A's key has expired, and B is in. A's DEL arrives.")
		late.pass()
		a.answer()
		c.do(orderTry)
		s.pass(shown)
		return func() verdict { return together(tenures(b, c)) }
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: []string{way.addr()}})
		b, c := s.start("B", "holdfast", server), s.start("C", "holdfast", server)
		a.do(orderTry)
		late := way.holdRequest(lockName)
		a.begin(orderLeave)
		s.until(late.seen)
		s.say("A's release is slow on the way. B waits.")
		b.do(orderWait)
		s.say("B is in. A's slow release arrives.")
		late.pass()
		a.answer()
		s.pass(100 * time.Millisecond)
		c.do(orderTry)
		s.pass(shown)
		return func() verdict { return apart(tenures(a, b, c), "A", "B") }
	},
}
