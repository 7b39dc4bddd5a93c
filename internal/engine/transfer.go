package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ErrNotWaiting says that no waiter takes a hold over: none is the right one, or it does not ask.
var ErrNotWaiting = errors.New("not waiting")

// errNobodyQueues says why a protocol without a queue hands nothing over.
var errNobodyQueues = errors.New("the servers have no common queue, so nobody stands in one to hand over to")

// Transfer gives the hold of this name, which this process has, to a waiter: the first of the queue
// that matches. All others keep their places. A waiter that does not show life within a second gets
// nothing, and nothing is changed. If code runs on the leases (Term), Transfer ends their contexts
// and waits until it has returned, and its caller has released the lease; unless ctx carries that
// lease, so that this code calls Transfer itself. Else Transfer releases them.
//
// The error is ErrNotHeld, ErrNotWaiting, or one of Release or Inspect. If ctx ends while code runs
// on a lease, the hold goes to the waiter once the lease is released.
func (l *Lock) Transfer(ctx context.Context, matches func(protocol.Place) bool) error {
	var refused error
	if !l.engine.features.Queue {
		refused = &protocol.Failure{Op: "transfer", Name: l.name, Reason: protocol.Unsupported,
			Err: errNobodyQueues}
	}
	return l.engine.do(ctx, refused, func() error {
		if l.engine.holdNamed(l) == nil { // then nothing is sent
			return ErrNotHeld
		}
		place, err := l.findPlace(ctx, matches)
		if err == nil {
			err = l.awaitLife(ctx, place)
		}
		if err != nil {
			return err
		}
		return l.engine.resign(ctx, l, place.ID)
	})
}

// holdNamed is a hold of this process that has the name of a lock, and leases; nil: there is none.
func (e *Engine) holdNamed(l *Lock) *hold {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.holds.entries {
		if l.sameName(h) && h.isLive() && h.tenure != nil && !isPast(h.end(), time.Now()) {
			return h
		}
	}
	return nil
}

// findPlace is the first place in the queue that matches.
func (l *Lock) findPlace(ctx context.Context, matches func(protocol.Place) bool) (protocol.Place, error) {
	page := protocol.Page{Queue: 100}
	for {
		in, err := l.engine.protocol.Inspect(ctx, l.name, page)
		if err != nil {
			return protocol.Place{}, err
		}
		for _, p := range in.Queue {
			if page.After = p.Order; matches(p) {
				return p, nil
			}
		}
		if len(in.Queue) < page.Queue {
			return protocol.Place{}, ErrNotWaiting
		}
	}
}

// awaitLife has a waiter ask, and returns once it has.
func (l *Lock) awaitLife(ctx context.Context, place protocol.Place) error {
	began := time.Now()
	for pause := time.Millisecond; time.Since(began) < listenTimeout; pause *= 2 {
		// Again each time: an ask within a millisecond of the one before shows nothing.
		if _, err := l.engine.protocol.Tell(ctx, l.name, l.spec.Kind, place.ID); err != nil {
			return err
		}
		if !l.engine.pause(ctx, pause) {
			break
		}
		in, err := l.engine.protocol.Inspect(ctx, l.name, protocol.Page{Queue: 1, After: place.Order - 1})
		switch {
		case err != nil:
			return err
		case len(in.Queue) == 0 || in.Queue[0].ID != place.ID:
			return ErrNotWaiting
		case in.Queue[0].Until > place.Until:
			return nil
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return ErrNotWaiting
}

// resign releases the leases of a hold, so that a waiter gets it.
func (e *Engine) resign(ctx context.Context, l *Lock, successor protocol.ID) (err error) {
	h := e.holdNamed(l)
	if h == nil {
		return ErrNotHeld
	}
	e.mu.Lock()
	h.change().successor = successor
	leases := slices.Clone(h.tenure.entries)
	e.mu.Unlock()
	for _, lease := range leases {
		over := e.termOf(lease)
		inside := findLease(ctx, func(outer *Lease) bool { return outer == lease }) != nil
		if over == nil {
			if released := lease.Release(); !errors.Is(released, ErrNotHeld) {
				err = errors.Join(err, released)
			}
			continue
		}
		lease.Context() // so that it can be ended
		lease.cancel(context.Canceled)
		if inside {
			continue
		}
		select {
		case <-over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// termOf is closed once the code that runs on a lease has returned; nil: none runs.
func (e *Engine) termOf(lease *Lease) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.terms[lease]
}
