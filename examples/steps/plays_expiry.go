package main

import "time"

func existsNaive(s *scene) func() verdict {
	_, way, a, b := s.startApart("exists")
	late := way.HoldRequest("\r\nset\r\n")
	a.begin(orderTry)
	s.wait(late.Arrived())
	s.say("A has found the lock free. Its SET is slow on the way. B comes.")
	b.do(orderTry)
	s.say("B is in. A's SET arrives.")
	late.Pass()
	a.answer()
	s.pass(shown)
	b.do(orderLeave)
	return func() verdict { return together("both found the lock free", tenures(a, b)) }
}

func existsHoldfast(s *scene) func() verdict {
	_, way, a, b := s.startApart("holdfast")
	late := way.HoldRequest(lockName)
	a.begin(orderTry)
	s.wait(late.Arrived())
	s.say("A's request is slow on the way. B comes.")
	b.do(orderTry)
	s.say("B is in. A's slow request arrives.")
	late.Pass()
	a.answer()
	s.pass(shown)
	return func() verdict { return apart("A's late request found the lock taken", tenures(a, b), "B") }
}

func timestampNaive(s *scene) func() verdict {
	server := s.node()
	a := s.start("A", "timestamp", server.addr)
	b := s.startRole(role{Name: "B", Lock: "timestamp", Addrs: []string{server.addr}, Clock: time.Minute})
	a.do(orderTry)
	s.say("A holds, and works. B's clock is a minute ahead of A's.")
	b.do(orderTry)
	s.pass(shown)
	a.do(orderLeave)
	return func() verdict { return together("B's clock ended A's lock", tenures(a, b)) }
}

func timestampHoldfast(s *scene) func() verdict {
	server := s.node()
	server.setBehind(time.Hour)
	s.say("The clock of the server is an hour behind those of A and B.")
	a := s.start("A", "holdfast", server.addr)
	b := s.start("B", "holdfast", server.addr)
	a.do(orderTry)
	b.do(orderTry)
	b.begin(orderWait)
	s.pass(shown)
	a.kill()
	b.answer()
	s.pass(shown)
	return func() verdict { return apart("the wrong clock ended nothing", tenures(a, b), "A", "B") }
}

func expireNaive(s *scene) func() verdict {
	server, way, a, b := s.startApart("expire")
	b.do(orderTry) // as it is meant
	b.do(orderLeave)
	crash := way.HoldRequest("pexpire")
	a.begin(orderTry)
	s.wait(crash.Arrived())
	s.say("A has sent SETNX, and is about to send PEXPIRE.")
	a.kill()
	b.begin(orderWait)
	s.pass(2 * ttl)
	got, left := b.answered(), s.read(server, "PTTL", lockName)
	s.say("After twice the expiry: PTTL %s -> %s", lockName, left)
	return func() verdict {
		if got {
			return verdictf(false, "A is dead, PTTL is %s, and B got in", left)
		}
		return verdictf(left == "-1", "A is dead, PTTL is %s, and B waited %s in vain", left, formatTime(2*ttl))
	}
}

func expireHoldfast(s *scene) func() verdict {
	_, way, a, b := s.startApart("holdfast")
	crash := way.HoldAnswer("EVAL\r\n") // a server does not know the script yet, so that EVALSHA fails
	a.begin(orderTry)
	s.wait(crash.Arrived())
	s.say("A's first command has taken effect. A has no answer yet.")
	a.kill()
	killed := time.Now()
	refused := !b.do(orderTry)
	b.do(orderWait)
	s.pass(shown)
	return func() verdict {
		list := tenures(b)
		if len(list) != 1 || !refused {
			return verdictf(false, "B got in before the expiry of A, or never")
		}
		took := list[0].From.Sub(killed)
		return verdictf(true, "B got in %s after the crash; the expiry is %s", formatTime(took), formatTime(ttl))
	}
}

func deleteNaive(s *scene) func() verdict {
	server := s.node()
	a, b, c := s.start3("delete", server)
	a.do(orderTry)
	s.say("A's work takes longer than the expiry. B waits.")
	b.do(orderWait)
	s.say("A's expiry is over, and B is in. Now A is done.")
	a.do(orderLeave)
	c.do(orderTry)
	s.pass(shown)
	return func() verdict { return together("A deleted the lock of B", tenures(b, c)) }
}

func deleteHoldfast(s *scene) func() verdict {
	server := s.node()
	a, b, c := s.start3("holdfast fixed", server)
	a.do(orderTry)
	s.say("A's lease is not renewed. A's work takes longer. B waits.")
	b.do(orderWait)
	s.say("A's lease is over, and B is in. Now A is done.")
	a.do(orderLeave)
	c.do(orderTry)
	s.pass(shown)
	return func() verdict { return apart("A's late release deleted nothing", tenures(a, b, c), "A", "B") }
}

func compareNaive(s *scene) func() verdict {
	server, way, a, b := s.startApart("compare")
	c := s.start("C", "compare", server.addr)
	a.do(orderTry)
	late := way.HoldRequest("del")
	a.begin(orderLeave)
	s.wait(late.Arrived())
	s.say("A has found its own value. Its DEL is slow on the way. B waits.")
	b.do(orderWait)
	s.say("A's key has expired, and B is in. A's DEL arrives.")
	late.Pass()
	a.answer()
	c.do(orderTry)
	s.pass(shown)
	return func() verdict { return together("A's late DEL deleted the lock of B", tenures(b, c)) }
}

func compareHoldfast(s *scene) func() verdict {
	server, way, a, b := s.startApart("holdfast")
	c := s.start("C", "holdfast", server.addr)
	a.do(orderTry)
	late := way.HoldRequest(lockName)
	a.begin(orderLeave)
	s.wait(late.Arrived())
	s.say("A's release is slow on the way. B waits.")
	b.do(orderWait)
	s.say("B is in. A's slow release arrives.")
	late.Pass()
	a.answer()
	s.pass(100 * time.Millisecond)
	c.do(orderTry)
	s.pass(shown)
	return func() verdict { return apart("A's late release freed nothing of B's", tenures(a, b, c), "A", "B") }
}

func uniqueNaive(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "unique", server.addr), s.start("B", "unique", server.addr)
	a.do(orderTry)
	s.say("A's work takes longer than the expiry. B waits.")
	b.do(orderWait)
	s.say("A's key has expired, and B is in. A works on.")
	s.pass(shown)
	a.do(orderLeave)
	b.do(orderLeave)
	return func() verdict { return together("the expiry was shorter than the work", tenures(a, b)) }
}

func uniqueHoldfast(s *scene) func() verdict {
	server := s.node()
	a, b := s.start("A", "holdfast", server.addr), s.start("B", "holdfast", server.addr)
	a.do(orderTry)
	s.say("A's work takes twice the TTL. B waits.")
	b.begin(orderWait)
	s.pass(2 * ttl)
	a.do(orderLeave)
	b.answer()
	b.do(orderLeave)
	return func() verdict { return apart("A kept the lock for twice its TTL", tenures(a, b), "A", "B") }
}
