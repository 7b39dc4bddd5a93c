package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Resize sets how many permits a name has while it is in use, whoever holds them. An error as Try's; after one that is
// unknown it may have taken effect.
func (l *Lock) Resize(ctx context.Context, permits int64) error {
	if err := l.engine.begin(); err != nil {
		return err
	}
	defer l.engine.busy.Done()
	if err := l.missing(); err != nil {
		return err
	}
	if err := l.engine.check(ctx); err != nil {
		return err
	}
	until := time.Now().Add(timeout(l.options.TTL))
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	return l.resource.Resize(ctx, permits, until)
}

// missing tells why the protocol has no such locks.
func (l *Lock) missing() error {
	if why := l.engine.features.NoPermits; why != "" && l.spec.Kind == protocol.Semaphore {
		return &protocol.Failure{Op: "ask", Name: l.spec.Name, Reason: protocol.Unsupported, Err: errors.New(why)}
	}
	return nil
}
