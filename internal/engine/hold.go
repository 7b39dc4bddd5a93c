package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A hold is one hold at the server. Its local holders follow one another, each with a tenure. Its fields are guarded by the engine's mutex.
type hold struct {
	lock       *Lock
	ticket     protocol.Ticket
	grantToken int64 // token of the grant
	token      int64 // of the present tenure
	lastToken  int64 // the last that is reserved
	grantedAt  int64 // server time, microseconds
	askedAt    time.Time
	heldSince  time.Time // when this process learned of it

	trust    time.Time // from the last confirmation, less the margin
	ceiling  time.Time // the end of the max hold, less the margin; zero: none
	renewAt  time.Time // zero: never
	renewing chan struct{}
	failure  error // of the last renewal

	pool          *pool // nil: not passed on
	ownerExposed  bool  // its id was asked for: not passed on any more
	tenure        *localTenure
	firstTenure   localTenure
	joinableUntil time.Time // of readers: until when others join

	// Of a hold that no longer excludes: how it shares. Both forms may be at the server while it is not known.
	sharedLock  *Lock
	downgrading bool

	querying   bool   // a message says that it was taken over: the server is asked
	replacedBy string // the label of the caller that took it over

	over      bool  // lost, given back, or being given back
	left      bool  // lost, and nothing of it need be given back: the server said so, or its holder has asked for it
	lossCause error // the cause, once lost

	mayApplyUntil time.Time // until then a request of its ticket may still take effect

	dueAt time.Time // for the watchdog
	index int
}

// end is when trust ends, as far as is known now.
func (h *hold) end() time.Time { return earlier(h.ceiling, h.trust) }

// confirm takes a confirmation that was asked for at a local moment and lasts for a time from then on.
func (h *hold) confirm(sent time.Time, ttl time.Duration) {
	h.trust = sent.Add(ttl - margin(ttl))
	h.failure = nil
	h.renewAt = time.Time{}
	if !h.lock.options.Fixed && (h.ceiling.IsZero() || h.trust.Before(h.ceiling)) {
		h.renewAt = sent.Add(ttl / 3)
		if ttl < h.lock.options.TTL { // the claim of a hand-over, which is short
			h.renewAt = sent.Add(ttl / 10)
		}
	}
}

// newHold makes a hold of an answer or a grant, and gives it to the watchdog. From is the local moment that is certainly
// before the grant; ttl is counted from it. Nil and no error: its trust is over already, so ask again.
func (e *Engine) newHold(a *attempt, token, block, server int64, from time.Time, ttl time.Duration) (*hold, error) {
	o := &a.lock.options
	h := &hold{lock: a.lock, ticket: a.ticket, grantToken: token, token: token, lastToken: token + block - 1, grantedAt: server, askedAt: a.since, index: -1,
		heldSince: time.Now(), mayApplyUntil: a.mayApplyUntil}
	if o.MaxHold > 0 {
		h.ceiling = from.Add(o.MaxHold - margin(o.MaxHold)) // clocks drift apart for that long
	}
	h.confirm(from, ttl)
	if past(h.end(), h.heldSince) {
		a.inLine = true
		return nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.attempts, a.ticket.ID)
	a.won = true
	if e.closed {
		a.won, a.inLine = false, true // won too late: to be given back
		return nil, e.config.Closed
	}
	e.watchdog.add(h)
	return h, nil
}

func (h *hold) event(kind EventKind, took time.Duration) Event {
	return Event{Kind: kind, Name: h.lock.spec.Name, Token: h.token, Took: took}
}

// A localTenure is a hold in the hands of one local holder, and of those that enter under its leases. Guarded by the mutex.
type localTenure struct {
	hold      *hold
	token     int64
	since     time.Time
	lossCause error // the cause, once lost
	leases    []*Lease
	entries   int
	writers   int // of the entries, those that exclude others

	firstLease Lease // the only one, mostly: made with the tenure
	oneLease   [1]*Lease
}

// beginTenure starts a tenure.
func (h *hold) beginTenure(ctx context.Context) *Lease {
	if h.tenure == nil { // the only one, mostly: made with the hold
		h.tenure, h.firstTenure.since = &h.firstTenure, h.heldSince
	} else {
		h.tenure = &localTenure{since: time.Now()}
	}
	h.tenure.hold, h.tenure.token, h.tenure.lossCause = h, h.token, h.lossCause
	return h.tenure.addLease(ctx, h.lock.spec.Shared)
}

// addLease adds a lease to a tenure.
func (t *localTenure) addLease(ctx context.Context, shared bool) *Lease {
	if !shared {
		t.writers++
	}
	if t.entries++; len(t.leases) == 0 {
		t.firstLease = Lease{tenure: t, parent: ctx, shared: shared}
		t.oneLease[0] = &t.firstLease
		t.leases = t.oneLease[:]
		return &t.firstLease
	}
	l := &Lease{tenure: t, parent: ctx, shared: shared}
	t.leases = append(t.leases, l)
	return l
}

// lose marks a tenure lost and returns what is to be called without the mutex.
func (t *localTenure) lose(cause error) []func() {
	if t == nil || t.lossCause != nil {
		return nil
	}
	t.lossCause = cause
	var ends []func()
	for _, l := range t.leases {
		if l.cancel != nil && !l.released {
			ends = append(ends, func() { l.cancel(cause) })
		}
	}
	return ends
}

