package holdfast

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// ListOptions choose names. The zero ListOptions choose all.
type ListOptions struct {
	Pattern   string        // a glob of Redis that the whole name matches; empty: all names
	Label     string        // only names with a holder of this label
	Process   string        // only names with a holder of this process: "host" or "host/pid"
	OlderThan time.Duration // only names with a holder that holds for longer
	Contended bool          // only names that somebody waits for
}

// List streams the names under Config.Prefix that are held, waited for or are latches, in any
// order. It reads the keys of every master by SCAN, in constant memory, and each name is told as
// Inspect tells it. A name may come twice, and a name that is used for less than the time of List
// may be missed: SCAN promises no more. Of a quorum each name is told as all masters say.
//
// A key that begins as ours do and is none of ours comes with StateForeign, and its key as Name.
// The stream ends after an error, which is as for Inspect. A *StoreError of kind StoreDenied may
// mean that SCAN is not permitted.
func (c *Client) List(ctx context.Context, options ListOptions) iter.Seq2[LockInfo, error] {
	return func(yield func(LockInfo, error) bool) {
		var bad problems
		bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
		bad.check(ctx != nil, "ctx", nil, "not nil")
		bad.check(len(options.Pattern) <= maxText, "ListOptions.Pattern", shortened(options.Pattern), "at most 1 KiB")
		bad.check(options.OlderThan >= 0, "ListOptions.OlderThan", options.OlderThan, "not negative")
		if err := bad.err("Client.List"); err != nil {
			yield(LockInfo{}, err)
			return
		}
		pattern := options.Pattern
		if pattern == "" {
			pattern = "*"
		}
		for found, err := range c.engine.Names(ctx, pattern) {
			if err != nil {
				yield(LockInfo{}, operated("list", "", err))
				return
			}
			info, err := c.Inspect(ctx, found.Name)
			if err != nil {
				yield(LockInfo{}, err)
				return
			}
			if options.choose(info) && !yield(info, nil) {
				return
			}
		}
	}
}

// choose tells whether the options choose a name.
func (o ListOptions) choose(info LockInfo) bool {
	if o.Contended && info.Waiters == 0 {
		return false
	}
	if o.Label == "" && o.Process == "" && o.OlderThan == 0 {
		return info.State != StateFree || info.Waiters > 0 || len(info.Queue) > 0
	}
	for _, h := range info.Holds {
		if o.chooseHold(h, info.At) {
			return true
		}
	}
	return false
}

func (o ListOptions) chooseHold(h HoldInfo, now time.Time) bool {
	return true // written by List's author
}

// Break ends one hold of another caller: the one that has the token, which Inspect tells. The hold
// becomes a remainder, and nobody else gets in before its holder's code has stopped. That is when
// the holder calls Release (or the fn of Do has returned), or else when the hold's TTL is over. The
// holder's lease ends with a *LostError whose By is the label of this client: at once if its
// process listens, and at its next renewal otherwise.
//
// Nil says that the hold is broken, also if it was before. Any token of the hold's block will do,
// whichever goroutine has the hold. Of readers that share one hold, Break ends all. The errors are
// as for Inspect, and:
//
//   - ErrNotHeld: the name has no hold with this token. Nothing was touched.
//   - A *StoreError whose Applied is AppliedUnknown: Break may be called again.
func (c *Client) Break(ctx context.Context, name string, token int64) error {
	return c.breakHold(ctx, "Client.Break", name, token, false)
}

// ForceBreak ends a hold, or what remains of one, without waiting for its holder: others are let in
// at once. The holder may not know for as long as its TTL, and writes meanwhile. Then two callers
// hold the lock. Only fencing tokens keep storage safe. Use it for a holder that is known to be
// dead, and Break otherwise. A quorum refuses it. The rest is as for Break.
func (c *Client) ForceBreak(ctx context.Context, name string, token int64) error {
	return c.breakHold(ctx, "Client.ForceBreak", name, token, true)
}

func (c *Client) breakHold(ctx context.Context, call, name string, token int64, force bool) error {
	if err := c.operates(ctx, call, name); err != nil {
		return err
	}
	var bad problems
	bad.check(token > 0, "token", token, "a token that Inspect tells")
	if err := bad.err(call); err != nil {
		return err
	}
	in, err := c.engine.Inspect(ctx, name, protocol.Page{Holds: 1})
	if err != nil {
		return operated("break", name, err)
	}
	if in.Kind == 0 || in.Kind == protocol.Latch {
		return ErrNotHeld
	}
	done, err := c.engine.Break(ctx, name, protocol.Break{Kind: in.Kind, Token: token, By: c.config.Label, Force: force})
	if err != nil {
		return operated("break", name, err)
	}
	if !done {
		return ErrNotHeld
	}
	return nil
}

// ErrNotWaiting means that the waiter has no place in the queue.
var ErrNotWaiting = errors.New("holdfast: not waiting")

// Evict takes a waiter out of the queue: the one with the ID that Inspect or Queue told. Its call
// ends with a *WaitError that holds an *EvictedError. One goroutine of its process has the place.
// If others of the process wait for the name too, the next one joins at the end of the queue. The
// errors are as for Inspect, and ErrNotWaiting: no waiter has this ID, as it holds or has left.
func (c *Client) Evict(ctx context.Context, name, waiter string) error {
	if err := c.operates(ctx, "Client.Evict", name); err != nil {
		return err
	}
	for page := (protocol.Page{Queue: inspected}); ; {
		in, err := c.engine.Inspect(ctx, name, page)
		if err != nil {
			return operated("evict", name, err)
		}
		for _, p := range in.Queue {
			page.After = p.Order
			if digestOf(p.ID) != waiter {
				continue
			}
			done, err := c.engine.Evict(ctx, name, in.Kind, p.ID, c.config.Label)
			if err == nil && !done {
				return ErrNotWaiting
			}
			return operated("evict", name, err)
		}
		if len(in.Queue) < page.Queue {
			return ErrNotWaiting
		}
	}
}

// An EvictedError says that an operator took a waiter out of the queue.
type EvictedError struct {
	By string // the label of the operator's client
}

func (e *EvictedError) Error() string { return "holdfast: taken out of the queue by " + e.By }

// operated translates the error of a call of an operator.
func operated(op, name string, err error) error {
	var ended *engine.WaitEnded
	if errors.As(err, &ended) {
		return compose(": ", errors.New(prefix+op), ended.Err)
	}
	return public(op, name, err)
}
