package quorum

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

// A clockCheck finds out whose clock is wrong when a node's seems to be ahead: the node's, or ours.
// If it is ours, most nodes seem to be ahead, and by the same.
type clockCheck struct {
	done  chan struct{} // closed when found is known
	found wrongClock
}

// A wrongClock says whose clock is wrong.
type wrongClock int

const (
	wrongUnknown wrongClock = iota // fewer than a majority answered
	wrongOurs
	wrongTheirs // that of the nodes that seem to be ahead
)

// startClockCheck starts a check, one for all nodes that seem to be ahead at one time, or returns
// the one under way. All nodes are asked, as few may have answered since. It is nil if the node
// does not seem ahead any more, as a check ended just now.
func (p *Protocol) startClockCheck(n *node, lead func() time.Duration) *clockCheck {
	p.mu.Lock()
	by := lead()
	if by == 0 {
		p.mu.Unlock()
		return nil
	}
	check := p.clockCheck
	if check != nil {
		p.mu.Unlock()
		return check
	}
	check = &clockCheck{done: make(chan struct{})}
	p.clockCheck = check
	p.mu.Unlock()
	p.startWorker(func() {
		if check.found = p.compareClocks(n, by); check.found == wrongOurs {
			for _, n := range p.nodes {
				n.clock.forget()
			}
		}
		p.mu.Lock()
		p.clockCheck = nil
		p.mu.Unlock()
		close(check.done)
	})
	return check
}

// compareClocks reports whether as many nodes are in time as seem to be ahead by the same. Nodes
// that seem to be ahead by different times were set: no stop of our clock explains both. Nodes that
// do not answer within a second are neither. Half a leap counts as ahead: if our clock is slow, as
// one that is slewed, one node is found ahead first, and the others nearly are.
func (p *Protocol) compareClocks(first *node, by time.Duration) wrongClock {
	deadline := time.Now().Add(time.Second)
	others := slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return n == first })
	const silent = -1
	leads, inTime, ahead, left := []time.Duration{by}, 0, 1, len(others)
	_ = askNodes(p, others, func(n *node) time.Duration {
		f, sent, err := n.askFacts(deadline, "", "", "")
		if err != nil || f.same != nil {
			return silent
		}
		return n.clock.lead(f.now, f.born, sent, time.Now(), leap/2)
	}).collect(context.Background(), func(lead time.Duration) progress {
		left--
		switch lead {
		case silent:
		case 0:
			inTime++
		default:
			leads = append(leads, lead)
			ahead = mostByOneStop(leads)
		}
		// Until the answers that are left can change nothing.
		if inTime < ahead+left && (ahead <= inTime+left || len(leads)+inTime < p.need) {
			return goOn
		}
		return stop
	})
	switch {
	case inTime >= ahead:
		return wrongTheirs
	case len(leads)+inTime >= p.need:
		return wrongOurs
	}
	return wrongUnknown
}

// mostByOneStop returns how many leads at most one stop of our clock explains. They differ by the
// rates of the nodes' clocks, and by the time that answers took.
func mostByOneStop(leads []time.Duration) (most int) {
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

// checkClock finds out why the node seems to be ahead, and notes when its clock was set. It is
// false if that is not known by the deadline. A later finding is for the next answers.
func (n *node) checkClock(f facts, sent, received, deadline time.Time) bool {
	check := n.p.startClockCheck(n, func() time.Duration { return n.clock.lead(f.now, f.born, sent, received, leap) })
	if check == nil {
		return true
	}
	if awaitClosed(check.done, deadline) {
		n.applyClockCheck(check, f, sent)
		return check.found != wrongUnknown
	}
	n.p.startWorker(func() {
		<-check.done
		if n.applyClockCheck(check, f, sent); check.found == wrongTheirs {
			n.judgeFacts(&f, sent, received, deadline) // tells the node
		}
	})
	return false
}

// applyClockCheck notes what a check found. A request that finds the clock in time from then on
// also finds that the node does not count.
func (n *node) applyClockCheck(check *clockCheck, f facts, sent time.Time) {
	if check.found == wrongTheirs {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.revoked = f.born
		n.clock.set(f.now, f.born, sent)
	}
}

// revoke lets the node begin its memory anew. If the node does not answer, the next answer of the
// old memory does that.
func (n *node) revoke(born int64) {
	deadline := time.Now().Add(time.Second)
	f, sent, err := n.askFacts(deadline, wire.Digits16(born), "", "a")
	n.mu.Lock()
	n.revoking = false
	n.mu.Unlock()
	if err == nil {
		n.judgeFacts(&f, sent, time.Now(), deadline)
	}
}
