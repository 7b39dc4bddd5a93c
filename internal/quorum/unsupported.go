package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The reasons for which a quorum refuses semaphores, latches and what needs a queue.
const (
	noPermits = "no two sets of permits need meet at a node: three holders of one permit each may be on three" +
		" different majorities of five nodes, and no node sees more than two of them"
	noLatches = "a count that majorities agree on needs every node to know all of it," +
		" and a node that was away for one step does not"
)

var errNoQueue = fmt.Errorf("%w at a quorum", protocol.ErrNoQueue)

// BindLatch implements protocol.Protocol: there are no latches.
func (*Protocol) BindLatch(protocol.Spec) protocol.LatchResource { return nil }

// Resize implements protocol.Resource: there are no permits.
func (r *resource) Resize(context.Context, int64, time.Time) error {
	return &protocol.Failure{Op: "resize", Name: r.spec.Name, Reason: protocol.Unsupported, Err: errors.New(noPermits)}
}

// Evict implements protocol.Operators: there is no queue.
func (*Protocol) Evict(_ context.Context, name string, _ protocol.Kind, _ protocol.ID, _ string) (bool, error) {
	return false, &protocol.Failure{Op: "evict", Name: name, Reason: protocol.Unsupported, Err: errNoQueue}
}

// Tell implements protocol.Operators: no master knows who holds.
func (*Protocol) Tell(_ context.Context, name string, _ protocol.Kind, _ protocol.ID) (protocol.TellCount, error) {
	return protocol.TellCount{}, &protocol.Failure{Op: "tell", Name: name, Reason: protocol.Unsupported,
		Err: errNoQueue}
}

// ListenTicket implements protocol.Protocol: there are no kept places.
func (*Protocol) ListenTicket(context.Context, protocol.ID, protocol.Sink) (protocol.Listener, error) {
	return nil, &protocol.Failure{Op: "subscribe", Reason: protocol.Unsupported, Err: errNoQueue}
}
