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
// same token. If a majority names a holder but no such token, the hold is in the middle of its
// rounds, or some nodes do not answer. Then Look asks again, up to three times in all. After that
// the last replies decide: they tell of the hold if a majority may have accepted its token, and
// else of nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	var watch protocol.ID // whom the nodes are to tell of the next change; empty: nobody
	if watcher != nil && !watcher.NoMessages {
		watch = watcher.ID
	}
	deadline := within(ctx, lookTimeout)
	const tries = 3
	for try := 1; ; try++ {
		standing, retry, err := r.lookOnce(ctx, watch, deadline)
		if !retry || try == tries || !r.p.pause(ctx, pauseOf(try)) { // pause is false when ctx or Close ends it
			return standing, err
		}
	}
}

// within returns the deadline of ctx, or the end of the limit from now if that is earlier.
func within(ctx context.Context, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		return end
	}
	return deadline
}

// lookOnce asks all nodes once. It returns as soon as a majority agrees, or when all nodes have
// replied, or when ctx ends. If retry is true, the standing may be another one at the next try.
func (r *resource) lookOnce(ctx context.Context, watcher protocol.ID, deadline time.Time) (standing protocol.Standing, retry bool, err error) {
	replies := r.sendLook(watcher, deadline)
	tally := newLookTally(r)
	for range r.p.nodes {
		select {
		case reply := <-replies:
			tally.add(reply)
			if tally.tooManyForeign() {
				return standing, false, tally.foreignErr
			}
			if tally.majorityAgreesWith(reply) {
				return reply.Standing, false, nil
			}
		case <-ctx.Done():
			return standing, false, r.noAnswer(ctx)
		}
	}
	return tally.decideWithoutAgreement()
}

// noAnswer is the error of Look and of Unwatch when ctx ends before a majority has answered. Both
// send look.lua, so their errors name the same operation.
func (r *resource) noAnswer(ctx context.Context) error {
	return &protocol.Failure{Op: "look", Name: r.spec.Name, Reason: protocol.NoAnswer, Err: protocol.EndOf(ctx)}
}

