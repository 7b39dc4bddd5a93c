package simulate

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// A Violation is one rule broken once.
type Violation struct {
	Rule string
	At   time.Duration
	Text string
}

func (v Violation) String() string { return fmt.Sprintf("%s at %v: %s", v.Rule, v.At, v.Text) }

const (
	// recoveryTime is after which time without a fault everything is as if there had been none:
	// TTLs are over, the dead are taken out of the queue (18 s), the living have asked (6 s), and
	// slow answers have come.
	recoveryTime = longestTTL + 18*time.Second + 6*time.Second + 4*time.Second
	// maxIdle is the longest that a name may be free, while no fault shows, while somebody waits:
	// the claim of a hand-over that the waiter gave up at that moment, or the first ask of one that
	// did not know when the holder's time is over.
	maxIdle = 1500 * time.Millisecond
	// overlapExcuse is how long after a fault that lets another in beside a holder overlaps are not
	// counted: until the holder's renewal, or the end of its trust.
	overlapExcuse = longestTTL + time.Second
	// releaseTime is how much of its trust a release needs at most while no fault shows, to connect
	// and to be answered; it lasts no longer than trust.
	releaseTime = 20 * time.Millisecond
	// renewalGap is how long after a release a renewal may come that was sent before.
	renewalGap = 100 * time.Millisecond
)

// A ledger knows what is held, waited for and troubled at each moment, and checks it.
type ledger struct {
	plan *Plan
	zero time.Time

	mu           sync.Mutex
	live         map[string][]*holding // by name; some may be over
	granted      map[string][]*holding // by name, all
	tokens       map[string]judge.Tokens
	breaks       map[string][]breakAttempt // by name: who tried to end which hold
	evicts       map[string]bool           // names of which an operator evicted a waiter
	classes      map[string]*classState    // by class
	ended        map[string]time.Time      // when a hold was given back, by its id
	kept         map[string]judge.Kept     // by name: the last min hold, at its earliest end
	crew         map[*client]int           // who shares out shards, with its weight
	shardsAt     time.Time                 // of the last change of those
	faulty       int                       // faults that last
	recoveredAt  time.Time                 // when everything must have come right since the last fault
	excusedUntil time.Time                 // until when overlaps are excused
	events       []event
	found        []Violation
	counts       map[string]int
}

// A classState is what is known of all that is held together.
type classState struct {
	idle      time.Time // since when, if nobody holds
	releasing int       // releases under way
	waiting   map[*wait]bool
}

// noteEnd notes that a holding is over: nobody holds from now on, or from the end of the last min
// hold.
func (r *classState) noteEnd(h *holding) {
	for _, end := range []time.Time{time.Now(), h.from.Add(h.op.MinHold * 101 / 100)} {
		if end.After(r.idle) {
			r.idle = end
		}
	}
}

// A wait is an operation that wants to hold.
type wait struct {
	op     *Op
	client *client
	called time.Time
}

// A holding is a lease that was given.
type holding struct {
	*wait
	lease    *holdfast.Lease
	tokens   map[string]int64
	from     time.Time
	shared   bool
	released bool
	left     time.Duration // of its trust, when it was released
	reported bool          // it was told that a majority would let another in
	excused  bool          // it may have been lost while overlaps were excused
	broken   *breaking     // it was ended, and its code goes on; nil: not as far as is known
	certain  bool          // nothing excused another beside it when it began
}

type event struct {
	at     time.Duration
	client string
	op     int
	what   string
	text   string
}

func newLedger(p *Plan) *ledger {
	l := &ledger{plan: p, zero: time.Now(), live: map[string][]*holding{}, granted: map[string][]*holding{},
		tokens: map[string]judge.Tokens{},
		breaks: map[string][]breakAttempt{}, evicts: map[string]bool{}, classes: map[string]*classState{},
		crew: map[*client]int{}, ended: map[string]time.Time{}, kept: map[string]judge.Kept{}, counts: map[string]int{}}
	for _, name := range p.names() {
		if l.classes[class(name)] == nil {
			l.classes[class(name)] = &classState{idle: l.zero, waiting: map[*wait]bool{}}
		}
	}
	return l
}

