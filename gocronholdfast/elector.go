package gocronholdfast

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
)

// ErrNotLeader is returned by Elector.IsLeader while this host does not lead.
var ErrNotLeader = errors.New("gocronholdfast: not the leader")

// An Elector is a gocron.Elector. Its host leads while Run runs and has won the election. An
// Elector is safe for concurrent use.
type Elector struct {
	election *holdfast.Election
	lease    atomic.Pointer[holdfast.Lease] // of the leadership; nil: there is none
}

var _ gocron.Elector = (*Elector)(nil)

// NewElector makes an Elector of the election with this name. The options are those of
// Client.Election. If an argument is bad, Run returns a *holdfast.ArgumentError.
func NewElector(client *holdfast.Client, name string, options ...holdfast.Option) *Elector {
	return &Elector{election: client.Election(name, options...)}
}

// Run campaigns, and again after each loss, until ctx is over. Then it gives the leadership up, and
// another host is let in. So shut the scheduler down before you end ctx: its jobs may still run.
// Run always returns an error, as for holdfast.Election.Run. A process runs it once at a time.
func (e *Elector) Run(ctx context.Context) error {
	return e.election.Run(ctx, func(ctx context.Context) error {
		lease, _ := holdfast.LeaseFrom(ctx)
		e.lease.Store(lease)
		defer e.lease.Store(nil)
		<-ctx.Done()
		return ctx.Err()
	})
}

// IsLeader is called by gocron before each run of a job. It asks no server. The error is
// ErrNotLeader, or matches holdfast.ErrLost if the leadership was lost a moment ago.
func (e *Elector) IsLeader(context.Context) error {
	lease := e.lease.Load()
	if lease == nil {
		return ErrNotLeader
	}
	return lease.Err()
}

// Bind returns a context for a job of the leader. It ends with ctx, when cancel is called, and when
// the leadership is lost. Its cause is then a *holdfast.LostError. If this host does not lead, the
// context has ended, and its cause matches holdfast.ErrNotHeld.
func (e *Elector) Bind(ctx context.Context) (bound context.Context, cancel context.CancelFunc) {
	return e.lease.Load().Bind(ctx) // of a nil lease it has ended
}
