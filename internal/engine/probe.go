package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

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