// addEvent writes down what happened. mu is held, as by all below that do not say otherwise.
func (l *ledger) addEvent(c *client, op int, what, text string) {
	name := ""
	if c != nil {
		name = c.name
	}
	l.events = append(l.events, event{time.Since(l.zero), name, op, what, text})
	l.counts[what]++
}

func (l *ledger) addViolation(rule, format string, args ...any) {
	l.found = append(l.found, Violation{rule, time.Since(l.zero), fmt.Sprintf(format, args...)})
}

// report adds a violation; it takes mu.
func (l *ledger) report(rule, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.addViolation(rule, format, args...)
}

func (w *wait) String() string {
	return fmt.Sprintf("op %d (%s %v of %s)", w.op.ID, w.op.Type, w.op.Names, w.client.name)
}

// Trusted reports whether a hold counts: its lease says so, its process lives.
func (h *holding) Trusted() bool { return !h.released && !h.client.dead && h.lease.Err() == nil }

// Claim returns how it holds now.
func (h *holding) Claim() judge.Claim {
	return judge.Claim{Owner: h.op.Owner, Shares: h.shared, Weight: h.op.Weight}
}

// grantOf returns how it began to hold a name.
func (l *ledger) grantOf(h *holding, name string) judge.Grant {
	claim := h.Claim()
	claim.Shares = h.op.Shares
	return judge.Grant{
		Claim: claim, Proc: h.client.name, Joined: h.shared, Token: h.tokens[name],
		Called: int64(h.called.Sub(l.zero)), Returned: int64(h.from.Sub(l.zero)), Trusted: h.certain,
	}
}

// beginWait counts a wait in; it takes mu.
func (l *ledger) beginWait(c *client, op *Op) *wait {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &wait{op: op, client: c, called: time.Now()}
	if !op.Try && !op.Poll {
		l.classes[class(op.Names[0])].waiting[w] = true
	}
	l.addEvent(c, op.ID, "call", "")
	return w
}

// endWait counts it out, with a lease or without; it takes mu.
func (l *ledger) endWait(w *wait, lease *holdfast.Lease, err error) *holding {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.classes[class(w.op.Names[0])]
	if !w.client.dead {
		l.checkStuck(r)
	}
	delete(r.waiting, w)
	if err != nil {
		l.addEvent(w.client, w.op.ID, "no", l.failureReason(w, err))
		return nil
	}
	h := &holding{wait: w, lease: lease, tokens: lease.Tokens(), from: time.Now(), shared: w.op.Shares}
	l.addEvent(w.client, w.op.ID, "got", fmt.Sprint(h.tokens))
	if !h.Trusted() {
		r.noteEnd(h)
		return h
	}
	for _, name := range w.op.Names {
		l.addHolding(name, h)
	}
	return h
}

// addHolding checks a new hold against the others of its name.
func (l *ledger) addHolding(name string, h *holding) {
	l.live[name] = append(judge.Trusted(l.live[name]), h)
	l.checkOverlap(name)
	l.checkBroken(name, h)
	if early := l.kept[name].Early(h.Claim(), time.Since(l.zero)); early > 0 {
		l.addViolation(judge.MinHold, "%s %v: %v before its end", name, h, early)
	}
	if h.op.MinHold > 0 { // by the server's clock, and not from before it was called for
		l.kept[name] = judge.Kept{Claim: h.Claim(), Until: h.called.Sub(l.zero) + h.op.MinHold*99/100}
	}
	h.certain = l.plan.Mode == Quorum || time.Now().After(l.excusedUntil)
	l.checkToken(name, h)
	l.granted[name] = append(l.granted[name], h)
}

