package steps

import "time"

var reentrantStep = Step{
	Title: "A count, doubled by a replay",
	Idea: `The lock is a hash: the field is the holder, its value a count. The holder may enter again,
which counts up. The lock is free when as many entries were given back.`,
	Commands: []string{
		"EVAL 'enter' lock:order A 1500",
		"EVAL 'leave' lock:order A 1500",
	},
	Bug: `An answer is lost, and the client library sends the script again. One entry counts as two, and
one release does not free the lock.`,
	Source: "reentrant.go",
	Right: Place{
		File: "internal/native/lua/ask.lua",
		Code: "local token = mine(ticket, payload)",
		Why: `An entry has an id of its own and is not counted. An id that is there already gets the same
answer again.`,
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "reentrant", Addrs: []string{way.addr()}})
		b := s.start("B", "reentrant", server)
		s.say("The answer to A's next script gets lost.")
		lost := way.loseAnswer("eval")
		a.do(orderTry)
		s.until(lost.seen)
		s.say("go-redis has sent it again: HGET %s A -> %s", lockName, s.look(server, "HGET", lockName, "A"))
		a.do(orderLeave)
		left := s.look(server, "HGET", lockName, "A")
		s.say("A has entered once and left once: HGET %s A -> %s", lockName, left)
		got := b.do(orderTry)
		return func() verdict {
			return verdictf(!got && left != "nil", "A has left, its count is %s, and B %s", left, gotIn(got))
		}
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: []string{way.addr()}})
		b := s.start("B", "holdfast", server)
		b.do(orderTry) // the server knows the scripts then
		b.do(orderLeave)
		s.say("The answer to A's next script gets lost.")
		lost := way.loseAnswer(lockName)
		a.do(orderWait)
		s.until(lost.seen)
		a.do(orderLeave)
		left := time.Now()
		got := b.do(orderTry)
		return func() verdict {
			list := b.held()
			if !got || len(list) != 2 {
				return verdictf(false, "A has left, and B did not get in")
			}
			return verdictf(true, "A has left, and B got in %s later", seconds(list[1].From.Sub(left)))
		}
	},
}

func gotIn(got bool) string {
	if got {
		return "got in"
	}
	return "did not get in"
}
