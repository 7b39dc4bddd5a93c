package steps

import (
	"strings"
	"time"
)

var expireStep = Step{
	Title: "EXPIRE apart from SETNX",
	Idea: `SETNX takes the lock, and EXPIRE lets the server end it, so that no clock of a client counts
and a crash does not keep the lock for ever.`,
	Commands: []string{
		"SETNX lock:order locked",
		"PEXPIRE lock:order 1500",
		"DEL lock:order",
	},
	Bug:    "These are two commands. A process that crashes between them leaves a lock without expiry.",
	Source: "expire.go",
	Right: Place{
		File: "internal/native/lua/ask.lua",
		Code: "redis.call('SET', state, ticket .. now .. payload, 'NX', 'PX', ttl)",
		Why:  "One SET inside one script takes the lock together with its expiry.",
	},
	naive: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "expire", Addrs: []string{way.addr()}})
		b := s.process(role{Name: "B", Lock: "expire", Addrs: []string{server.addr}, Every: 100 * time.Millisecond})
		b.do(orderTry) // as it is meant
		b.do(orderLeave)
		crash := way.holdRequest("pexpire")
		a.begin(orderTry)
		s.until(crash.seen)
		s.say("A has sent SETNX, and is about to send PEXPIRE.")
		a.kill()
		b.begin(orderWait)
		s.pass(2 * ttl)
		got, left := b.answered(), s.look(server, "PTTL", lockName)
		s.say("After twice the expiry: PTTL %s -> %s", lockName, left)
		return func() verdict {
			return verdictf(!got && left == "-1", "A is dead, PTTL is %s, and B %s", left, entered(got, 2*ttl))
		}
	},
	holdfast: func(s *scene) func() verdict {
		server := s.node()
		way := s.network(server)
		a := s.process(role{Name: "A", Lock: "holdfast", Addrs: []string{way.addr()}})
		b := s.process(role{Name: "B", Lock: "holdfast", Addrs: []string{server.addr}})
		crash := way.holdAnswer("eval\r\n") // a server does not know the script yet, so that EVALSHA fails
		a.begin(orderTry)
		s.until(crash.seen)
		s.say("A's first command has taken effect. A has no answer yet.")
		a.kill()
		killed := time.Now()
		refused := !b.do(orderTry)
		b.do(orderWait)
		return func() verdict {
			list := tenures(b)
			if len(list) != 1 || !refused {
				return verdictf(false, "B got in before the expiry of A, or never")
			}
			took := list[0].From.Sub(killed)
			return verdictf(true, "B got in %s after the crash; the expiry is %s", seconds(took), seconds(ttl))
		}
	},
}

// entered says whether a process that waited got in.
func entered(got bool, waited time.Duration) string {
	if got {
		return "got in"
	}
	return strings.TrimSpace("waited " + seconds(waited) + " in vain")
}