// failureReason names why there is no lease, and says when it should not be so.
func (l *ledger) failureReason(w *wait, err error) string {
	var held *holdfast.HeldError
	var wait *holdfast.WaitError
	var argument *holdfast.ArgumentError
	switch {
	case w.client.dead:
		return "dead"
	case errors.As(err, &wait) && wait.Reason == holdfast.WaitEvicted:
		return l.checkEvicted(w)
	case errors.As(err, &wait):
		return "gave up"
	case errors.As(err, &held) && (w.op.Try || w.op.Poll):
		return "held"
	case w.op.Owner != "" && errors.As(err, &argument):
		return "upgrade"
	case l.plan.Mode != Calm && errors.Is(err, holdfast.ErrUnavailable): // a connection may have broken long ago
		return "unavailable"
	}
	var refused *holdfast.StoreError
	if l.isTroubled() && errors.As(err, &refused) {
		return "refused"
	}
	l.addViolation(judge.Failed, "%v: %v", w, err)
	return "failed"
}

// isTroubled reports whether a fault may show.
func (l *ledger) isTroubled() bool { return l.faulty > 0 || time.Now().Before(l.recoveredAt) }

// forgetMinHold is for a hold that was lost: over a quorum its min hold is not kept everywhere
// then.
func (l *ledger) forgetMinHold(h *holding) {
	if l.plan.Mode == Quorum && h.op.MinHold > 0 {
		for _, name := range h.op.Names {
			delete(l.kept, name)
		}
	}
}

// beginRelease marks a hold as no longer used, before it is released; it takes mu.
func (l *ledger) beginRelease(h *holding) (was error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was = h.lease.Err()
	h.released, h.left = true, time.Until(h.lease.Until())
	l.classes[class(h.op.Names[0])].releasing++
	l.addEvent(h.client, h.op.ID, "release", "")
	return was
}

// endRelease takes the answer to the release; it takes mu.
func (l *ledger) endRelease(h *holding, was, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := l.classes[class(h.op.Names[0])]
	r.releasing--
	r.noteEnd(h)
	if errors.Is(err, holdfast.ErrLost) && !h.client.dead {
		l.forgetMinHold(h)
	}
	if err == nil && was == nil && !h.shared && !h.client.dead { // readers share a hold, which goes on
		l.ended[h.lease.Owner()] = time.Now()
	}
	result, may := l.releaseResult(h, was, err)
	if !may && err != nil {
		l.addViolation(judge.Release, "%v: %v", h, err)
	} else if !may {
		l.addViolation(judge.Release, "%v was reported done although %v", h, was)
	}
	l.addEvent(h.client, h.op.ID, "released", result)
}

// releaseResult names what came of a release, and reports whether it may have: a hold is lost, or
// its fate unknown, only while a fault may show, or where it ends by itself.
func (l *ledger) releaseResult(h *holding, was, err error) (result string, may bool) {
	var refused *holdfast.StoreError
	troubled := l.isTroubled()
	switch {
	case h.client.dead:
		return "dead", true
	case errors.Is(err, holdfast.ErrLost):
		return "lost", was != nil || troubled || l.mayBeEnded(h, nil) || h.op.Fixed || h.op.MaxHold > 0
	case l.plan.Mode == Quorum && troubled && errors.Is(err, holdfast.ErrUnavailable):
		return "unavailable", true
	case errors.Is(err, holdfast.ErrUncertain) && (troubled || h.left < releaseTime):
		return "uncertain", true
	case err != nil:
		return "refused", troubled && errors.As(err, &refused)
	}
	return "done", was == nil
}

// noteFault counts a fault in, and at its end out; it takes mu.
func (l *ledger) noteFault(f *Fault, what string, more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faulty += more
	l.addEvent(nil, f.Client, what, string(f.Kind))
	if at := time.Now().Add(f.recoveryTime()); at.After(l.recoveredAt) {
		l.recoveredAt = at
	}
	if !l.forgetsHolds(f) {
		return
	}
	l.excusedUntil = time.Now().Add(overlapExcuse)
	clear(l.kept)
	for _, holds := range l.live {
		for _, h := range holds {
			h.excused = true
		}
	}
}
