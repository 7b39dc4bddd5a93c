package steps

import "time"

// pollEvery is the pause between two tries of a naive waiter.
const pollEvery = 100 * time.Millisecond

var pollingStep = Step{
	Title: "Polling",
	Idea: `A process that finds the lock taken sleeps for a moment, such as 100 ms, and tries again, until
it gets in.`,
	Commands: []string{
		"SET lock:order B PX 1500 NX",
		"SET lock:order B PX 1500 NX",
	},
	Bug: `Each waiter sends a command for each try, although nothing happens. When the lock is given
back, it stands idle until the next try.`,
	Source: "polling.go",
	Right: Place{
		File: "internal/native/lua/ask.lua",
		Code: "redis.call('ZADD', queue, 'NX', now, self) == 1",
		Why: `The request that finds the lock taken stands in a queue at the server from then on. The
release makes the first of the queue the holder, and tells it.`,
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.start("A", "watchdog", server)
		b := s.process(role{Name: "B", Lock: "watchdog", Addrs: []string{way.addr()}, Every: pollEvery})
		a.do(orderTry)
		return waitAndMeasure(s, server, a, b, func() {
			s.until(way.answered("\r\nnx"))
		}, func(sent int, idle time.Duration) bool { return sent >= 10 && idle >= pollEvery/2 })
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b := s.start("A", "holdfast", server), s.start("B", "holdfast", server)
		a.do(orderTry)
		return waitAndMeasure(s, server, a, b, func() { s.waiters(server, 1) },
			func(sent int, idle time.Duration) bool { return sent <= 2 && idle < pollEvery/2 })
	},
}

// waitAndMeasure lets B wait for A, and counts the commands of B until A leaves.
func waitAndMeasure(s *scene, server *node, a, b *process, ready func(), good func(sent int, idle time.Duration) bool) func() verdict {
	const waits = 2 * time.Second
	b.begin(orderWait)
	ready()
	before := server.total([]string{"B"})
	s.say("A works, and B waits.")
	s.pass(waits)
	ready()
	sent := server.total([]string{"B"}) - before
	s.say("A is done.")
	a.do(orderLeave)
	b.answer()
	return func() verdict {
		held := append(a.held(), b.held()...)
		if len(held) != 2 {
			return verdictf(false, "B did not get in")
		}
		idle := held[1].From.Sub(held[0].To)
		return verdictf(good(sent, idle), "in %s of waiting B sent %s; then the lock was idle for %s", seconds(waits), count(sent, "command"), seconds(idle))
	}
}
