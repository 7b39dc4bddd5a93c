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
	given                // what was given back is left to a waiter
	failed               // an error
)

// A tally counts the answers of a round. Those of nodes that do not count are read, and not
// counted.
type tally struct {
	r       *resource
	need    int
	nodes   int
	pending int
	replies []*reply
	verdict verdict
	err     error

	foreign int   // nodes whose key is of another kind or format
	largest int64 // token that any node has accepted, also one that does not count

	// Of the nodes that count.
	answered int
	accepted int    // hold for us, with our token
	won      int    // hold for us, with our token or another
	upgrades int    // refuse, as our owner shares the name
	given    int    // left the hold that the ask gave back to a waiter
	broken   *reply // of a node where the hold of this ticket was broken; nil: none says so
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
	case 'R':
		t.broken = a
	case 'Y':
		t.given++
	}
}

// judge decides, if the answers so far allow it.
//
//nolint:gocyclo // one case for each verdict, in their order
func (t *tally) judge() {
	failures := len(t.replies) - t.answered
	most, _ := t.most()
	switch {
	case t.accepted >= t.need:
		t.verdict = held
	case t.won >= t.need:
		t.verdict = tokenRefused
	case t.won+t.pending >= t.need:
	case t.broken != nil: // the ticket cannot hold any more
		t.verdict, t.err = failed, &protocol.Broken{Name: t.r.spec.Name, By: t.broken.by}
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

// most is how many nodes name the holder that most of them name, and a reply of one of these.
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

// token is that of a hold if a majority names it; else 0.
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

// busy is the answer that others hold. A waiter for the end of a hold that nobody prolongs asks a
// little later the more others wait. If nobody is known to hold it asks soon: then no message need
// come.
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
			answer.Holders = max(answer.Holders, a.holders) // some nodes may not know a hold that shares
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
	if count >= t.need {
		answer.Remaining += rand.N(time.Duration(min(contenders, 256)) * 4 * time.Millisecond)
		return answer
	}
	soon := 20*time.Millisecond + rand.N(time.Duration(min(contenders, 64))*5*time.Millisecond)
	if t.verdict == busy { // a holder may hold at nodes that do not answer
		soon *= 10
	}
	if len(ends) == 0 || soon < answer.Remaining {
		answer.Remaining = soon
	}
	return answer
}

// foreigner is the first error of a node whose key is not of a quorum.
func (t *tally) foreigner() error {
	for _, a := range t.replies {
		var foreign *protocol.Foreign
		if errors.As(a.err, &foreign) {
			return foreign
		}
	}
	return nil
}

// failure is the error of a round that failed.
func (t *tally) failure(op string) error {
	if t.err != nil {
		return t.err
	}
	return t.noMajority(op)
}

// noMajority is the error that too few nodes answered, with the answer of each.
func (t *tally) noMajority(op string) error {
	answers := t.r.p.noAnswers()
	for _, a := range t.replies {
		answer := t.r.p.answerOf(a.node, a.facts, a.counts, a.err)
		if a.status != 0 && a.counts {
			answer.Answer = a.describe()
		}
		answers[a.node.index] = answer
	}
	return t.r.p.noMajority(op, t.r.spec.Name, answers)
}

// describe says what the node answered, in words.
func (a *reply) describe() string {
	switch a.status {
	case 'H', 'T', 'Y':
		return "free"
	case 'U':
		return "shared by the same owner"
	case 'R':
		return "broken"
	case 'B':
		if a.party.Label != "" {
			return fmt.Sprintf("held by %q", a.party.Label)
		}
		return "kept from others" // what a min hold keeps has no holder
	}
	return ""
}
