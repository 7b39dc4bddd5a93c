package steps

var tokenStep = Step{
	Title: "No token",
	Idea: `The lock is right, and its holder knows when it is over. So the holder looks at the lock, and
then writes to the storage.`,
	Commands: []string{
		"SET lock:order A PX 1500 NX",
		"SET order A",
	},
	Bug: `The process may stand still between the look and the write: a long garbage collection, a
machine that is moved. It writes when the lock is another's, and the storage cannot tell.`,
	Source: "unique.go",
	Right: Place{
		File: "lease.go",
		Code: "func (l *Lease) Token() int64 {",
		Why: `Each lease has a token that is larger than all before. The storage remembers the largest that
it has seen, and refuses a smaller one.`,
	},
	Pauses: true,
	naive: func(s *scene) func() verdict {
		return lateWrite(s, "unique", func(server *node) string { return s.look(server, "GET", storageName) },
			func(by string) bool { return by == "A" })
	},
	holdfast: func(s *scene) func() verdict {
		return lateWrite(s, "holdfast", func(server *node) string { return s.look(server, "HGET", storageName, "by") },
			func(by string) bool { return by == "B" })
	},
}

// lateWrite stops A between its last look at the lock and its write. stored is the last writer of
// the storage.
func lateWrite(s *scene, lock string, stored func(*node) string, good func(by string) bool) func() verdict {
	server := s.node()
	a, b := s.start("A", lock, server), s.start("B", lock, server)
	a.do(orderTry)
	a.signal(s.config.Pause)
	s.say("A is stopped, between a look at the lock and its write. B waits.")
	b.do(orderWait)
	b.do(orderWrite)
	s.say("B is in, and has written. A goes on, and writes.")
	a.signal(s.config.Resume)
	a.do(orderWrite)
	by := stored(server)
	return func() verdict {
		return verdictf(good(by), "B got the lock after A, and the storage has the write of %s", by)
	}
}
