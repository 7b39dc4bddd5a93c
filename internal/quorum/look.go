package quorum

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// lookTimeout bounds a Look and an Unwatch whose context has no earlier deadline.
const lookTimeout = time.Second

// Look implements protocol.Resource. The holder is the one that a majority of nodes names with the
// same token. A hold whose nodes have no such token is in the middle of its rounds, or some of them
// do not answer, so Look asks up to three times. Then it returns what judge makes of the last
// replies: the hold, if a majority may have accepted its token, or else nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	var watch protocol.ID // empty: nobody is to be told
	if watcher != nil && !watcher.NoMessages {
		watch = watcher.ID
	}
	deadline := within(ctx, lookTimeout)
	const tries = 3
	for try := 1; ; try++ {
		standing, retry, err := r.lookOnce(ctx, watch, deadline)
		if !retry || try == tries || !r.p.pause(ctx, try) {
			return standing, err
		}
	}
}

// within is the deadline of ctx, but no later than after so long.
func within(ctx context.Context, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		return end
	}
	return deadline
}

// lookOnce asks all nodes once. It returns as soon as a majority agrees, and no later than ctx
// ends. If retry is true, the standing may be another one at the next try.
func (r *resource) lookOnce(ctx context.Context, watcher protocol.ID, deadline time.Time) (standing protocol.Standing, retry bool, err error) {
	replies := r.sendLook(watcher, deadline)
	tally := newLookTally(r)
	for range r.p.nodes {
		select {
		case reply := <-replies:
			tally.add(reply)
			if err := tally.foreignKey(); err != nil {
				return standing, false, err
			}
			if tally.agreesOn(reply) {
				return reply.Standing, false, nil
			}
		case <-ctx.Done():
			return standing, false, r.lookEnded(ctx)
		}
	}
	return tally.judge()
}

// lookEnded is the error when ctx ends before a majority has answered.
func (r *resource) lookEnded(ctx context.Context) error {
	return &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
}

// sendLook asks all nodes at the same time. Each gives one reply by the deadline, and the channel
// has room for all.
func (r *resource) sendLook(watcher protocol.ID, deadline time.Time) <-chan *lookReply {
	replies := make(chan *lookReply, len(r.p.nodes))
	for _, n := range r.p.nodes {
		if watcher != "" {
			n.askSent(watcher) // an Unwatch waits for it
		}
		r.p.run(func() {
			reply := r.lookAt(n, watcher, deadline)
			if watcher != "" {
				n.askDone(watcher)
			}
			replies <- reply
		})
	}
	return replies
}

// A lookTally counts the replies to a look.
type lookTally struct {
	r       *resource
	answers []Node // what each node said, for errors

	foreign   int               // nodes whose key is of another kind or format
	foreigner *protocol.Foreign // the error of one of them

	counted []*lookReply        // of the nodes that count
	holders map[protocol.ID]int // how many of them name a hold; the empty id: none
	tokens  map[heldToken]int   // how many of them name it with this token
}

// A heldToken is a hold with the token that a node accepted for it. The token is 0 if the node
// refused the one that was proposed.
type heldToken struct {
	id    protocol.ID
	token int64
}

func newLookTally(r *resource) *lookTally {
	return &lookTally{r: r, answers: r.p.noAnswers(), holders: map[protocol.ID]int{}, tokens: map[heldToken]int{}}
}

// add counts a reply.
func (t *lookTally) add(reply *lookReply) {
	t.answers[reply.node.index] = t.r.p.answerOf(reply.node, reply.facts, reply.counts, reply.err)
	var foreigner *protocol.Foreign
	if errors.As(reply.err, &foreigner) {
		t.foreign++
		t.foreigner = foreigner
	}
	if reply.counts {
		t.counted = append(t.counted, reply)
		t.holders[reply.id]++
		t.tokens[heldToken{reply.id, reply.Token}]++
	}
}

// foreignKey is the error that a node has a foreign key, if so many have one that the others are no
// majority; else nil.
func (t *lookTally) foreignKey() error {
	if t.foreign > len(t.r.p.nodes)-t.r.p.need {
		return t.foreigner
	}
	return nil
}

// agreesOn tells whether a majority agrees with a reply: on a hold and its token, that there is
// none, or that there are only remainders.
func (t *lookTally) agreesOn(reply *lookReply) bool {
	if !reply.counts {
		return false
	}
	hasHold := reply.id != "" && !onlyRemainders(reply.id)
	if !hasHold {
		return t.holders[reply.id] >= t.r.p.need
	}
	return reply.Token != 0 && t.tokens[heldToken{reply.id, reply.Token}] >= t.r.p.need
}