// sendLook asks all nodes at the same time. Each gives one reply by the deadline. The channel has
// room for all, so no goroutine waits for a reader that has left.
func (r *resource) sendLook(watcher protocol.ID, deadline time.Time) <-chan *lookReply {
	replies := make(chan *lookReply, len(r.p.nodes))
	for _, n := range r.p.nodes {
		if watcher != "" {
			n.askSent(watcher) // until askDone, an Unwatch of the watcher waits at this node
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

// A lookTally counts the replies to a look. Only the goroutine of lookOnce uses it.
type lookTally struct {
	r       *resource
	answers []Node // what each node said, for the error of no majority

	foreign    int               // nodes whose key is of another kind or format
	foreignErr *protocol.Foreign // the error of the last of them

	counted        []*lookReply        // of the nodes that count; the rest is about these
	free           int                 // how many of them keep nothing of the name
	remaindersOnly int                 // how many keep remainders and no hold
	holders        map[protocol.ID]int // how many name a hold
	tokens         map[heldToken]int   // how many name a hold with this token
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
	var foreign *protocol.Foreign
	if errors.As(reply.err, &foreign) {
		t.foreign++
		t.foreignErr = foreign
	}
	if !reply.counts {
		return
	}
	t.counted = append(t.counted, reply)
	switch reply.state {
	case nameFree:
		t.free++
	case nameRemaindersOnly:
		t.remaindersOnly++
	case nameHeld:
		t.holders[reply.id]++
		t.tokens[reply.heldToken()]++
	}
}

// tooManyForeign tells whether so many nodes have a foreign key that the others are no majority.
func (t *lookTally) tooManyForeign() bool {
	return t.foreign > len(t.r.p.nodes)-t.r.p.need
}

// majorityAgreesWith tells whether a majority says what a reply says: that the name is free, that
// there are only remainders, or that there is this hold with this token.
func (t *lookTally) majorityAgreesWith(reply *lookReply) bool {
	if !reply.counts {
		return false
	}
	switch reply.state {
	case nameFree:
		return t.free >= t.r.p.need
	case nameRemaindersOnly:
		return t.remaindersOnly >= t.r.p.need
	}
	return reply.Token != 0 && t.tokens[reply.heldToken()] >= t.r.p.need
}

// decideWithoutAgreement decides when all nodes have answered or failed, and no majority agreed.
func (t *lookTally) decideWithoutAgreement() (standing protocol.Standing, retry bool, err error) {
	p := t.r.p
	if len(t.counted) < p.need {
		return standing, false, p.noMajority("look", t.r.spec.Name, t.answers)
	}
	nobody := protocol.Standing{Server: p.now()}
	best := t.largestToken()
	if best == nil {
		return nobody, false, nil // no hold is at a majority
	}
	// The nodes that are not counted may have accepted the token, and so a majority may have.
	uncounted := len(p.nodes) - len(t.counted)
	if best.Token != 0 && t.tokens[best.heldToken()]+uncounted >= p.need {
		return best.Standing, true, nil
	}
	return nobody, true, nil // the hold is in the middle of its rounds
}

// largestToken returns the reply with the largest token of those that name the hold at a majority.
// It is nil if no majority names the same hold.
func (t *lookTally) largestToken() (best *lookReply) {
	for _, reply := range t.counted {
		atMajority := reply.state == nameHeld && t.holders[reply.id] >= t.r.p.need
		if atMajority && (best == nil || reply.Token > best.Token) {
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
	for { // ends at the latest with the last result: then one of the two counts is reached
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
			return r.noAnswer(ctx)
		}
	}
}

// sendUnwatch asks all nodes at the same time to forget a watcher. Each gives one result by the
// deadline, and the channel has room for all.
func (r *resource) sendUnwatch(watcher protocol.ID, deadline time.Time) <-chan error {
	results := make(chan error, len(r.p.nodes))
	for _, n := range r.p.nodes {
		r.p.run(func() {
			// A look that arrives later would add the watcher again. If one is still under way at
			// the deadline, the request is too late as well, and its error is the result.
			n.awaitAsks(watcher, deadline)
			_, err := n.ask(&r.p.scripts.look, r.spec.Name, deadline, r.lookArgs(watcher, forgetWatcher))
			results <- err
		})
	}
	return results
}

// The actions of look.lua on a watcher, if it gets one.
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

// A nameState is what a node keeps of a name. A remainder is what is left of a hold that was
// broken, or of a min hold: it keeps others out as the hold did, and has no holder.
type nameState int

const (
	nameFree nameState = iota
	nameRemaindersOnly
	nameHeld
)

// A lookReply is what one node says of a name.
type lookReply struct {
	node   *node
	facts  facts
	counts bool  // the node has answered, and counts: it forgot no hold, as far as is known
	err    error // why it has not answered

	state             nameState
	id                protocol.ID // of the first of the holds by their ids; only if held
	protocol.Standing             // what Look returns: if held, with that hold and its token
}

// heldToken is the first hold with its token.
func (l *lookReply) heldToken() heldToken { return heldToken{l.id, l.Token} }

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
	reply.Since = reply.Token // the same for all that look, and mostly near the time of the grant
	reply.Server = reply.facts.now
	return reply
}

// read takes apart the text of a reply, as look.lua makes it:
//
//	"S" facts holders "|" waiters "|" hold
//
// The hold is the first one, and is empty if there is none. If only remainders are left, holders
// counts them, and the hold is that of nobody. Read returns false if the text is none of ours.
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
		l.state = nameFree
		return true
	}
	id, token, holder, ok := holderOf(fields[2])
	if onlyRemainders(id) {
		l.state = nameRemaindersOnly
		return ok
	}
	l.state, l.id, l.Token, l.Holder = nameHeld, id, token, holder
	return ok
}
