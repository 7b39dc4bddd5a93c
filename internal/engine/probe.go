package engine

import (
	"context"
	"errors"
	"time"
)

// probeTimeout bounds a Probe whose context has no earlier deadline.
const probeTimeout = time.Second

// Probe asks the servers whether they can serve. It returns when they have answered, when ctx is
// cancelled, or at the deadline. The error is a *WaitEnded, the Closed error, or
// a *protocol.Failure.
func (e *Engine) Probe(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return err
	}
	defer e.busy.Done()
	if err := e.check(ctx); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	done := make(chan error, 1)
	e.busy.Add(1)
	go func() {
		defer e.busy.Done()
		done <- e.protocol.Probe(bounded)
	}()
	select {
	case err := <-done:
		return err
	case <-e.closing:
		return e.config.Closed
	case <-bounded.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return e.check(ctx)
	}
	return <-done // the deadline bounds the requests too, and their errors say more
}
