package steps

import "time"

// pollEvery is the pause between two tries of a naive waiter.
const pollEvery = 100 * time.Millisecond

var pollingStep = Step{
	Title: "Polling",
	Idea: `A process that finds the lock taken sleeps for a moment, such as 100 ms, and tries again, until
it gets in.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
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
		refused := func() { s.until(way.answered("\r\nnx")) }
		return waitAndMeasure(s, server, a, b, refused, refused, func(sent int, _ time.Duration) bool { return sent >= 10 })
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		a, b := s.start("A", "holdfast", server), s.start("B", "holdfast", server)
		a.do(orderTry)
		stands := func() {
			s.waiters(server, 1)
			s.settled(server, "B") // it subscribes, and asks once more
		}
		return waitAndMeasure(s, server, a, b, stands, func() {}, func(sent int, waited time.Duration) bool {
			return sent <= 2+2*int(waited/ttl) // the first of the queue asks when the holder's time may be over
		})
	},
}

// waitAndMeasure lets B wait for A, and counts the commands of B until A leaves. The time for which
// the lock is idle then is told, and not judged: a busy machine makes it longer.
func waitAndMeasure(s *scene, server *node, a, b *process, stands, atEnd func(), good func(sent int, waited time.Duration) bool) func() verdict {
	const waits = 2 * time.Second
	b.begin(orderWait)
	stands()
	before, began := server.total([]string{"B"}), time.Now()
	s.say("A works, and B waits.")
	s.pass(waits)
	atEnd()
	sent, waited := server.total([]string{"B"})-before, time.Since(began)
	s.say("A is done.")
	a.do(orderLeave)
	b.answer()
	return func() verdict {
		held := append(a.held(), b.held()...)
		if len(held) != 2 {
			return verdictf(false, "B did not get in")
		}
		idle := held[1].From.Sub(held[0].To)
		return verdictf(good(sent, waited), "in %s of waiting B sent %s; then the lock was idle for %s", seconds(waited), count(sent, "command"), seconds(idle))
	}
}
