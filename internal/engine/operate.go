package engine

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Inspect tells what the servers know of a name. The error is a *WaitFailure, the Closed error or
// a *protocol.Failure.
func (e *Engine) Inspect(ctx context.Context, name string, page protocol.Page) (in protocol.Inspection, err error) {
	err = e.do(ctx, nil, func() error {
		in, err = e.protocol.Inspect(ctx, name, page)
		return err
	})
	return in, err
}

// Call makes requests that are about none of the engine's locks. The error is as Inspect's.
func (e *Engine) Call(ctx context.Context, send func() error) error { return e.do(ctx, nil, send) }

// Names streams the names that match a glob pattern of the servers. The error is as Inspect's. A
// name may take the caller its time, and the caller may close the engine meanwhile.
func (e *Engine) Names(ctx context.Context, pattern string) iter.Seq2[protocol.FoundName, error] {
	return func(yield func(protocol.FoundName, error) bool) {
		if err := e.admitCall(nil); err != nil {
			yield(protocol.FoundName{}, err)
			return
		}
		counted := true
		defer func() {
			if counted {
				e.busy.Done()
			}
		}()
		if err := e.check(ctx); err != nil {
			yield(protocol.FoundName{}, err)
			return
		}
		began, whole := time.Now(), ctx
		ctx, stop := e.untilClosed(ctx)
		defer stop()
		e.protocol.Names(ctx, pattern)(func(found protocol.FoundName, err error) bool {
			if err = e.orEnded(whole, began, err); err != nil && e.isClosing() {
				err = e.config.Closed
			}
			e.busy.Done()
			counted = false
			if !yield(found, err) || err != nil {
				return false
			}
			if err := e.admitCall(nil); err != nil {
				yield(protocol.FoundName{}, err)
				return false
			}
			counted = true
			return true
		})
	}
}

// untilClosed is a context that the end of the engine ends too. It must be stopped.
func (e *Engine) untilClosed(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-e.closing:
			cancel()
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel()
		watching.Wait()
	}
}

func (e *Engine) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// Break ends the hold of another caller, or of one of this client, which needs no message to learn
// of it. False: the name has no such hold. The error is as Inspect's, or a *protocol.Foreign.
func (e *Engine) Break(ctx context.Context, name string, b protocol.Break) (done bool, err error) {
	err = e.do(ctx, nil, func() error {
		done, err = e.protocol.Break(ctx, name, b)
		if done || err != nil {
			e.loseBroken(name, b, done)
		}
		return err
	})
	return done, err
}

// loseBroken ends the hold of this process that a Break has ended. If it is not known whether the
// Break has ended it, the server is asked.
func (e *Engine) loseBroken(name string, b protocol.Break, done bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.allHolds() {
		switch {
		case h.lock.name != name || b.Token < h.grantToken || b.Token > h.lastToken:
		case !done:
			e.queryInBackground(h)
		case b.Force:
			e.lose(h, Gone)
		default:
			h.change().brokenBy = b.By
			e.lose(h, Broken)
		}
	}
}

// Tell tells the holders of a name that another caller wants it, or has the waiter with this id
// show life. The error is as Break's.
func (e *Engine) Tell(ctx context.Context, name string, kind protocol.Kind, id protocol.ID) (told protocol.TellCount,
	err error) {
	err = e.do(ctx, nil, func() error {
		told, err = e.protocol.Tell(ctx, name, kind, id)
		return err
	})
	return told, err
}

// Tell tells the holders of the name of a lock that another caller wants it.
func (l *Lock) Tell(ctx context.Context) (protocol.TellCount, error) {
	return l.engine.Tell(ctx, l.name, l.spec.Kind, "")
}

// Evict takes a ticket out of the queue. False: it has no place there. The error is as Break's.
func (e *Engine) Evict(ctx context.Context, name string, kind protocol.Kind, id protocol.ID, by string) (done bool,
	err error) {
	err = e.do(ctx, nil, func() error {
		done, err = e.protocol.Evict(ctx, name, kind, id, by)
		e.Nudge(id, 0) // it may be a ticket of this client, which needs no message
		return err
	})
	return done, err
}

const (
	probeTimeout = time.Second            // of a Probe whose context has no earlier deadline
	probeGrace   = 100 * time.Millisecond // for the errors of requests that ended at the deadline
)

// Probe asks the servers whether they can serve. It returns when they have answered, when ctx is
// cancelled, or at the deadline. The error is a *WaitFailure, the Closed error, or
// a *protocol.Failure.
func (e *Engine) Probe(ctx context.Context) error {
	return e.do(ctx, nil, func() error { return e.probe(ctx) })
}

func (e *Engine) probe(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	done := make(chan error, 1)
	e.busy.Go(func() {
		done <- e.protocol.Probe(bounded)
	})
	select {
	case err := <-done:
		return err
	case <-e.closing:
		return e.config.Closed
	case <-bounded.Done():
	}
	grace := probeGrace
	if errors.Is(ctx.Err(), context.Canceled) {
		grace = 0
	}
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case err := <-done: // the deadline bounds the requests too, and their errors say more
		return err
	case <-late.C: // cancelled, or a store that does not keep to its deadline
		return &protocol.Failure{Op: "ready", Reason: protocol.NoAnswer, Err: protocol.EndOf(bounded)}
	}
}
