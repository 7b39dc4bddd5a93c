package quorum

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A verdict is what a round came to.
type verdict int

const (
	open         verdict = iota
	held                 // a majority holds for us, with our token
	tokenRefused         // a majority holds for us, and not all of it accepted the token
	busy                 // another holds, or may
	split                // nobody has a majority
	given                // what was given back is left to one who waits
	failed               // an error
)

// A tally counts the answers of a round. Those of nodes that do not count are heard, and not counted.
type tally struct {
	r       *resource
	need    int
	nodes   int
	pending int
	replies []*reply
	verdict verdict
	err     error

	accepted, won, answered int
	foreign, upgrades       int
	given                   int
	largest                 int64
}

func (t *tally) take(a *reply) {
	t.pending--
	t.replies = append(t.replies, a)
	if a.status == 0 {
		var foreign *protocol.Foreign
		if errors.As(a.err, &foreign) {
			t.foreign++
		}
		return
	}
	t.largest = max(t.largest, a.facts.last)
	if !a.counts {
		return
	}
	t.answered++
	switch a.status {
	case 'H':
		t.accepted++
		t.won++
	case 'T':
		t.won++
	case 'U':
		t.upgrades++
	case 'Y':
		t.given++
	}
}

// judge decides, if the answers so far allow it.
func (t *tally) judge() {
	failures := len(t.replies) - t.answered
	most, _ := t.most()
	switch {
	case t.accepted >= t.need:
		t.verdict = held
	case t.won >= t.need:
		t.verdict = tokenRefused
	case t.won+t.pending >= t.need:
	case t.upgrades > 0 && (t.upgrades >= t.need || t.pending == 0):
		t.verdict, t.err = failed, &protocol.Upgrade{Name: t.r.spec.Name}
	case t.foreign > t.nodes-t.need:
		t.verdict, t.err = failed, t.foreigner()
	case t.answered+t.pending < t.need:
		t.verdict = failed
	case t.answered < t.need:
	case most+t.given >= t.need:
		t.verdict = busy
		if t.given > 0 {
			t.verdict = given
		}
	case t.pending > 0 && most+t.pending+failures >= t.need:
	case t.given > 0:
		t.verdict = given
	case most+failures >= t.need:
		t.verdict = busy
	default:
		t.verdict = split
	}
}

// most is how many nodes name the one who holds at most of them, and a reply of one of these.
func (t *tally) most() (count int, of *reply) {
	for i, a := range t.replies {
		if a.status != 'B' {
			continue
		}
		n := 0
		for _, b := range t.replies[i:] {
			if b.status == 'B' && b.holder == a.holder {
				n++
			}
		}
		if n > count {
			count, of = n, a
		}
	}
	return count, of
}

// token is that of a hold where a majority names it; else 0.
func (t *tally) token(holder protocol.ID) int64 {
	named := map[int64]int{}
	for _, a := range t.replies {
		if a.status == 'B' && a.holder == holder {
			if named[a.token]++; named[a.token] >= t.need {
				return a.token
			}
		}
	}
	return 0
}

// contenders is how many others seem to want the name.
func (t *tally) contenders() int {
	var ids []protocol.ID
	waiters := 0
	for _, a := range t.replies {
		if a.status == 'B' {
			waiters = max(waiters, a.waiters)
			if !slices.Contains(ids, a.holder) {
				ids = append(ids, a.holder)
			}
		}
	}
	return len(ids) + waiters
}

// busy is the answer that others hold. Who waits for the end of a hold that nobody prolongs asks a little later the more
// others do, and soon where nobody is known to hold: then no message need come.
func (t *tally) busy(now int64, join bool) protocol.Answer {
	answer := protocol.Answer{Status: protocol.Busy, Server: now}
	count, of := t.most()
	if of != nil {
		answer.Holder, answer.Token = of.party, t.token(of.holder)
	}
	var ends []time.Duration
	for _, a := range t.replies {
		if a.status == 'B' {
			ends = append(ends, a.remaining)
			answer.Holders = max(answer.Holders, a.holders) // one that shares may be unknown at some
			answer.Waiters = max(answer.Waiters, a.waiters)
		}
	}
	slices.Sort(ends)
	if at := t.need - t.won - 1; len(ends) > 0 {
		answer.Remaining = ends[min(max(at, 0), len(ends)-1)]
	}
	if !join {
		return answer
	}
	contenders := 1 + t.contenders()
	answer.Waiters = 0
	if count < t.need {
		soon := 20*time.Millisecond + rand.N(time.Duration(min(contenders, 64))*5*time.Millisecond)
		if t.verdict == busy { // one that may hold at nodes that do not answer
			soon *= 10
		}
		answer.Remaining = min(answer.Remaining, soon)
		if len(ends) == 0 {
			answer.Remaining = soon
		}
	} else {
		answer.Remaining += rand.N(time.Duration(min(contenders, 256)) * 4 * time.Millisecond)
	}
	return answer
}

// foreigner is the first error of a node whose key is none of ours.
func (t *tally) foreigner() error {
	for _, a := range t.replies {
		var foreign *protocol.Foreign
		if errors.As(a.err, &foreign) {
			return foreign
		}
	}
	return nil
}

// noMajority is the error that too few nodes answered, with what each said.
func (t *tally) noMajority(op string) error {
	said := make([]Node, t.nodes)
	for i := range said {
		said[i] = Node{Name: nodeName(i), Err: errNotYet}
	}
	for _, a := range t.replies {
		said[a.node.index] = t.r.p.said(a.node, a.facts, a.counts, a.err)
		if a.status != 0 && a.counts {
			said[a.node.index].Answer = map[byte]string{'H': "free", 'T': "free", 'Y': "free", 'U': "shared by the same owner", 'R': "taken over"}[a.status]
			if a.status == 'B' {
				said[a.node.index].Answer = "kept from others" // what a min hold keeps has no holder
				if a.party.Label != "" {
					said[a.node.index].Answer = fmt.Sprintf("held by %q", a.party.Label)
				}
			}
		}
	}
	return t.r.p.noMajority(op, t.r.spec.Name, said)
}
