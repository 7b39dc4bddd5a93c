package holdfast

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// An Election is a name whose holder leads. The lease is the leadership: it lasts while it is
// renewed, and releasing it is resigning. Candidates are served in the order in which they began to
// campaign, also the goroutines of one process.
type Election struct {
	name   string
	lock   *engine.Lock
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// A Leader describes the leader of an election.
type Leader struct {
	Owner string    // the lease's own id, as Lease.Owner returns it
	Label string    // of WithLabel, or Config.Label
	Token int64     // the fencing token of its lease
	Since time.Time // when it began to lead, by the clock of the tokens: ahead of a clock that was set back
}

// Election makes a handle, as Client says. WithOwner is refused, because two candidates of one
// owner would both lead.
func (c *Client) Election(name string, options ...Option) *Election {
	if c == nil || c.engine == nil {
		return &Election{name: name, err: zeroHandleError("Election", "a client that New made")}
	}
	s, err := c.newSettings("Election", name, options)
	if err != nil {
		return &Election{name: name, err: err}
	}
	s.Strict = true
	spec := protocol.Spec{Name: name, Kind: protocol.Election, Label: s.label}
	return &Election{name: name, lock: c.engine.NewLock(spec, s.Options)}
}

// Campaign waits until the caller leads. Only ctx and WithWait bound the waiting. All else is as
// for Mutex.Lock.
func (e *Election) Campaign(ctx context.Context) (*Lease, error) {
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	return e.wrapLease(e.lock.Acquire(ctx))
}

// TryCampaign asks once. The error is a *HeldError if another candidate leads or campaigns. All
// else is as for Mutex.TryLock.
func (e *Election) TryCampaign(ctx context.Context) (*Lease, error) {
	if err := e.check(ctx); err != nil {
		return nil, err
	}
	return e.wrapLease(e.lock.Try(ctx))
}

// Run campaigns, and calls fn each time it leads, until ctx ends. The context of fn ends with ctx,
// and when the lease is lost; its cause is then a *LostError. Run waits for fn to return before it
// gives the lease up, also after a panic. Check reports an fn that goes on after its lease was
// lost.
//
// A nil from fn is a resignation: the next candidate leads, and Run campaigns again after about a
// second. If the lease was lost, and fn returns nil or an error that matches context.Canceled or
// ErrLost, Run campaigns again at once. Any other error of fn ends Run.
//
// Run always returns an error, and then no longer leads. It is the error of fn, joined with the
// *LostError if the lease was lost, or that of a campaign, as for Mutex.Lock.
func (e *Election) Run(ctx context.Context, fn func(context.Context) error) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	if fn == nil {
		return badArgument("Election.Run", "fn", nil, "not nil")
	}
	for {
		inner, err := e.lock.Acquire(ctx)
		if err != nil {
			return publicError("lead", e.name, err)
		}
		again, err := e.leadOnce(ctx, inner, fn)
		if err != nil {
			return err
		}
		e.lock.Pause(ctx, again) // when ctx or the client ends it, the next campaign says so
	}
}

// leadOnce leads once. It returns the pause before the next campaign, or the error that ends Run.
func (e *Election) leadOnce(ctx context.Context, inner *engine.Lease, fn func(context.Context) error) (
	again time.Duration, err error) {
	const resigned = time.Second // so that a fn that returns at once does not spin
	lease := &Lease{inner: inner}
	defer inner.Term()()
	var failed error
	held := func(context.Context) (*Lease, error) { return lease, nil }
	err = do(ctx, "Election.Run", held, func(ctx context.Context) error {
		failed = fn(ctx)
		return failed
	})
	ended := failed == nil || errors.Is(failed, context.Canceled) || errors.Is(failed, ErrLost)
	switch {
	case errors.Is(lease.Err(), ErrLost) && ended:
		return 0, nil
	case errors.Is(err, ErrUncertain) && ended: // the lease may have been lost
		return resigned, nil
	case err != nil:
		return 0, err
	}
	return resigned, nil
}

// Leader returns the leader that the server names now. The error matches ErrNoLeader if there is
// none. Other errors are those of every call.
func (e *Election) Leader(ctx context.Context) (Leader, error) {
	if err := e.check(ctx); err != nil {
		return Leader{}, err
	}
	standing, err := e.lock.Standing(ctx)
	if err != nil {
		return Leader{}, publicError("look", e.name, err)
	}
	leader, ok := newLeader(standing)
	if !ok {
		return Leader{}, e.noLeaderError()
	}
	return leader, nil
}

