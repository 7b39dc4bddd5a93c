package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A GroupLease is one entry into each of several holds. Its parts share one context, so that the
// loss of any part ends it at once. All methods are safe for concurrent use.
type GroupLease struct{ parts []*Lease }

func (g *GroupLease) engine() *Engine { return g.parts[0].engine() }

// Name is the first of the names.
func (g *GroupLease) Name() string { return g.parts[0].Name() }

// Token is that of the first name.
func (g *GroupLease) Token() int64 { return g.parts[0].Token() }

// Owner is that of the first name.
func (g *GroupLease) Owner() string { return g.parts[0].Owner() }

// Tokens is the token by name.
func (g *GroupLease) Tokens() map[string]int64 {
	tokens := make(map[string]int64, len(g.parts))
	for _, part := range g.parts {
		tokens[part.Name()] = part.Token()
	}
	return tokens
}

// Until is the first moment at which trust in a part ends.
func (g *GroupLease) Until() time.Time {
	var until time.Time
	for _, part := range g.parts {
		until = earlier(until, part.Until())
	}
	return until
}

// Context ends with any of the parts.
func (g *GroupLease) Context() context.Context {
	e := g.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	first := g.parts[0]
	if first.ctx != nil {
		return first.ctx
	}
	first.ctx, first.cancel = context.WithCancelCause(g.Carry(context.WithoutCancel(first.parent)))
	var ended error
	for _, part := range g.parts {
		part.ctx, part.cancel = first.ctx, first.cancel
		switch {
		case part.tenure.lossCause != nil:
			ended = part.tenure.lossCause
		case part.released && ended == nil:
			ended = context.Canceled
		}
	}
	if ended != nil {
		first.cancel(ended)
	}
	return first.ctx
}

// Carry is a context with all parts in it that ends when ctx does.
func (g *GroupLease) Carry(ctx context.Context) context.Context {
	return context.WithValue(ctx, leaseKey{}, g)
}

// Err is nil while every part can be trusted. Then it is the cause of the first loss, or ErrNotHeld
// once all parts were released.
func (g *GroupLease) Err() error {
	var released error
	for _, part := range g.parts {
		err := part.Err()
		if err != nil && !errors.Is(err, ErrNotHeld) {
			return err
		}
		released = errors.Join(released, err)
	}
	if released != nil {
		return ErrNotHeld
	}
	return nil
}

// Check asks the server about all parts. It answers as Lease.Check for the first part that fails.
func (g *GroupLease) Check(ctx context.Context) error {
	if err := g.Err(); err != nil {
		return err
	}
	e := g.engine()
	renewals := make([]protocol.Renewal, len(g.parts))
	for i, part := range g.parts {
		renewals[i] = part.tenure.hold.queryRequest()
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, g.parts[0].tenure.hold.lock.timeout)
	defer cancel()
	var mu sync.Mutex
	var failed error
	e.protocol.Renew(bounded, renewals, func(i int, r protocol.RenewalAnswer) {
		e.applyQuery(g.parts[i].tenure.hold, r)
		mu.Lock()
		defer mu.Unlock()
		if failed == nil {
			failed = r.Err
		}
	})
	if err := g.Err(); err != nil {
		return err
	}
	return e.orEnded(ctx, began, failed)
}

// Downgrade refuses: a group has no readers.
func (g *GroupLease) Downgrade(context.Context) error { return ErrNotWriter }

// Release gives all parts back, all at once. Nil: they are given back. ErrNotHeld: they had been
// before. Otherwise the errors of the parts that failed, each a *PartError, joined; the other parts
// are given back.
func (g *GroupLease) Release() error {
	errs := make([]error, len(g.parts))
	var all sync.WaitGroup
	for i, part := range g.parts {
		all.Go(func() { errs[i] = part.Release() })
	}
	all.Wait()
	return g.joinErrors(errs)
}

// joinErrors makes one error of those of the parts. Parts that had been released before count only
// if no other part failed.
func (g *GroupLease) joinErrors(errs []error) error {
	var failed []error
	again := 0
	for i, err := range errs {
		switch {
		case errors.Is(err, ErrNotHeld):
			again++
		case err != nil:
			failed = append(failed, &PartError{g.parts[i].Name(), err})
		}
	}
	if failed == nil && again > 0 {
		return ErrNotHeld
	}
	return errors.Join(failed...)
}
