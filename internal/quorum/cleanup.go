package quorum

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// endless is the round of a release: no hold is of a later one. A hold that was confirmed since it was asked for has it too
// (AGREED of state.lua).
const endless = math.MaxInt64 >> 11 // sixteen digits

// A debt is something to be given back at one node, until that is certain or nothing can be left.
type debt struct {
	r          *resource
	id         protocol.ID
	round      int64
	how        byte // see free.lua
	keep       time.Time
	waiter     string
	due, until time.Time
}

// owe takes a debt down, and starts who pays it.
func (n *node) owe(d debt) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.debts = append(n.debts, d)
	if n.nudge == nil {
		n.nudge = make(chan struct{}, 1)
	}
	select {
	case n.nudge <- struct{}{}:
	default:
	}
	if !n.working {
		n.working = true
		n.p.run(n.work)
	}
}

// instead forgets what would tell that an id does not wait any more: a release tells that as well.
func (n *node) instead(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.debts = slices.DeleteFunc(n.debts, func(d debt) bool { return d.how == 'p' && d.id == id })
}

// work pays debts, until there are none. A node that does not answer is asked a few times a second at most.
func (n *node) work() {
	pause := time.Duration(0)
	for last := false; ; {
		due, next := n.due(last)
		if len(due) == 0 && next.IsZero() {
			return
		}
		if len(due) > 0 {
			if n.pay(due, pause > 0, last) {
				pause = 0
			} else {
				pause = min(max(2*pause, 50*time.Millisecond), time.Second)
				next = time.Now().Add(pause)
			}
			if pause == 0 || last { // at last, nothing is kept but what came in meanwhile
				continue
			}
		}
		timer := time.NewTimer(time.Until(next))
		nudge := n.nudge
		if pause > 0 {
			nudge = nil
		}
		select {
		case <-timer.C:
		case <-nudge:
		case <-n.p.closing: // once more, whatever is due
			last = true
		}
		timer.Stop()
	}
}

// due takes out what is to be paid now, and tells when the next is; zero: there is none, and who pays ends.
func (n *node) due(all bool) (due []debt, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	var rest []debt
	for _, d := range n.debts {
		switch {
		case now.After(d.until):
		case all || !now.Before(d.due):
			due = append(due, d)
		default:
			rest = append(rest, d)
			if next.IsZero() || d.due.Before(next) {
				next = d.due
			}
		}
	}
	n.debts = rest
	if len(due) == 0 && len(rest) == 0 {
		n.working = false
	}
	return due, next
}

// pay sends frees together, and keeps those that got no answer; false when there were any. A node that did not answer is asked
// for one of them first; at last for all, and none is kept.
func (n *node) pay(due []debt, silent, last bool) bool {
	if silent && !last && len(due) > 1 {
		if !n.pay(due[:1], false, false) {
			n.mu.Lock()
			n.debts = append(n.debts, due[1:]...)
			n.mu.Unlock()
			return false
		}
		due = due[1:]
	}
	deadline := time.Now().Add(time.Second)
	failed := make(chan *debt, len(due))
	for i := range due {
		go func() {
			if _, _, err := n.free(&due[i], deadline); err != nil && passing(err) {
				failed <- &due[i]
				return
			}
			failed <- nil
		}()
	}
	fine := true
	for range due {
		if d := <-failed; d != nil {
			if fine = false; last {
				continue
			}
			n.mu.Lock()
			n.debts = append(n.debts, *d)
			n.mu.Unlock()
		}
	}
	return fine
}

var errBehind = errors.New("an earlier request is on its way, and got no answer yet")

// free gives one ticket back at the node. It tells whether it had a hold there ('1'), had none
// ('0'), or had one that another caller took over ('R'), with the label of that caller.
func (n *node) free(d *debt, deadline time.Time) (was byte, by string, err error) {
	if !n.await(d.id, deadline) {
		return 0, "", &protocol.Failure{Op: "release", Name: d.r.spec.Name, Node: nodeName(n.index), Reason: protocol.NoAnswer, Err: errBehind}
	}
	if d.how == 'w' { // from here on an ask follows, and one that came before wants its place
		defer n.freeing(d.r.spec.Name)()
		if n.p.asks(d.id) {
			return '0', "", nil
		}
	}
	keep := int64(0)
	if !d.keep.IsZero() {
		keep = max(0, int64(math.Ceil(time.Until(d.keep).Seconds()*1000)))
	}
	r := d.r
	text, err := n.ask(&r.p.scripts.free, r.spec.Name, deadline, []any{nil, nil, 3, r.state, r.waiting, r.watching,
		string(d.id), r.mode, wire.Digits16(d.round), keep, string(d.how), d.waiter})
	if err != nil {
		return 0, "", err
	}
	fine := text == "0" || text == "1"
	if text[0] == 'R' {
		by, fine = takenBy(text[1:])
	}
	if !fine {
		return 0, "", n.unreadable("release", r.spec.Name, text)
	}
	return text[0], by, nil
}
