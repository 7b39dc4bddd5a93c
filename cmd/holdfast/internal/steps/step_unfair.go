package steps

import "time"

var unfairStep = Step{
	Title: "Unfair",
	Idea: `Processes that want the lock try again and again, and one of them gets it. Tutorials call such
a lock unfair, and often leave it at that.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"SET lock:order B PX 1500 NX",
		"EVAL 'compare and delete' lock:order A",
		"SET lock:order C PX 1500 NX",
	},
	Bug: `The next to try gets in, however long another has waited. With enough newcomers a waiter never
gets in.`,
	Source: "polling.go",
	Right: Place{
		File: "internal/native/lua/free.lua",
		Code: "next = redis.call('ZRANGE', queue, '0', '0')[1]",
		Why: `A release gives the lock to the first of the queue in the same step. A newcomer finds it
taken, and stands at the end.`,
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.start("A", "watchdog", server)
		b := s.process(role{Name: "B", Lock: "watchdog", Addrs: []string{way.addr()}, Every: 500 * time.Millisecond})
		c := s.start("C", "watchdog", server)
		a.do(orderTry)
		b.begin(orderWait)
		began := time.Now()
		s.pass(time.Second)
		passed := false
		for try := 0; try < 5 && !passed && s.ok(); try++ { // B's next try may come between, on a slow machine
			s.until(way.answered("\r\nnx"))
			s.say("B was refused a moment ago. Now A leaves, and C comes.")
			a.do(orderLeave)
			if passed = c.do(orderTry); !passed {
				b.answer()
				b.do(orderLeave)
				a.do(orderTry)
				b.begin(orderWait)
				began = time.Now()
			}
		}
		waited := time.Since(began)
		s.pass(shown)
		c.do(orderLeave)
		b.answer()
		return func() verdict {
			return verdictf(passed, "C passed B, which had waited for %s", seconds(waited))
		}
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b, c := s.start("A", "holdfast", server), s.start("B", "holdfast", server), s.start("C", "holdfast", server)
		a.do(orderTry)
		b.begin(orderWait)
		s.waiters(server, 1)
		s.pass(time.Second)
		s.say("B has waited for a second. Now A leaves, and C comes.")
		c.begin(orderWait)
		a.do(orderLeave)
		b.answer()
		s.pass(shown)
		b.do(orderLeave)
		c.answer()
		return func() verdict { return apart(tenures(a, b, c), "A", "B", "C") }
	},
}
