package native

import (
	"context"
	"sync"
	"time"
)

// A topology remembers what is behind a store, once it could be asked. One question is under way at a time, for all who
// want to know; none of them can cancel it for the others.
type topology struct {
	mu     sync.Mutex
	known  bool
	shape  Topology
	err    error         // of the last question
	asking chan struct{} // closed when the one under way is answered
}

// of is what is behind the store; the error of the question, or of ctx.
func (t *topology) of(ctx context.Context, server Server, deadline time.Time) (Topology, error) {
	t.mu.Lock()
	if t.known {
		defer t.mu.Unlock()
		return t.shape, nil
	}
	if t.asking == nil {
		t.asking = make(chan struct{})
		go t.ask(server, deadline)
	}
	asking := t.asking
	t.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-asking:
	case <-ctx.Done():
		return Topology{}, context.Cause(ctx)
	case <-timer.C:
		return Topology{}, context.DeadlineExceeded
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shape, t.err
}

func (t *topology) ask(server Server, deadline time.Time) {
	shape, err := server.Describe(&until{deadline: deadline})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shape, t.err, t.known = shape, err, err == nil
	close(t.asking)
	t.asking = nil
}

// single tells whether one server has all keys; false while that is not known: slot by slot is right everywhere.
func (t *topology) single(ctx context.Context, server Server, deadline time.Time) bool {
	shape, err := t.of(ctx, server, deadline)
	return err == nil && !shape.Cluster
}
