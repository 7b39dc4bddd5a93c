package memory

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// pending is what the scripts do not do yet; replaced before this lands.
type pending struct{}

func (pending) err() error {
	return &protocol.Failure{Op: "pending", Reason: protocol.Unsupported, Err: context.Canceled}
}

func (p pending) Downgrade(context.Context, protocol.Ask) (protocol.Answer, error) {
	return protocol.Answer{}, p.err()
}
func (p pending) Resize(context.Context, int64, time.Time) error { return p.err() }
