package steps

import "time"

var readWriteStep = Step{
	Title: "A reader keeps the writer out",
	Idea: `Readers share the lock, and a writer has it alone. The hash has a mode, and a field for each
holder. A reader gets in if the lock is free or its mode is to read.`,
	Commands: []string{
		"EVAL 'read' lock:order A 1500",
		"EVAL 'write' lock:order B 1500",
		"EVAL 'give back' lock:order A",
	},
	Bug: `While a next reader comes before the last one leaves, the mode stays, and a writer waits for
ever.`,
	Source: "readwrite.go",
	Right: Place{
		File: "internal/native/lua/ask.lua",
		Code: "if beside or hand_on(self) then",
		Why: `A request gets in only when it is its turn in the queue. A reader that comes after a writer
waits behind it.`,
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.start("A", "reader", server), s.start("B", "writer", server), s.start("C", "reader", server)
		a.do(orderTry)
		b.begin(orderWait)
		began, entries := time.Now(), 0
		for in, out := a, c; time.Since(began) < 2*ttl && s.ok(); in, out = out, in {
			if !out.do(orderTry) {
				break // the writer was faster
			}
			entries++
			in.do(orderLeave)
			if entries == 2 {
				s.say("A and C go on like that: each comes before the other leaves.")
				a.hush()
				c.hush()
			}
			s.pass(200 * time.Millisecond)
		}
		starved, waited := !b.answered(), time.Since(began)
		return func() verdict {
			return verdictf(starved, "B waited %s to write, while readers got in %d times", seconds(waited), entries)
		}
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.start("A", "holdfast reader", server), s.start("B", "holdfast writer", server), s.start("C", "holdfast reader", server)
		a.do(orderTry)
		b.begin(orderWait)
		s.waiters(server, 1)
		s.say("A reads, and B waits to write. C wants to read too.")
		c.begin(orderWait)
		s.waiters(server, 2)
		s.pass(shown)
		a.do(orderLeave)
		b.answer()
		s.pass(shown)
		b.do(orderLeave)
		c.answer()
		return func() verdict { return apart(tenures(a, b, c), "A", "B", "C") }
	},
}
