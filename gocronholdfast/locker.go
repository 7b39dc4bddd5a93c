package gocronholdfast

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast"
)

// A Locker is a gocron.Locker. The lock of a job is the Mutex with the job's name, so a program
// without gocron can keep a job from running by holding it. A Locker is safe for concurrent use.
type Locker struct {
	client  *holdfast.Client
	options []holdfast.Option

	mu     sync.Mutex
	leases map[string]*holdfast.Lease // of the jobs that run here, by name
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker makes a Locker for a scheduler. For minHold after the start of a job no other host gets
// its lock; it must be longer than the clocks of the hosts differ, and shorter than the time from
// one run to the next. 0: the lock is free when the job is done. The options are those of
// Client.Mutex, for all jobs. If an argument is bad, each Lock returns a *holdfast.ArgumentError.
func NewLocker(client *holdfast.Client, minHold time.Duration, options ...holdfast.Option) *Locker {
	if minHold != 0 {
		options = append([]holdfast.Option{holdfast.WithMinHold(minHold)}, options...)
	}
	return &Locker{client: client, options: options, leases: map[string]*holdfast.Lease{}}
}

// Lock is called by gocron before it runs the job with this name. It asks the server once. The
// error matches holdfast.ErrHeld if another host has the job, or had it within the min hold. All
// other errors are as for holdfast.Mutex.TryLock. After any error gocron leaves the run out.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	lease, err := l.client.Mutex(job, l.options...).TryLock(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases[job] = lease
	return &lock{l, job, lease}, nil
}

// Bind returns a context for a job that this Locker let run: the one with this name. It ends with
// ctx, when cancel is called, and when the lock is lost. Its cause is then a *holdfast.LostError.
// If the job does not hold its lock the context has ended, and its cause matches
// holdfast.ErrNotHeld.
func (l *Locker) Bind(ctx context.Context, job string) (bound context.Context, cancel context.CancelFunc) {
	l.mu.Lock()
	lease := l.leases[job]
	l.mu.Unlock()
	return lease.Bind(ctx) // of a nil lease it has ended
}

// A lock is the lock of a job that runs.
type lock struct {
	locker *Locker
	job    string
	lease  *holdfast.Lease
}

// Unlock is called by gocron when the job has returned.
func (k *lock) Unlock(ctx context.Context) error {
	k.locker.forgetLease(k.job, k.lease)
	return k.lease.Release()
}

// forgetLease leaves the lease of a later run where it is.
func (l *Locker) forgetLease(job string, lease *holdfast.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases[job] == lease {
		delete(l.leases, job)
	}
}

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
