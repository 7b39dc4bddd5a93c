package main

import "time"

// plays are those that count: of waiters that ask, and of readers that do not let a writer in.
var plays = map[string]func(*scene) func() verdict{
	"polling": pollingNaive, "queue": pollingHoldfast, "herd": herdNaive, "hand-overs": herdHoldfast, "starve": starve,
}

func pollingNaive(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "watchdog", server.addr), s.start("B", "watchdog", server.addr)
	a.do(orderTry)
	refused := func() { s.awaitCommand(server, "B") }
	return measureWait(s, server, a, b, refused, refused, func(sent int, _ time.Duration) bool { return sent >= 10 })
}

func pollingHoldfast(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "holdfast", server.addr), s.start("B", "holdfast", server.addr)
	a.do(orderTry)
	stands := func() {
		s.awaitWaiters(server, 1)
		s.awaitQuiet(server, "B") // it subscribes, and asks once more
	}
	return measureWait(s, server, a, b, stands, func() {}, func(sent int, waited time.Duration) bool {
		return sent <= 2+2*int(waited/ttl) // the first of the queue asks when the holder's time may be over
	})
}

// pollEvery is the pause between two tries of a naive waiter.
const pollEvery = 100 * time.Millisecond

// measureWait lets B wait for A, and counts the commands of B until A leaves. The time for which
// the lock is idle then is told, and not judged: a busy machine makes it longer.
func measureWait(
	s *scene, server *node, a, b *process, stands, atEnd func(), good func(sent int, waited time.Duration) bool,
) func() verdict {
	const waits = 2 * time.Second
	b.begin(orderWait)
	stands()
	before, began := server.count("B"), time.Now()
	s.say("A works, and B waits.")
	s.pass(waits)
	atEnd()
	sent, waited := server.count("B")-before, time.Since(began)
	s.say("A is done.")
	a.do(orderLeave)
	b.answer()
	s.pass(shown)
	return func() verdict {
		held := append(a.entries(), b.entries()...)
		if len(held) != 2 {
			return verdictf(false, "B did not get in")
		}
		idle := held[1].From.Sub(held[0].To)
		return verdictf(good(sent, waited), "in %s of waiting B sent %s; then the lock was idle for %s",
			formatTime(waited), formatCommands(sent), formatTime(idle))
	}
}

func herdNaive(s *scene) func() verdict {
	return countHandOvers(s, "herd", s.awaitSubscribers,
		func(first, last int) bool { return first > crowd && first > 2*last })
}

func herdHoldfast(s *scene) func() verdict {
	return countHandOvers(s, "holdfast", s.awaitWaiters,
		func(first, last int) bool { return first <= 4 && last <= 4 })
}

// crowd is how many processes wait for the herd.
const crowd = 8

// countHandOvers lets A release while eight processes wait, and the next holder while seven do, and
// so on. It counts the commands of each hand-over.
func countHandOvers(
	s *scene, lock string, waiting func(*node, int), good func(first, last int) bool,
) func() verdict {
	server := s.node()
	var clients []string
	var all []*process
	for n := range crowd + 1 {
		name := string(rune('A' + n))
		p := s.startRole(role{Name: name, Lock: lock, Addrs: []string{server.addr}, TTL: 10 * ttl})
		clients, all = append(clients, name), append(all, p)
	}
	holder, waiters := all[0], all[1:]
	holder.do(orderTry) // a first hand-over, so that the server knows all scripts
	waiters[0].begin(orderWait)
	waiting(server, 1)
	holder.do(orderLeave)
	waiters[0].answer()
	s.awaitQuiet(server, clients...)
	waiters[0].do(orderLeave)
	for _, p := range all {
		p.hush()
	}

	holder.do(orderTry)
	for n, w := range waiters {
		w.begin(orderWait)
		waiting(server, n+1)
	}
	var counts []int
	for left := crowd; left > 0; left-- {
		before := s.awaitQuiet(server, clients...)
		holder.do(orderLeave)
		holder, waiters = s.awaitFirst(waiters)
		counts = append(counts, s.awaitQuiet(server, clients...)-before)
		s.say("%d wait. The holder leaves, and the next gets in: %s.", left, formatCommands(counts[len(counts)-1]))
	}
	return func() verdict {
		first, last := counts[0], counts[crowd-1]
		return verdictf(good(first, last), "a hand-over costs %s with %d waiters, and %d with one",
			formatCommands(first), crowd, last)
	}
}

// starve lets A and C read in turn, each before the other leaves, while B waits to write.
func starve(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "reader", server.addr), s.start("B", "writer", server.addr)
	c := s.start("C", "reader", server.addr)
	a.do(orderTry)
	b.begin(orderWait)
	began, entries := time.Now(), 0
	for in, out := a, c; time.Since(began) < 2*ttl; in, out = out, in {
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
		return verdictf(starved, "B waited %s to write, while readers got in %d times", formatTime(waited), entries)
	}
}
