package main

import "time"

func readwriteNaive(s *scene) func() verdict {
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

func readwriteHoldfast(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "holdfast reader", server.addr), s.start("B", "holdfast writer", server.addr)
	c := s.start("C", "holdfast reader", server.addr)
	a.do(orderTry)
	b.begin(orderWait)
	s.awaitWaiters(server, 1)
	s.say("A reads, and B waits to write. C wants to read too.")
	c.begin(orderWait)
	s.awaitWaiters(server, 2)
	s.pass(shown)
	a.do(orderLeave)
	b.answer()
	s.pass(shown)
	b.do(orderLeave)
	c.answer()
	s.pass(shown)
	return func() verdict {
		return apart("the writer got in before the reader that came later", tenures(a, b, c), "A", "B", "C")
	}
}

func readersNaive(s *scene) func() verdict {
	dead, got := crashReader(s, "watched reader", "writer")
	return func() verdict {
		return verdictf(!got, "A had been dead for %s, nobody else read, and B did not get in", formatTime(dead))
	}
}

func readersHoldfast(s *scene) func() verdict {
	dead, got := crashReader(s, "holdfast reader", "holdfast writer")
	return func() verdict {
		return verdictf(got, "A had been dead for %s, nobody else read, and B got in", formatTime(dead))
	}
}

// crashReader kills the reader A while C reads. C reads on for twice the expiry. Then B comes to
// write. It returns for how long A was dead by then, and whether B got in.
func crashReader(s *scene, reader, writer string) (dead time.Duration, got bool) {
	server := s.node()
	a, c := s.start("A", reader, server.addr), s.start("C", reader, server.addr)
	b := s.start("B", writer, server.addr)
	a.do(orderTry)
	c.do(orderTry)
	a.kill()
	killed := time.Now()
	s.pass(2 * ttl)
	s.say("C has read on for twice the expiry. C leaves, and B comes to write.")
	c.do(orderLeave)
	dead = time.Since(killed)
	got = b.do(orderTry)
	s.pass(shown)
	return dead, got
}

func twoKeysNaive(s *scene) func() verdict {
	return lateReader(s, "two-key reader", "two-key writer", "\r\nincr\r\n", func(list []tenure) verdict {
		return together("reader and writer each saw the other's key free", list)
	})
}

func twoKeysHoldfast(s *scene) func() verdict {
	return lateReader(s, "holdfast reader", "holdfast writer", lockName, func(list []tenure) verdict {
		return apart("the late reader found the writer inside", list, "B")
	})
}

// lateReader keeps a request of the reader A back until B writes.
func lateReader(s *scene, reader, writer, request string, judge func([]tenure) verdict) func() verdict {
	server := s.node()
	way := s.network(server)
	a, b := s.start("A", reader, way.Addr()), s.start("B", writer, server.addr)
	late := way.HoldRequest(request)
	a.begin(orderTry)
	s.wait(late.Arrived())
	s.say("A comes to read. Its request is slow on the way. B comes to write.")
	b.do(orderTry)
	s.say("B writes. A's slow request arrives.")
	late.Pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return judge(tenures(a, b)) }
}

func countNaive(s *scene) func() verdict {
	server := s.node()
	a, c := s.start("A", "two-key reader", server.addr), s.start("C", "two-key reader", server.addr)
	b := s.start("B", "two-key writer", server.addr)
	a.do(orderTry)
	s.awaitExpiry(server, lockName+":readers")
	c.do(orderTry)
	s.say("A's entry has expired, and C reads. Now A is done.")
	a.do(orderLeave)
	b.do(orderTry)
	s.pass(shown)
	return func() verdict { return together("A took the entry of C away", tenures(b, c)) }
}

func countHoldfast(s *scene) func() verdict {
	server := s.node()
	a, c := s.start("A", "holdfast fixed reader", server.addr), s.start("C", "holdfast fixed reader", server.addr)
	b := s.start("B", "holdfast writer", server.addr)
	a.do(orderTry)
	s.poll(func() (bool, error) { return !a.entries()[0].To.IsZero(), nil })
	c.do(orderTry)
	s.say("A's lease is over, and C reads. Now A is done.")
	a.do(orderLeave)
	b.do(orderTry)
	s.pass(shown)
	return func() verdict { return apart("A's late release left C inside", tenures(a, b, c), "A", "C") }
}
