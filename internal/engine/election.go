package engine

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// Standing looks at the name once. The error is a *WaitFailure, the Closed error, a
// *protocol.Foreign or a *protocol.Failure.
func (l *Lock) Standing(ctx context.Context) (s protocol.Standing, err error) {
	err = l.engine.do(ctx, nil, func() error {
		s, err = l.engine.query(ctx, l.subject(), nil)
		return err
	})
	return s, err
}

// Await waits until the standing of the name is a wanted one. Looks is the pace of a caller that
// awaits one standing after the other; zero at first. The error is a *WaitFailure, the Closed
// error, a *protocol.Foreign or a *protocol.Failure that waiting does not cure.
func (l *Lock) Await(ctx context.Context, looks *protocol.Pace,
	wanted func(protocol.Standing) bool) (standing protocol.Standing, err error) {
	if err := l.engine.admitCall(nil); err != nil {
		return standing, err
	}
	defer l.engine.busy.Done()
	err = l.engine.watchFor(ctx, l.subject(), looks, func(s protocol.Standing) bool {
		standing = s
		return wanted(s)
	})
	return standing, err
}

func (l *Lock) subject() subject { return subject{l.resource(), l.spec.Kind, l.name, l.options.TTL} }

// Trouble is nil while every hold of this name in this process is trusted and its last renewal, if
// there was any, was confirmed. Otherwise it is the failure of that renewal, or the cause of a
// loss: of a hold whose trust is over, or of one on whose lease code runs (see Term).
func (l *Lock) Trouble() (trouble error) {
	e := l.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.allHolds() {
		if !l.sameName(h) {
			continue
		}
		if isPast(h.end(), time.Now()) {
			e.lose(h, h.lossReason())
			trouble = h.lossCause
		} else if h.failure != nil && trouble == nil {
			trouble = h.failure
		}
	}
	for lease := range e.terms {
		if lost := lease.tenure.lossCause; lost != nil && l.sameName(lease.tenure.hold) {
			trouble = lost
		}
	}
	return trouble
}

func (l *Lock) sameName(h *hold) bool {
	return h.lock.name == l.name && h.lock.spec.Kind == l.spec.Kind
}

// Term says that code runs on the lease until end is called. A loss is trouble meanwhile.
func (l *Lease) Term() (end func()) {
	e := l.engine()
	e.mu.Lock()
	defer e.mu.Unlock()
	over := make(chan struct{})
	e.terms[l] = over
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.terms, l)
		close(over)
	}
}

// Pause waits for d, +-20 %. It ends sooner when ctx or the engine does.
func (l *Lock) Pause(ctx context.Context, d time.Duration) {
	if d > 0 {
		l.engine.pause(ctx, jitter(d))
	}
}
