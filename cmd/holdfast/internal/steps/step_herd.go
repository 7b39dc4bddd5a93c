package steps

// crowd is how many processes wait for the herd.
const crowd = 8

var herdStep = Step{
	Title: "A herd",
	Idea: `Waiters do not poll: they subscribe to a channel. A release publishes a message there, and the
waiters try again.`,
	Commands: []string{
		"SUBSCRIBE lock:order:free",
		"SET lock:order B EX 15 NX",
		"EVAL 'compare, delete and tell' lock:order A",
	},
	Bug:    "One message wakes all waiters. All of them try, and all but one try for nothing.",
	Source: "herd.go",
	Right: Place{
		File: "internal/native/lua/free.lua",
		Code: "redis.pcall('PUBLISH', channel, GRANTED .. string.sub(next, ID_AT, TICKET)",
		Why: `The release makes the first waiter the holder, and the message goes to the channel of that
process alone. The others do not hear of it.`,
	},
	naive: func(s *scene) func() verdict {
		return releases(s, "herd", func(n *node, waiting int) { s.subscribers(n, waiting) },
			func(first, last int) bool { return first > crowd && first > 2*last })
	},
	holdfast: func(s *scene) func() verdict {
		return releases(s, "holdfast", func(n *node, waiting int) { s.waiters(n, waiting) },
			func(first, last int) bool { return first <= 4 && last <= 4 })
	},
}

// releases lets A release while eight processes wait, and the next holder while seven do, and so
// on. It counts the commands of each hand-over.
func releases(s *scene, lock string, waiting func(*node, int), good func(first, last int) bool) func() verdict {
	server := s.node()
	var clients []string
	var all []*process
	for n := range crowd + 1 {
		name := string(rune('A' + n))
		p := s.process(role{Name: name, Lock: lock, Addrs: []string{server.addr}, TTL: 10 * ttl})
		clients, all = append(clients, name), append(all, p)
	}
	holder, waiters := all[0], all[1:]
	holder.do(orderTry) // a first hand-over, so that the server knows all scripts
	waiters[0].begin(orderWait)
	waiting(server, 1)
	holder.do(orderLeave)
	waiters[0].answer()
	s.settled(server, clients...)
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
	for left := crowd; left > 0 && s.ok(); left-- {
		before := s.settled(server, clients...)
		holder.do(orderLeave)
		holder, waiters = s.firstInside(waiters)
		counts = append(counts, s.settled(server, clients...)-before)
		s.say("%d wait. The holder leaves, and the next gets in: %s.", left, count(counts[len(counts)-1], "command"))
	}
	return func() verdict {
		if len(counts) != crowd {
			return verdictf(false, "only %d of %d waiters got in", len(counts), crowd)
		}
		first, last := counts[0], counts[crowd-1]
		return verdictf(good(first, last), "a hand-over costs %s with %d waiters, and %d with one", count(first, "command"), crowd, last)
	}
}

// firstInside waits until one of several processes that wait is inside, and returns it and the
// others.
func (s *scene) firstInside(waiting []*process) (inside *process, others []*process) {
	s.poll(func() (bool, error) {
		for i, p := range waiting {
			if p.answered() {
				inside = p
				others = append(append(others, waiting[:i]...), waiting[i+1:]...)
				return true, nil
			}
		}
		return false, nil
	})
	if inside == nil {
		return waiting[0], waiting[1:] // of a scene that failed
	}
	inside.answer()
	return inside, others
}
