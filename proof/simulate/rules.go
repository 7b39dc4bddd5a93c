package simulate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// This file has the rules that the ledger checks. Its mutex is held in all of them that do not say
// otherwise.

// overlaps reports whether two holdings must not be trusted at one time.
func (h *holding) overlaps(other *holding) bool {
	return h != other && h.Claim().Excludes(other.Claim())
}

// checkToken checks the token of a new hold. The tokens of a quorum grow where the order of the
// grants is known; those of a server always do, but for readers and permits, which may return in
// another order.
func (l *ledger) checkToken(name string, h *holding) {
	token := h.tokens[name]
	if !judge.IsToken(token) {
		l.addViolation(judge.Token, "%s %v: %d is no token", name, h, token)
	}
	earlier := l.granted[name]
	if old := slices.IndexFunc(earlier, func(other *holding) bool {
		return !other.from.Before(h.called.Add(-2 * time.Minute))
	}); old >= 0 {
		earlier = earlier[old:]
	} else {
		earlier = nil
	}
	grants := make([]judge.Grant, len(earlier))
	for i, other := range earlier {
		grants[i] = l.grantOf(other, name)
	}
	if i, text := judge.Rival(grants, l.grantOf(h, name)); text != "" {
		l.addViolation(judge.Token, "%s %v: token %d %s %d of %v", name, h, token, text, grants[i].Token, earlier[i])
	}
	ordered := h.certain && l.plan.Mode != Quorum && !h.shared && h.op.Type != history.Semaphore
	if ordered && !l.tokens[name].Grow(token, false) {
		l.addViolation(judge.Token, "%s %v: %d after %d", name, h, token, l.tokens[name].Largest)
	}
	l.tokens[name] = l.tokens[name].With(token, h.shared)
}

// checkOverlap checks rule 1 for a name, now.
func (l *ledger) checkOverlap(name string) {
	if time.Now().Before(l.excusedUntil) {
		l.counts["excused"]++
		return
	}
	trusted := judge.Trusted(l.live[name])
	together := slices.ContainsFunc(trusted, func(h *holding) bool { return slices.ContainsFunc(trusted, h.overlaps) })
	if together || judge.Sum(trusted) > maxPermits {
		var text []string
		for _, h := range trusted {
			text = append(text, fmt.Sprintf("%v token %d since %v", h, h.tokens[name], h.from.Sub(l.zero)))
		}
		l.addViolation(judge.Overlap, "%s: %s", name, strings.Join(text, "; "))
	}
}

// maxIdleTime returns how long a name may be free while no fault shows; over a quorum, which
// promises no order and takes some time for its messages, until the waiter has asked twice.
func (l *ledger) maxIdleTime() time.Duration {
	if l.plan.Mode == Quorum {
		return 12 * time.Second
	}
	return maxIdle
}

// checkStuck checks that the first waiter of a class does not wait while nobody holds.
func (l *ledger) checkStuck(r *classState) {
	if l.faulty > 0 || r.releasing > 0 || len(r.waiting) == 0 {
		return
	}
	var first *wait
	for w := range r.waiting {
		if first == nil || w.called.Before(first.called) {
			first = w
		}
	}
	for _, name := range locks {
		if class(name) == class(first.op.Names[0]) && slices.ContainsFunc(l.live[name], (*holding).Trusted) {
			return
		}
	}
	since := first.called
	if r.idle.After(since) {
		since = r.idle
	}
	if now := time.Now(); now.After(since.Add(l.maxIdleTime())) && now.After(l.recoveredAt) {
		l.addViolation(judge.Stuck, "%v waits since %v, nobody holds since %v, and no fault since %v",
			first, first.called.Sub(l.zero), since.Sub(l.zero), l.recoveredAt.Add(-recoveryTime).Sub(l.zero))
	}
}

// checkNotice checks the notice of a loss, when it comes; it takes mu.
func (l *ledger) checkNotice(h *holding) {
	err := h.lease.Err()
	var lost *holdfast.LostError
	l.mu.Lock()
	defer l.mu.Unlock()
	if h.client.dead || !errors.As(err, &lost) {
		return
	}
	l.noteLoss(h, lost)
	l.addEvent(h.client, h.op.ID, "lost", string(lost.Reason))
	l.forgetMinHold(h)
	late := time.Since(h.lease.Until())
	switch {
	case late > time.Millisecond:
		l.addViolation(judge.Lost, "%v was told %v late", h, late)
	case lost.Reason == holdfast.LossMaxHold && h.op.MaxHold > 0, lost.Reason == holdfast.LossExpired &&
		(h.op.Fixed || l.isTroubled()):
	case l.plan.Mode == Quorum && l.isTroubled(): // a master forgot while another had not heard of it
	case time.Now().Before(l.excusedUntil) || h.excused || l.mayBeEnded(h, lost):
	default:
		l.addViolation(judge.Lost, "%v was lost: %v", h, err)
	}
}

// checkRenewal takes a renewal that the server got: while no fault shows, none comes for what was
// given back; it takes mu.
func (l *ledger) checkRenewal(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at, ended := l.ended[id]; ended && time.Since(at) > renewalGap && !l.isTroubled() && !l.isHeld(id) {
		l.addViolation(judge.Release, "a hold was renewed %v after it was given back", time.Since(at))
	}
}

// isHeld reports whether a lease that was not released has a hold: it passes from goroutine to
// goroutine, with its id.
func (l *ledger) isHeld(id string) bool {
	for _, live := range l.live {
		if slices.ContainsFunc(live, func(h *holding) bool { return !h.released && h.lease.Owner() == id }) {
			return true
		}
	}
	return false
}

// checkOverlaps checks rule 1 for all names; it takes mu.
func (l *ledger) checkOverlaps() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for name := range l.live {
		l.checkOverlap(name)
	}
}