func (e *Election) noLeaderError() error {
	return fmt.Errorf("%w of %q", ErrNoLeader, shorten(e.name))
}

// Observe yields the present leader, if there is one, and then every new leader, until ctx ends or
// the loop is left. When a leader has gone and there is no new one, it yields the zero Leader once,
// with an error that matches ErrNoLeader. A slow loop may miss some leaders, but never the latest
// state. A missed message, or a leader that crashed without a successor, costs a few seconds.
// Observe waits for a server that is away. Any other error, one of every call, is in the last pair.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if err := e.check(ctx); err != nil {
			yield(Leader{}, err)
			return
		}
		var leader Leader
		var looks protocol.Pace
		for {
			standing, err := e.lock.Await(ctx, &looks, func(s protocol.Standing) bool {
				next, _ := newLeader(s)
				return next.Owner != leader.Owner || next.Token != leader.Token
			})
			if err != nil {
				yield(Leader{}, publicError("observe", e.name, err))
				return
			}
			var none error
			var leads bool
			if leader, leads = newLeader(standing); !leads {
				none = e.noLeaderError()
			}
			if !yield(leader, none) {
				return
			}
		}
	}
}

// Transfer hands the lead of this client over to another candidate: the first in the queue with the
// label to, or of the process to, which is "host/pid". There is no moment without a leader at the
// server, and all others keep their places.
//
// The candidate has to show life within a second. If it does not, or if there is none, the error
// matches ErrNotWaiting, and nothing is changed. Then the lead ends here: Transfer ends the context
// of the fn of Run, and waits until fn has returned. If fn itself calls Transfer, it should return
// then. A lease of Campaign is released. Run campaigns again, behind all others.
//
// The error is ErrNotHeld if this client does not lead. Other errors are those of Lease.Release and
// Client.Inspect. If ctx ends while Transfer waits for fn, the lead is handed over once fn returns.
// If the candidate leaves at that moment, the lead goes to the next in the queue. A quorum refuses
// it.
func (e *Election) Transfer(ctx context.Context, to string) error {
	if err := e.check(ctx); err != nil {
		return err
	}
	if to == "" {
		return badArgument("Election.Transfer", "to", to, "a label, or a process as host/pid")
	}
	err := e.lock.Transfer(ctx, func(p protocol.Place) bool {
		return p.Party.Label == to || strings.HasPrefix(p.Process+"/", to+"/")
	})
	if errors.Is(err, engine.ErrNotWaiting) {
		return fmt.Errorf("%w: no candidate %q of %q that shows life", ErrNotWaiting, shorten(to), shorten(e.name))
	}
	return operatorError("transfer", e.name, err)
}

// Check is for a health endpoint, and asks no server. Nil says that this client has no lease of
// this election, or that the last renewal of each was confirmed. An error that matches ErrLost says
// that a lease was lost and the fn of Run has not returned: that may not pass by itself. Any other
// error says that a renewal failed, which is tried again until trust ends. Check does not report
// that Run ended.
func (e *Election) Check() error {
	if err := e.check(context.Background()); err != nil {
		return err
	}
	err := publicError("renew", e.name, e.lock.Trouble())
	if err != nil && !errors.Is(err, ErrLost) {
		text := fmt.Sprintf("%sleading %q, but not renewing: %s", prefix, shorten(e.name), innerText(err))
		return &compoundError{text, []error{err}}
	}
	return err
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (e *Election) check(ctx context.Context) error {
	if e == nil {
		return zeroHandleError("Election", "made by Client.Election")
	}
	return checkHandle(ctx, "Election", e.lock != nil, e.err)
}

// wrapLease translates what the engine answers.
func (e *Election) wrapLease(inner *engine.Lease, err error) (*Lease, error) {
	if err != nil {
		return nil, publicError("campaign", e.name, err)
	}
	return &Lease{inner: inner}, nil
}

// newLeader reads the leader from the standing of a name. It returns false if there is no leader.
// The remainder of a min hold has no leader.
func newLeader(s protocol.Standing) (Leader, bool) {
	if s.Holders == 0 || s.Holder.Owner == "" {
		return Leader{}, false
	}
	return Leader{Owner: s.Holder.Owner, Label: s.Holder.Label, Token: s.Token, Since: time.UnixMicro(s.Since)}, true
}
