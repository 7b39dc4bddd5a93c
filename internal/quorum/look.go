package quorum

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// lookTimeout bounds a Look and an Unwatch whose context has no earlier deadline.
const lookTimeout = time.Second

// Look implements protocol.Resource. The holder is the one that a majority of nodes names with the
// same token. If a majority names a holder but no such token, the hold is in the middle of its
// rounds, or some nodes do not answer. Then Look asks again, up to three times in all. After that
// the last replies decide: they tell of the hold if a majority may have accepted its token, and
// else of nobody.
func (r *resource) Look(ctx context.Context, watcher *protocol.Ticket) (protocol.Standing, error) {
	var told protocol.ID // the nodes tell it of the next change; empty: none is told
	if watcher != nil && !watcher.NoMessages {
		told = watcher.ID
	}
	deadline := deadlineWithin(ctx, lookTimeout)
	const tries = 3
	for try := 1; ; try++ {
		standing, provisional, err := r.lookOnce(ctx, told, deadline)
		if !provisional || try == tries || !protocol.Pause(ctx, pauseOf(try), r.p.closing) {
			return standing, err
		}
	}
}

// deadlineWithin returns the deadline of ctx, or the end of the limit from now if that is earlier.
func deadlineWithin(ctx context.Context, limit time.Duration) time.Time {
	deadline := time.Now().Add(limit)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		return end
	}
	return deadline
}

// lookOnce asks all nodes once. It returns as soon as a majority agrees, or when all nodes have
// replied, or when ctx ends. A provisional standing may be another one at the next try.
func (r *resource) lookOnce(
	ctx context.Context, watcher protocol.ID, deadline time.Time,
) (standing protocol.Standing, provisional bool, err error) {
	t := &tally{p: r.p}
	ended := t.collect(ctx, r.sendLook(watcher, deadline), func() bool {
		return t.tooManyForeign() != nil || t.agreedReply() != nil
	})
	if ended != nil {
		return standing, false, noAnswer("look", r.spec.Name, ended)
	}
	if foreign := t.tooManyForeign(); foreign != nil {
		return standing, false, foreign
	}
	if agreed := t.agreedReply(); agreed != nil {
		return agreed.standing(), false, nil
	}
	return r.lookWithoutAgreement(t)
}

// tooManyForeign returns the error of the nodes that have a key of another kind, if they leave no
// majority.
func (t *tally) tooManyForeign() error {
	if n, err := t.foreign(); n > t.p.spare() {
		return err
	}
	return nil
}

// agreedReply returns a reply of a majority that names the same hold with the same token, or nil.
func (t *tally) agreedReply() *reply {
	if n, of := most(t, heldTokenOf); n >= t.p.need {
		return of
	}
	return nil
}

// A heldToken is what nodes must agree on: a hold, with the token that was accepted for it. No
// hold, and only remainders, are ids of their own without a token.
type heldToken struct {
	id    protocol.ID
	token int64
}

// heldTokenOf returns what a node says of a name. It returns false for a node that does not count,
// and for one that names a hold but refused its token: no majority can agree on that.
func heldTokenOf(a *reply) (heldToken, bool) {
	return heldToken{a.holder, a.token}, a.counts && (!a.namesHold() || a.token != 0)
}

// namesHold reports whether a node names a hold, and not only remainders or nothing.
func (a *reply) namesHold() bool { return a.holder != "" && a.holder != nobody }

// lookWithoutAgreement decides when all nodes have answered or failed, and no majority agreed.
func (r *resource) lookWithoutAgreement(t *tally) (standing protocol.Standing, provisional bool, err error) {
	if t.counting() < r.p.need {
		return standing, false, t.noMajority("look", r.spec.Name)
	}
	none := protocol.Standing{Server: r.p.now()}
	holder, ok := t.majorityHolder()
	if !ok {
		return none, false, nil
	}
	if largest := t.largestToken(holder); t.mayBeAccepted(largest) {
		return largest.standing(), true, nil
	}
	return none, true, nil // the hold is in the middle of its rounds
}

