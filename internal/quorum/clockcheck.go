package quorum

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// An inquiry finds out whose clock is wrong when a node's seems to be ahead: the node's, or ours. If it is ours, most nodes
// seem to be ahead, and by the same.
type inquiry struct {
	over  chan struct{} // closed when wrong says it
	wrong whose
}

// Whose clock is wrong.
type whose int

const (
	unknown whose = iota // fewer than a majority answered
	ours
	theirs // that of the nodes that seem to be ahead
)

// inquire begins an inquiry, one for all that seem to be ahead at one time, or returns the one that goes on. All nodes are
// asked, as few may have answered since. It is nil when the node seems so no more, as an inquiry ended just now.
func (p *Protocol) inquire(n *node, lead func() time.Duration) *inquiry {
	p.mu.Lock()
	by := lead()
	if by == 0 {
		p.mu.Unlock()
		return nil
	}
	q := p.inquiry
	if q != nil {
		p.mu.Unlock()
		return q
	}
	q = &inquiry{over: make(chan struct{})}
	p.inquiry = q
	p.mu.Unlock()
	p.run(func() {
		if q.wrong = p.investigate(n, by); q.wrong == ours {
			for _, n := range p.nodes {
				n.clock.forget()
			}
		}
		p.mu.Lock()
		p.inquiry = nil
		p.mu.Unlock()
		close(q.over)
	})
	return q
}

// investigate tells whether as many nodes are in time as seem to be ahead by the same. Nodes that seem to be ahead by
// different times were set: no stop of our clock explains both. Nodes that do not answer within a second are neither. Half
// a leap is ahead: a clock of ours that is slow, as one that is slewed, finds one node ahead first, and the others nearly.
func (p *Protocol) investigate(first *node, by time.Duration) whose {
	deadline := time.Now().Add(time.Second)
	const silent = -1
	findings := make(chan time.Duration, len(p.nodes))
	for _, n := range p.nodes {
		if n == first {
			continue
		}
		p.run(func() {
			f, sent, err := n.introduce(deadline, "", "", "")
			if err != nil {
				findings <- silent
				return
			}
			findings <- n.clock.lead(f.now, f.born, sent, time.Now(), leap/2)
		})
	}
	leads, inTime, ahead := []time.Duration{by}, 0, 1
	// Until those that are left can change nothing.
	for left := len(p.nodes) - 1; left > 0 && inTime < ahead+left && (ahead <= inTime+left || len(leads)+inTime < p.need); left-- {
		switch lead := <-findings; lead {
		case silent:
		case 0:
			inTime++
		default:
			leads = append(leads, lead)
			ahead = alike(leads)
		}
	}
	switch {
	case inTime >= ahead:
		return theirs
	case len(leads)+inTime >= p.need:
		return ours
	}
	return unknown
}

// alike is how many leads at most one stop of our clock explains. They differ by the rates of the nodes' clocks, and by the
// time that answers took.
func alike(leads []time.Duration) (most int) {
	for _, least := range leads {
		n := 0
		for _, lead := range leads {
			if lead >= least && lead-least <= time.Second+least/20 {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// explain finds out why the node seems to be ahead, and takes down when its clock was set; false when that is not known by
// the deadline. What comes out later is for the next answers.
func (n *node) explain(f facts, sent, received, deadline time.Time) bool {
	q := n.p.inquire(n, func() time.Duration { return n.clock.lead(f.now, f.born, sent, received, leap) })
	if q == nil {
		return true
	}
	if follow(q.over, deadline) {
		n.settle(q, f, sent)
		return q.wrong != unknown
	}
	n.p.run(func() {
		<-q.over
		if n.settle(q, f, sent); q.wrong == theirs {
			n.heard(&f, sent, received, deadline) // tells the node
		}
	})
	return false
}

// settle takes down what an inquiry found. Who finds the clock in time from then on finds also that the node does not count.
func (n *node) settle(q *inquiry, f facts, sent time.Time) {
	if q.wrong == theirs {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.revoked = f.born
		n.clock.set(f.now, f.born, sent)
	}
}

// revoke lets the node begin its memory anew. While it does not answer, its next answer of the old one does that.
func (n *node) revoke(born int64) {
	deadline := time.Now().Add(time.Second)
	f, sent, err := n.introduce(deadline, wire.Digits16(born), "", "a")
	n.mu.Lock()
	n.revoking = false
	n.mu.Unlock()
	if err == nil {
		n.heard(&f, sent, time.Now(), deadline)
	}
}