// judge decides when all nodes have answered or failed, and no majority agreed on a token.
func (t *lookTally) judge() (standing protocol.Standing, retry bool, err error) {
	p := t.r.p
	if len(t.counted) < p.need {
		return standing, false, p.noMajority("look", t.r.spec.Name, t.answers)
	}
	nobody := protocol.Standing{Server: p.now()}
	best := t.largestToken()
	if best == nil {
		return nobody, false, nil
	}
	// The nodes that are not counted may have accepted the token, and so a majority may have.
	uncounted := len(p.nodes) - len(t.counted)
	if best.Token != 0 && t.tokens[heldToken{best.id, best.Token}]+uncounted >= p.need {
		return best.Standing, true, nil
	}
	return nobody, true, nil // the hold is in the middle of its rounds
}

// largestToken is a reply that names the hold that a majority names, with the largest token of it;
// nil if no majority names the same hold.
func (t *lookTally) largestToken() (best *lookReply) {
	for _, reply := range t.counted {
		if t.holders[reply.id] >= t.r.p.need && (best == nil || reply.Token > best.Token) {
			best = reply
		}
	}
	return best
}

// Unwatch implements protocol.Resource. It returns when a majority of nodes has forgotten the
// watcher. A node that does not answer forgets it by itself.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	results := r.sendUnwatch(watcher.ID, within(ctx, lookTimeout))
	forgotten, failures := 0, 0
	for { // the last result decides at the latest
		select {
		case err := <-results:
			if err == nil {
				forgotten++
			} else {
				failures++
			}
			switch {
			case forgotten >= r.p.need:
				return nil
			case failures > len(r.p.nodes)-r.p.need:
				return err
			}
		case <-ctx.Done():
			return r.lookEnded(ctx)
		}
	}
}

// sendUnwatch asks all nodes at the same time to forget a watcher. Each gives one result.
func (r *resource) sendUnwatch(watcher protocol.ID, deadline time.Time) <-chan error {
	results := make(chan error, len(r.p.nodes))
	for _, n := range r.p.nodes {
		r.p.run(func() {
			n.awaitAsks(watcher, deadline) // a look that arrives later would leave the watcher
			_, err := n.ask(&r.p.scripts.look, r.spec.Name, deadline, r.lookArgs(watcher, forgetWatcher))
			results <- err
		})
	}
	return results
}

// What look.lua does with a watcher.
const (
	rememberWatcher = ""
	forgetWatcher   = "w"
)

// lookArgs is the command of look.lua. Node.exec fills in its name and the digest.
func (r *resource) lookArgs(watcher protocol.ID, how string) []any {
	address := "" // where the node sends a message: the watcher's id, and this process's channel
	if watcher != "" {
		address = string(watcher) + r.p.channel
	}
	const numKeys = 4
	return []any{
		nil, nil, numKeys, r.state, r.waiting, r.watching, r.p.factsKey(),
		r.mode, address, r.life, how,
	}
}

// A lookReply is what one node says of a name.
type lookReply struct {
	node   *node
	facts  facts
	counts bool  // the node counts, and has answered
	err    error // why it has not answered

	id                protocol.ID // of the first hold; empty: none
	protocol.Standing             // with the first hold and its token
}

// lookAt asks one node.
func (r *resource) lookAt(n *node, watcher protocol.ID, deadline time.Time) *lookReply {
	reply, sent := &lookReply{node: n}, time.Now()
	text, err := n.ask(&r.p.scripts.look, r.spec.Name, deadline, r.lookArgs(watcher, rememberWatcher))
	if err != nil {
		reply.err = err
		return reply
	}
	if !reply.read(text) {
		reply.err = n.unreadable("look", r.spec.Name, text)
		return reply
	}
	reply.counts = n.heard(&reply.facts, sent, time.Now(), deadline)
	reply.Since = reply.Token // all that look see the same
	reply.Server = reply.facts.now
	return reply
}

// read takes apart the text of a reply, as look.lua makes it:
//
//	"S" facts holders "|" waiters "|" hold
//
// The hold is the first one, and is empty if there is none. If only remainders are left, holders
// counts them, and the hold is that of nobody. It is false if the text is none of ours.
func (l *lookReply) read(text string) bool {
	f, rest, ok := head(text)
	if !ok || text[0] != 'S' {
		return false
	}
	fields := strings.SplitN(rest, "|", 3)
	if len(fields) != 3 {
		return false
	}
	holders, ok1 := wire.Number(fields[0])
	waiters, ok2 := wire.Number(fields[1])
	if !ok1 || !ok2 {
		return false
	}
	l.facts, l.Holders, l.Waiters = f, int(holders), int(waiters)
	if holders == 0 {
		return true
	}
	l.id, l.Token, l.Holder, ok = holderOf(fields[2])
	return ok
}
