package network

import (
	"slices"
	"time"
)

// A link is one connection: two ends, and what is under way between them. Its fields are guarded by
// Network.mu, which the callers of its methods hold.
type link struct {
	n     *Network
	ends  [2]*end // [There] is the server's, which reads what goes there
	flows [2]flow
}

type flow struct {
	queue []packet
	timer *time.Timer
	lost  bool // nothing arrives any more
}

type packet struct {
	data []byte // nil: the writer has closed
	due  time.Time
}

func newLink(n *Network) *link {
	l := &link{n: n}
	for way := range l.ends {
		l.ends[way] = &end{link: l, reads: Way(way)}
	}
	return l
}

// send puts what an end wrote on its way; nil: it has closed.
func (l *link) send(way Way, data []byte) {
	n, f := l.n, &l.flows[way]
	due := time.Now().Add(n.config.Latency + n.slow)
	if data != nil {
		late, lost := l.struck(way, data)
		if lost {
			return
		}
		due = due.Add(late)
	}
	if f.lost {
		return
	}
	if k := len(f.queue); k > 0 && f.queue[k-1].due.After(due) {
		due = f.queue[k-1].due
	}
	f.queue = append(f.queue, packet{data, due})
	if len(f.queue) == 1 {
		l.deliver(way)
	}
}

// struck applies the rules: how late the data is, and whether it is lost.
func (l *link) struck(way Way, data []byte) (late time.Duration, lost bool) {
	n := l.n
	n.rules = slices.DeleteFunc(n.rules, func(r *Rule) bool { return r.Times == 0 })
	for _, r := range n.rules {
		if r.Times == 0 || r.Way != way || !r.Match(data) {
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		switch r.Do {
		case Repeat:
			n.again(slices.Concat(r.Prefix, data), r.Late)
			continue
		case Delay:
			return r.Late, false
		case Deafen:
			l.flows[There].lost = true
		case Mute:
			l.flows[Back].lost = true
		}
		if n.config.Breaks > 0 && r.Do != Lose {
			time.AfterFunc(n.config.Breaks, func() { n.change(l.cut) })
		}
		return 0, r.Do != Mute
	}
	return 0, false
}

// again lets a request arrive a second time, on a connection of its own whose client is gone.
func (n *Network) again(data []byte, late time.Duration) {
	time.AfterFunc(n.config.Latency+late, func() {
		l := newLink(n)
		l.ends[There].buf, l.ends[There].over = data, true
		l.flows[Back].lost = true
		_ = n.serve(l.ends[There])
	})
}

// deliver gives what is due to the end that reads it, and sets the timer for the rest.
func (l *link) deliver(way Way) {
	f, e := &l.flows[way], l.ends[way]
	if len(f.queue) == 0 || l.n.quiet[way] > 0 {
		return
	}
	now := time.Now()
	for len(f.queue) > 0 && !f.queue[0].due.After(now) {
		e.receive(f.queue[0].data)
		f.queue = f.queue[1:]
	}
	l.n.changed.Broadcast()
	if len(f.queue) > 0 {
		after := f.queue[0].due.Sub(now)
		if f.timer == nil {
			f.timer = time.AfterFunc(after, func() {
				l.n.mu.Lock()
				defer l.n.mu.Unlock()
				l.deliver(way)
			})
		} else {
			f.timer.Reset(after)
		}
	}
	if l.ends[There].closed && l.ends[Back].closed && len(l.flows[There].queue)+len(l.flows[Back].queue) == 0 {
		delete(l.n.links, l)
	}
}

// lose loses what is under way, and all that will be sent.
func (l *link) lose(way Way) { l.flows[way].queue, l.flows[way].lost = nil, true }

// cut breaks the connection; what is under way is lost.
func (l *link) cut() {
	for way, e := range l.ends {
		l.lose(Way(way))
		e.broken, e.buf = true, nil
	}
	l.n.changed.Broadcast()
	delete(l.n.links, l)
}