// lose ends a hold that is ours no more, or that we cannot be sure of. It is called with the mutex held and
// returns what must be called without it, at once: telling comes before all else.
func (e *Engine) lose(h *hold, why Why) (tell func()) {
	if h.over {
		return func() {}
	}
	h.over, h.left = true, why == Gone || why == Foreign
	e.watchdog.remove(h)
	lost := Lost{Name: h.lock.spec.Name, Token: h.token, Why: why, By: h.replacedBy, Err: h.failure}
	cause := e.config.Cause(lost)
	h.lossCause = cause
	ends := h.tenure.lose(cause)
	if h.pool != nil {
		ends = append(ends, e.promoteNext(h))
	}
	event := h.event(LostHold, time.Since(h.heldSince))
	event.Err = cause
	if why == Replaced {
		e.busy.Add(1)
	}
	return func() {
		for _, end := range ends {
			end()
		}
		if why == Replaced {
			go e.releaseRemainder(h, time.Now())
		}
		e.observe(event)
	}
}

// releaseRemainder gives back what remains of a hold that was taken over, one margin after the contexts of its leases were ended. The
// remainder keeps others out for holders that have not noticed yet.
func (e *Engine) releaseRemainder(h *hold, ended time.Time) {
	defer e.busy.Done()
	if e.pause(context.Background(), time.Until(ended.Add(margin(h.lock.options.TTL)))) {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.scheduleCleanup(h)
	}
}

// scheduleCleanup gives back, in the background, what the server may keep of a hold that was lost. It is called with the mutex held.
func (e *Engine) scheduleCleanup(h *hold) {
	if !h.left && !e.closed {
		for _, form := range h.serverForms() {
			e.cleanup(form, h.freeRequest(), time.Now().Add(max(h.lock.options.TTL, h.lock.options.MinHold)), h.mayApplyUntil)
		}
	}
	h.left = true
}

// lossReason tells how a hold whose trust is over was lost.
func (h *hold) lossReason() Why {
	if !h.ceiling.IsZero() && !h.ceiling.After(h.trust) {
		return MaxHold
	}
	return Expired
}

// free gives a hold back at the server, trying again until a moment or until trust ends. A hold that is not
// there any more is lost, unless an earlier try may have been what removed it.
func (e *Engine) free(h *hold, until time.Time) error {
	e.mu.Lock()
	until = earlier(until, h.trust)
	renewing, forms := h.renewing, h.serverForms()
	e.mu.Unlock()
	if renewing != nil { // the renewal under way must not outlive the release
		select {
		case <-renewing:
		case <-time.After(time.Until(until)):
		}
		e.mu.Lock()
		forms = h.serverForms()
		e.mu.Unlock()
	}
	request := h.freeRequest()
	limit := timeout(h.lock.options.TTL)
	unknown := false
	for {
		ctx := deadline{context.Background(), earlier(time.Now().Add(limit), until)}
		removed, err := false, error(nil)
		for _, form := range forms {
			if removed || err != nil {
				break
			}
			removed, err = form.resource.Free(ctx, request)
		}
		if err == nil {
			if removed || unknown {
				e.mu.Lock()
				e.cleanupLateAsk(h)
				e.mu.Unlock()
				return nil
			}
			return e.config.Cause(Lost{Name: h.lock.spec.Name, Token: h.token, Why: Gone})
		}
		var failure *protocol.Failure
		var replaced *protocol.Replaced
		if errors.As(err, &replaced) {
			return e.config.Cause(Lost{Name: h.lock.spec.Name, Token: h.token, Why: Replaced, By: replaced.By})
		}
		if !errors.As(err, &failure) { // the key is another's now
			return e.config.Cause(Lost{Name: h.lock.spec.Name, Token: h.token, Why: Foreign, Err: err})
		}
		unknown = unknown || failure.Unknown
		err = failure.Or(unknown)
		if !failure.Again() {
			return err
		}
		if pause := jitter(limit / 10); time.Now().Add(pause).Before(until) {
			time.Sleep(pause)
			continue
		}
		e.mu.Lock()
		for _, form := range forms {
			e.cleanup(form, request, time.Now().Add(h.lock.options.TTL), h.mayApplyUntil)
		}
		e.mu.Unlock()
		return &Uncertain{Err: err}
	}
}

// freeRequest gives a hold back that was used.
func (h *hold) freeRequest() protocol.Free {
	request := protocol.Free{Ticket: h.ticket}
	if o := h.lock.options; o.MinHold > 0 {
		request.Keep = h.grantedAt + o.MinHold.Microseconds()
	}
	return request
}

// cleanupLateAsk looks after a hold that was given back while an earlier request of its ticket may still arrive and win it
// again. It is called with the mutex held.
func (e *Engine) cleanupLateAsk(h *hold) {
	if time.Now().Before(h.mayApplyUntil) {
		for _, form := range h.serverForms() {
			e.cleanup(form, protocol.Free{Ticket: h.ticket}, h.mayApplyUntil.Add(h.lock.options.TTL), h.mayApplyUntil)
		}
	}
}

// deadline is a context that ends by its deadline alone, for those who read it.
type deadline struct {
	context.Context
	at time.Time
}

func (d deadline) Deadline() (time.Time, bool) { return d.at, true }
