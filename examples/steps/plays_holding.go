package main

import "time"

func reentrantNaive(s *scene) func() verdict {
	server, way, a, b := s.startApart("reentrant")
	s.say("The answer to A's next script gets lost.")
	lost := way.DropAnswer("eval")
	a.do(orderTry)
	s.wait(lost)
	s.say("go-redis has sent it again: HGET %s A -> %s", lockName, s.read(server, "HGET", lockName, "A"))
	a.do(orderLeave)
	left := s.read(server, "HGET", lockName, "A")
	s.say("A has entered once and left once: HGET %s A -> %s", lockName, left)
	got := b.do(orderTry)
	return func() verdict {
		if got {
			return verdictf(false, "A has left, its count is %s, and B got in", left)
		}
		return verdictf(left != "nil", "A has left, its count is %s, and B did not get in", left)
	}
}

func reentrantHoldfast(s *scene) func() verdict {
	_, way, a, b := s.startApart("holdfast")
	b.do(orderTry) // the server knows the scripts then
	b.do(orderLeave)
	s.say("The answer to A's next script gets lost.")
	lost := way.DropAnswer(lockName)
	a.do(orderWait)
	s.wait(lost)
	a.do(orderLeave)
	left := time.Now()
	got := b.do(orderTry)
	return func() verdict {
		list := b.entries()
		if !got || len(list) != 2 {
			return verdictf(false, "A has left, and B did not get in")
		}
		return verdictf(true, "A has left, and B got in %s later", formatTime(list[1].From.Sub(left)))
	}
}

func watchdogNaive(s *scene) func() verdict {
	return silence(s, "watchdog", func(list []tenure) verdict {
		return together("A learned of its loss too late", list)
	})
}

func watchdogHoldfast(s *scene) func() verdict {
	return silence(s, "holdfast", func(list []tenure) verdict {
		return apart("A was told before B got in", list, "A", "B")
	})
}

// silence cuts A off while it holds.
func silence(s *scene, lock string, judge func([]tenure) verdict) func() verdict {
	server, way, a, b := s.startApart(lock)
	a.do(orderTry)
	s.awaitCommand(server, "A")
	s.awaitQuiet(server, "A")
	way.Silence()
	s.say("A has renewed. Now A's network falls silent. B waits.")
	b.do(orderWait)
	s.say("B is in.")
	s.pass(shown)
	s.say("A's network is back.")
	way.Speak()
	a.do(orderLeave)
	return func() verdict { return judge(tenures(a, b)) }
}

func cappedNaive(s *scene) func() verdict {
	return outlast(s, "capped", func(list []tenure) verdict {
		return together("A was not told that its time was over", list)
	})
}

func cappedHoldfast(s *scene) func() verdict {
	return outlast(s, "holdfast capped", func(list []tenure) verdict {
		return apart("A was told before B got in", list, "A", "B")
	})
}

// outlast lets A work for longer than its lock allows.
func outlast(s *scene, lock string, judge func([]tenure) verdict) func() verdict {
	server := s.node()
	a, b := s.start("A", lock, server.addr), s.start("B", lock, server.addr)
	a.do(orderTry)
	s.say("A hangs, for longer than its lock is renewed. B waits.")
	b.do(orderWait)
	s.say("B is in.")
	s.pass(shown)
	a.do(orderLeave)
	b.do(orderLeave)
	return func() verdict { return judge(tenures(a, b)) }
}

func tokenNaive(s *scene) func() verdict {
	return lateWrite(s, "unique", func(server *node) string { return s.read(server, "GET", storageName) },
		func(by string) bool { return by == "A" })
}

func tokenHoldfast(s *scene) func() verdict {
	return lateWrite(s, "holdfast", func(server *node) string { return s.read(server, "HGET", storageName, "by") },
		func(by string) bool { return by == "B" })
}

// lateWrite stops A between its last look at the lock and its write. stored is the last writer of
// the storage.
func lateWrite(s *scene, lock string, stored func(*node) string, good func(by string) bool) func() verdict {
	server := s.node()
	a, b := s.start("A", lock, server.addr), s.start("B", lock, server.addr)
	a.do(orderTry)
	a.signal("STOP")
	s.say("A is stopped, between a look at the lock and its write. B waits.")
	b.do(orderWait)
	b.do(orderWrite)
	s.say("B is in, and has written. A goes on, and writes.")
	a.signal("CONT")
	a.do(orderWrite)
	by := stored(server)
	return func() verdict {
		return verdictf(good(by), "B got the lock after A, and the storage has the write of %s", by)
	}
}
