package steps

import "time"

var timestampStep = Step{
	Title: "SETNX with a timestamp",
	Idea: `SETNX takes the lock. Its value is the time at which the lock is over, so that a crash does
not keep it for ever. A process that finds that time past takes the lock over with GETSET.`,
	Commands: []string{
		"SETNX lock:order 1764000001500",
		"GET lock:order",
		"GETSET lock:order 1764000061500",
		"DEL lock:order",
	},
	Bug:    "Each process compares the time with its own clock. One clock is a minute ahead.",
	Source: "timestamp.go",
	Right: Place{
		File: "internal/native/lua/time.lua",
		Code: "local time = redis.call('TIME')",
		Why:  "The server alone counts the time of a hold. No clock of a client is asked.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		a := s.process(role{Name: "A", Lock: "timestamp", Addrs: []string{server.addr}})
		b := s.process(role{Name: "B", Lock: "timestamp", Addrs: []string{server.addr}, Clock: time.Minute})
		a.do(orderTry)
		s.say("A holds, and works. B's clock is a minute ahead of A's.")
		b.do(orderTry)
		s.pass(shown)
		a.do(orderLeave)
		return func() verdict { return together(tenures(a, b)) }
	},
	holdfast: func(s *scene) func() verdict {
		server := s.nodeBehind(time.Hour)
		s.say("The clock of the server is an hour behind those of A and B.")
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: []string{server.addr}})
		b := s.process(role{Name: "B", Lock: "holdfast", Addrs: []string{server.addr}})
		a.do(orderTry)
		b.do(orderTry)
		b.begin(orderWait)
		s.pass(shown)
		a.kill()
		b.answer()
		return func() verdict { return apart(tenures(a, b), "A", "B") }
	},
}
