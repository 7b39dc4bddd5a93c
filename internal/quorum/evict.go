package quorum

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

var errNoQueue = errors.New("a quorum has no queue to take a waiter out of")

// Evict implements protocol.Operators: there is no queue.
func (p *Protocol) Evict(_ context.Context, name string, _ protocol.Kind, _ protocol.ID, _ string) (bool, error) {
	return false, &protocol.Failure{Op: "evict", Name: name, Reason: protocol.Unsupported, Err: errNoQueue}
}
