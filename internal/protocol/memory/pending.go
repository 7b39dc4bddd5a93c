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

func (p pending) Look(context.Context, *protocol.Ticket) (protocol.Standing, error) {
	return protocol.Standing{}, p.err()
}
func (p pending) Unwatch(context.Context, protocol.Ticket) error { return p.err() }
func (p pending) Set(context.Context, protocol.ID, int64, time.Duration, time.Time) (protocol.Standing, bool, error) {
	return protocol.Standing{}, false, p.err()
}
func (p pending) CountDown(context.Context, protocol.ID, time.Time) (protocol.Standing, error) {
	return protocol.Standing{}, p.err()
}

// BindLatch is pending.
func (p *Client) BindLatch(protocol.Spec) protocol.LatchResource { return pending{} }

// AskAll is pending.
func (p *Client) AskAll(context.Context, []protocol.Asking) ([]protocol.Answer, error) {
	return nil, protocol.Apart
}
