package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/proof/history"
)

// useLease holds the lease in a way the dice choose, and gives it back, or does not: it reports
// whether it and its entries were given back. depth is how often it may enter again.
func (a *actor) useLease(h *hold, depth int) (given bool) {
	a.useResource(h)
	a.downgrade(h)
	given = true
	inner := a.workUnder(h, depth)
	if a.err != nil {
		return false
	}
	if inner != nil && a.dice.Percent(70) {
		given = a.useLease(inner, depth-1)
		inner = nil
	}
	a.useResource(h)
	if h.fixed && a.dice.Percent(5) {
		return false // its TTL ends it
	}
	a.release(h)
	if inner != nil {
		given = a.useLease(inner, depth-1) // an entry outlasts the lease that it entered
	}
	if a.dice.Percent(5) {
		a.release(h)
	}
	return given
}

// workUnder keeps the lease for a while, or enters it: then there is an inner one.
func (a *actor) workUnder(h *hold, depth int) (inner *hold) {
	switch roll := a.dice.IntN(100); {
	case roll < 60:
		a.keepLease(h, a.dice.Short(0, 15*time.Millisecond))
	case roll < 76:
		if depth > 0 {
			return a.enterHold(h)
		}
	case roll < 85:
		a.checkLease(h)
		a.keepLease(h, a.dice.Short(0, 15*time.Millisecond))
	case roll < 98:
		a.keepLease(h, a.dice.Between(5*time.Millisecond, 60*time.Millisecond))
	default:
		// Longer than its TTL: a renewed lease lives on, a fixed one ends, and is released late.
		// Some hold so long, and out of reach of the server, that it lets others in.
		if !h.fixed && a.dice.Percent(60) {
			if a.err = a.storage.askSilence(a.slot, a.dice.Between(h.ttl+h.ttl/4, 2*h.ttl)); a.err != nil {
				return nil
			}
		}
		a.keepLease(h, a.dice.Between(h.ttl+h.ttl/2, 3*h.ttl))
	}
	return nil
}

// enterHold takes again what is held: all, or of a group one.
func (a *actor) enterHold(h *hold) *hold {
	typ, names := h.typ, h.names
	switch {
	case typ == history.Semaphore:
		return nil // it is not entered: one would wait for oneself
	case typ == history.Group && a.dice.Percent(50):
		typ, names = history.Mutex, names[:1]
	}
	return a.acquire(leased.Context(h.Lease), a.drawWant(typ, names), h)
}

// downgrade makes a lease that writes one that reads, half the time, and goes on with it for a
// while.
func (a *actor) downgrade(h *hold) {
	if h.typ != history.ReadWrite || h.shares || a.dice.Percent(50) {
		return
	}
	record := a.newRecord(h, history.Downgrade)
	ctx, cancel := context.WithTimeout(context.Background(), longestTTL)
	defer cancel()
	a.recordCall(record, longestTTL, "")
	err := h.Downgrade(ctx)
	a.recordReturn(record, err)
	h.shares = err == nil || errors.Is(err, holdfast.ErrUncertain)
	a.useResource(h)
	a.keepLease(h, a.dice.Short(0, 30*time.Millisecond))
	a.useResource(h)
}

// checkLease asks the server about the lease, half the time.
func (a *actor) checkLease(h *hold) {
	if a.dice.Percent(50) {
		return
	}
	record := a.newRecord(h, history.Confirm)
	a.recordCall(record, longestTTL, "")
	a.recordReturn(record, h.Check(context.Background()))
	a.recordTrust(h)
}

// newRecord returns the record of an operation on a lease.
func (a *actor) newRecord(h *hold, kind history.Kind) history.Record {
	return history.Record{
		Op: a.rec.NextOp(), Kind: kind, Type: h.typ, Name: h.name, Names: h.groupNames(), Hold: h.id, Token: h.Token(),
	}
}

// groupNames returns the names of a group.
func (h *hold) groupNames() []string {
	if h.typ == history.Group {
		return h.names
	}
	return nil
}

// keepLease holds the lease for so long, or until it is lost, and writes down again and again
// whether it is to be trusted.
func (a *actor) keepLease(h *hold, long time.Duration) {
	end := time.Now().Add(long)
	for a.recordTrust(h) {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		pause(min(left, 5*time.Millisecond), h.Done())
	}
}

// recordTrust writes down what the library says of the lease.
func (a *actor) recordTrust(h *hold) bool {
	record := history.Record{Hold: h.id, Type: h.typ, Name: h.name, Token: h.Token()}
	// In this order: the trust end only moves on, so if Err was nil after the later of two trust
	// ends, it was wrong.
	asked := time.Now()
	err := h.Err()
	record.At, record.Until = history.Now(), trustEnd(h.Lease)
	switch {
	case err == nil: // also of one that was lost before, which the check will find
		record.Event = history.Trust
		if h.Until().Before(asked) {
			record.Result = history.Overdue
		}
		a.rec.Put(record)
		return true
	case h.lost:
		return false
	}
	h.lost = true
	record.Event, record.Text = history.Lost, err.Error()
	a.rec.Put(record)
	// The context ends with the same cause. Another goroutine may be about to end it.
	pause(drain, h.Done())
	if cause := context.Cause(leased.Context(h.Lease)); !errors.Is(err, holdfast.ErrLost) ||
		!errors.Is(cause, holdfast.ErrLost) {
		record.At, record.Result, record.Text = history.Now(), history.Failed, fmt.Sprintf("Err %v, Cause %v", err,
			cause)
		a.rec.Put(record)
	}
	return false
}

// release gives the lease back, for the first time or again.
func (a *actor) release(h *hold) {
	if !h.released {
		a.recordTrust(h)
	}
	h.released = true
	record := a.newRecord(h, history.Release)
	a.recordCall(record, longestTTL, "")
	a.recordReturn(record, h.Release())
}

// useResource uses the resource of each name that the lease is for: as a holder would that reads,
// thinks and writes, or that only reads, and relies on what was read.
func (a *actor) useResource(h *hold) {
	if h.typ == history.Semaphore {
		return // several hold it: a token keeps nobody out
	}
	for name, token := range h.Tokens() {
		if a.err != nil {
			return
		}
		if h.shares {
			a.readAgain(h, name, token)
		} else {
			a.addOne(h, name, token)
		}
	}
}

// addOne adds one to the resource.
func (a *actor) addOne(h *hold, name string, token int64) {
	record := a.newRecord(h, history.Write)
	record.Name, record.Names, record.Token = name, nil, token
	a.recordCall(record, 0, "")
	value, ok, err := a.storage.read(name, token, false)
	outcome := history.Refused
	if ok && err == nil {
		outcome, err = a.storage.write(name, token, value+1)
	}
	if err != nil {
		a.err = err
		return // a call without a return: the parent is gone, and with it the run
	}
	record.Event, record.Result = history.Return, outcome
	a.rec.Put(record)
}

// readAgain reads the resource, and compares with what was read under this lease before.
func (a *actor) readAgain(h *hold, name string, token int64) {
	record := a.newRecord(h, history.Read)
	record.Name, record.Names, record.Token = name, nil, token
	a.recordCall(record, 0, "")
	value, ok, err := a.storage.read(name, token, true)
	if err != nil {
		a.err = err
		return
	}
	record.Event, record.Result = history.Return, history.OK
	switch before, again := h.seen[name]; {
	case !ok:
		record.Result = history.Refused
	case again && before != value:
		record.Result = history.Changed
	case h.seen == nil:
		h.seen = map[string]int64{name: value}
	}
	a.rec.Put(record)
}
