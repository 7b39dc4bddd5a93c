package workload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// use holds the lease in a way the dice choose, and gives it back, or does not. depth is how often it may enter again.
func (a *actor) use(h *hold, depth int) {
	a.update(h)
	var inner *hold
	switch roll := a.dice.IntN(100); {
	case roll < 70:
		a.keep(h, a.dice.short(0, 15*time.Millisecond))
	case roll < 85:
		if depth > 0 {
			inner = a.acquire(h.Context(), h.name, h)
		}
	case roll < 98:
		a.keep(h, a.dice.between(5*time.Millisecond, 60*time.Millisecond))
	default:
		// Longer than its TTL: a renewed lease lives on, a fixed one ends, and is released late.
		// Some hold so long, and out of reach of the server, that it lets others in.
		if !h.fixed && a.dice.percent(60) {
			if a.err = a.storage.silence(a.slot, a.dice.between(h.ttl+h.ttl/4, 2*h.ttl)); a.err != nil {
				return
			}
		}
		a.keep(h, a.dice.between(h.ttl+h.ttl/2, 3*h.ttl))
	}
	if inner != nil && a.dice.percent(70) {
		a.use(inner, depth-1)
		inner = nil
	}
	a.update(h)
	if h.fixed && a.dice.percent(5) {
		return // never given back: its TTL ends it
	}
	a.release(h)
	if inner != nil {
		a.use(inner, depth-1) // an entry outlasts the lease that it entered
	}
	if a.dice.percent(5) {
		a.release(h)
	}
}

// keep holds the lease for so long, or until it is lost, and writes down again and again whether it is to be trusted.
func (a *actor) keep(h *hold, long time.Duration) {
	end := time.Now().Add(long)
	for a.look(h) {
		left := time.Until(end)
		if left <= 0 {
			return
		}
		pause(min(left, 5*time.Millisecond), h.Done())
	}
}

// look writes down what the library says of the lease.
func (a *actor) look(h *hold) bool {
	record := history.Record{Hold: h.id, Name: h.name, Token: h.Token()}
	// In this order: the trust end only moves on, so if Err was nil after the later of two trust ends, it was wrong.
	asked := time.Now()
	err := h.Err()
	record.At, record.Until = history.Now(), until(h.Lease)
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
	pause(time.Second, h.Done())
	if cause := context.Cause(h.Context()); !errors.Is(err, holdfast.ErrLost) || !errors.Is(cause, holdfast.ErrLost) {
		record.At, record.Result, record.Text = history.Now(), history.Failed, fmt.Sprintf("Err %v, Cause %v", err, cause)
		a.rec.Put(record)
	}
	return false
}

// release gives the lease back, for the first time or again.
func (a *actor) release(h *hold) {
	if !h.released {
		a.look(h)
	}
	h.released = true
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if a.dice.percent(50) {
		cancel() // which Release must not mind
	}
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Release, Name: h.name, Hold: h.id, Token: h.Token()}
	a.call(record, longestTTL, "")
	a.back(record, h.Release(ctx))
}

// update adds one to the resource, as a holder would who reads, thinks and writes.
func (a *actor) update(h *hold) {
	record := history.Record{Op: a.rec.NextOp(), Kind: history.Write, Name: h.name, Hold: h.id, Token: h.Token()}
	a.call(record, 0, "")
	value, ok, err := a.storage.read(h.name, h.Token())
	outcome := history.Refused
	if ok && err == nil {
		outcome, err = a.storage.write(h.name, h.Token(), value+1)
	}
	if err != nil {
		a.err = err
		return // a call without a return: the parent is gone, and with it the run
	}
	record.Event, record.Result = history.Return, outcome
	a.rec.Put(record)
}