// majorityHolder returns the hold that a majority of nodes names, with whatever token.
func (t *tally) majorityHolder() (holder protocol.ID, ok bool) {
	n, of := most(t, func(a *reply) (protocol.ID, bool) {
		return a.holder, a.counts && a.namesHold()
	})
	if n < t.p.need {
		return "", false
	}
	return of.holder, true
}

// largestToken returns the reply that names the largest token of a hold that a majority names.
func (t *tally) largestToken(holder protocol.ID) *reply {
	largest := &reply{}
	for _, a := range t.replies {
		if a.counts && a.holder == holder && a.token >= largest.token {
			largest = a
		}
	}
	return largest
}

// mayBeAccepted reports whether a majority may have accepted the token of a reply for its hold. The
// nodes that do not count may have.
func (t *tally) mayBeAccepted(a *reply) bool {
	if a.token == 0 {
		return false
	}
	accepted := t.count(func(b *reply) bool { return b.counts && b.holder == a.holder && b.token == a.token })
	uncounted := len(t.p.nodes) - t.counting()
	return accepted+uncounted >= t.p.need
}

// standing returns what Look tells, by a reply on which a majority agrees. A token is a time in
// microseconds of the servers, near that of the grant. So it serves as Since, which is then the
// same for all that look.
func (a *reply) standing() protocol.Standing {
	return protocol.Standing{Server: a.facts.now, Holder: a.party, Token: a.token, Since: a.token,
		Holders: a.holders, Waiters: a.waiters}
}

// sendLook asks all nodes. Each gives one reply by the deadline.
func (r *resource) sendLook(watcher protocol.ID, deadline time.Time) *fanOut[*reply] {
	return prepareAndAsk(r.p, r.p.nodes, func(n *node) func() *reply {
		if watcher == "" {
			return func() *reply { return r.lookAt(n, "", deadline) }
		}
		n.askSent(watcher) // until askDone, an Unwatch of the watcher waits at this node
		return func() *reply {
			defer n.askDone(watcher)
			return r.lookAt(n, watcher, deadline)
		}
	})
}

func (r *resource) lookAt(n *node, watcher protocol.ID, deadline time.Time) *reply {
	return n.query(&r.p.scripts.look, r.spec.Name, deadline, r.lookArgs(watcher, rememberWatcher), (*reply).readLook)
}

// Unwatch implements protocol.Resource. It returns when a majority of nodes has forgotten the
// watcher. A node that does not answer forgets it by itself.
func (r *resource) Unwatch(ctx context.Context, watcher protocol.Ticket) error {
	deadline := deadlineWithin(ctx, lookTimeout)
	return r.p.collectMajority(ctx, askNodes(r.p, r.p.nodes, func(n *node) *reply {
		// A look that arrives later would add the watcher again. If one is still under way at the
		// deadline, the request is too late as well, and its error is the reply.
		n.awaitAsks(watcher.ID, deadline)
		_, err := n.askScript(&r.p.scripts.look, r.spec.Name, deadline, r.lookArgs(watcher.ID, forgetWatcher))
		return &reply{node: n, counts: err == nil, err: err}
	}), "look", r.spec.Name) // the script of both is look.lua
}

// The actions of look.lua on a watcher, if it gets one.
const (
	rememberWatcher = ""
	forgetWatcher   = "w"
)

// lookArgs returns the command of look.lua. Node.execScript fills in its name and the digest.
func (r *resource) lookArgs(watcher protocol.ID, how string) []any {
	address := "" // of the message that the node sends: the watcher's id, and this process's channel
	if watcher != "" {
		address = string(watcher) + r.p.channel
	}
	const numKeys = 4
	return []any{
		nil, nil, numKeys, r.state, r.waiting, r.watching, r.p.factsKey(),
		r.mode, address, r.life, how,
	}
}
