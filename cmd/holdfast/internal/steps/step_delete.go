package steps

var deleteStep = Step{
	Title: "Delete without asking who holds",
	Idea: `SET with NX and PX takes the lock and sets its expiry in one command. DEL gives the lock
back.`,
	Commands: []string{
		"SET lock:order locked PX 1500 NX",
		"DEL lock:order",
	},
	Bug:    "DEL does not ask who holds. A late process deletes the lock of the next one.",
	Source: "delete.go",
	Right: Place{
		File: "internal/native/lua/free.lua",
		Code: "string.sub(value, 1, TICKET) == ticket",
		Why:  "A release names its hold, and the script gives back that hold alone.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.start("A", "delete", server), s.start("B", "delete", server), s.start("C", "delete", server)
		a.do(orderTry)
		s.say("A's work takes longer than the expiry. B waits.")
		b.do(orderWait)
		s.say("A's expiry is over, and B is in. Now A is done.")
		a.do(orderLeave)
		c.do(orderTry)
		s.pass(shown)
		return func() verdict { return together(tenures(b, c)) }
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.start("A", "holdfast fixed", server), s.start("B", "holdfast fixed", server), s.start("C", "holdfast fixed", server)
		a.do(orderTry)
		s.say("A's lease is not renewed. A's work takes longer. B waits.")
		b.do(orderWait)
		s.say("A's lease is over, and B is in. Now A is done.")
		a.do(orderLeave)
		c.do(orderTry)
		s.pass(shown)
		return func() verdict { return apart(tenures(a, b, c), "A", "B") }
	},
}
