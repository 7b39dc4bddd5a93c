package quorum

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

var errNoQueue = fmt.Errorf("%w at a quorum", protocol.ErrNoQueue)

// Evict implements protocol.Operators: there is no queue.
func (p *Protocol) Evict(_ context.Context, name string, _ protocol.Kind, _ protocol.ID, _ string) (bool, error) {
	return false, &protocol.Failure{Op: "evict", Name: name, Reason: protocol.Unsupported, Err: errNoQueue}
}
