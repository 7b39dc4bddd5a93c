package steps

import "time"

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
		Code: "string.sub(value, 1, 26) == ticket",
		Why:  "A release names its hold, and the script gives back that hold alone.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.three("delete", server)
		a.do(orderTry)
		s.say("A's work takes longer than the expiry. B waits.")
		b.do(orderWait)
		s.say("A's expiry is over, and B is in. Now A is done.")
		a.do(orderLeave)
		c.do(orderTry)
		s.pass(300 * time.Millisecond)
		return func() verdict { return together(tenures(b, c)) }
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.three("holdfast fixed", server)
		a.do(orderTry)
		s.say("A's work takes longer than its lease, which is not renewed here. B waits.")
		b.do(orderWait)
		s.say("A's lease is over, and B is in. Now A is done.")
		a.do(orderLeave)
		c.do(orderTry)
		s.pass(300 * time.Millisecond)
		return func() verdict { return apart(tenures(a, b, c), "A", "B") }
	},
}

// three starts the processes A, B and C with one lock, on one server.
func (s *scene) three(lock string, server *node) (a, b, c *process) {
	start := func(name string) *process {
		return s.process(role{Name: name, Lock: lock, Addrs: []string{server.addr}, Every: 100 * time.Millisecond})
	}
	return start("A"), start("B"), start("C")
}
