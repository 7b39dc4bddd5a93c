package engine

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Resize sets how many permits a name has while it is in use, also while they are held. The error
// is as Try's. If the error's outcome is unknown, the request may have taken effect.
func (l *Lock) Resize(ctx context.Context, permits int64) error {
	return l.engine.do(ctx, l.unsupported(), func() error {
		until := time.Now().Add(l.timeout)
		bounded, cancel := context.WithDeadline(ctx, until)
		defer cancel()
		err := l.resource().Resize(bounded, permits, until)
		l.engine.askAgain(l.name)
		return err
	})
}

// askAgain has the goroutines of this process that wait for a name ask at once.
func (e *Engine) askAgain(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, w := range e.waits {
		if w.call.name == name {
			w.mailbox.askNow()
		}
	}
}

// withPermitsFrom returns the lock with the number of permits that the server named in err, or nil
// if err names no other number.
func (l *Lock) withPermitsFrom(err error) *Lock {
	var mismatch *protocol.Mismatch
	if !errors.As(err, &mismatch) || mismatch.Have == l.spec.Permits {
		return nil
	}
	return l.with(func(s *settings) { s.spec.Permits = mismatch.Have })
}
