package holdfast

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Break ends one hold of another caller: the one that has the token, which Inspect tells. The hold
// becomes a remainder. Nobody else gets in before its holder calls Release (or the fn of Do has
// returned), or its TTL is over. The holder's lease ends with a *LostError whose By is the label of
// this client. It ends at once if this client has it, or if its own client waits for a lock;
// otherwise at its next renewal. A process that stands still for a TTL learns LossExpired, and not
// by whom.
//
// Nil says that the hold is broken, also if it was before. Any token of the hold's block will do.
// Of readers that share one hold, Break ends all. The error is ErrNotHeld if the name has no hold
// with this token; nothing was touched then. Other errors are those of every call. After a
// *StoreError that says MayHaveApplied, or a *QuorumError, Break may be called again. After a
// *QuorumError the masters that ended the hold take that back. The holder may have been told all
// the same, and then gives the lock back.
func (c *Client) Break(ctx context.Context, name string, token int64) error {
	return c.breakHold(ctx, "Client.Break", name, token, false)
}

// ForceBreak ends a hold, or what remains of one, and others are let in at once. The holder may not
// know for as long as its TTL, and writes meanwhile. Then two callers hold the lock, and only
// fencing tokens keep storage safe. Use it for a holder that is known to be dead. A quorum refuses
// it. The holder's lease ends with a *LostError whose Reason is LossGone. The rest is as for Break.
func (c *Client) ForceBreak(ctx context.Context, name string, token int64) error {
	return c.breakHold(ctx, "Client.ForceBreak", name, token, true)
}

func (c *Client) breakHold(ctx context.Context, call, name string, token int64, force bool) error {
	if err := c.checkCall(ctx, call, name); err != nil {
		return err
	}
	if token <= 0 {
		return badArgument(call, "token", token, "a token that Inspect tells")
	}
	kind, err := c.kindHeld(ctx, "break", name)
	if err != nil {
		return err
	}
	done, err := c.engine.Break(ctx, name, protocol.Break{Kind: kind, Token: token, By: c.config.Label, Force: force})
	if err != nil {
		return operatorError("break", name, err)
	}
	if !done {
		return ErrNotHeld
	}
	c.recordNow(lockinfo.Entry{Kind: lockinfo.EntryBroken, Name: name, Label: c.config.Label, Token: token}, kind)
	return nil
}

// foreignError returns the error of a call about a name whose key is none of ours; nil: it is no
// such key.
func foreignError(op string, in protocol.Inspection) error {
	if in.Foreign == nil {
		return nil
	}
	foreign := *in.Foreign
	foreign.Op = op
	return &foreign
}

// Ask asks the holders of a name to let go: it closes the channel of Lease.Wanted. Each holder
// decides by itself. A lease that is retained unused is given back. Ask sends one message, after
// one look at the name, and waits for nobody.
//
// It returns how many holds were told. A holder is not told if its process does not listen, as it
// has not called Wanted. The server of a cluster may not know that, and counts it as told. The
// error is ErrNotHeld if nobody holds the name. Other errors are those of every call. A quorum
// refuses it.
func (c *Client) Ask(ctx context.Context, name string) (told int, err error) {
	if err := c.checkCall(ctx, "Client.Ask", name); err != nil {
		return 0, err
	}
	kind, err := c.kindHeld(ctx, "ask", name)
	if err != nil {
		return 0, err
	}
	holds, err := c.engine.Tell(ctx, name, kind, "")
	return countTold(name, holds, err)
}

// countTold returns how many holds of a name were told, and the error in words.
func countTold(name string, holds protocol.TellCount, err error) (told int, failed error) {
	switch {
	case err != nil:
		return 0, operatorError("ask", name, err)
	case holds.Found == 0:
		return 0, ErrNotHeld
	}
	return int(holds.Heard), nil
}

// kindHeld returns the kind of a name that is held, or the error of an operation on it. Of a quorum
// it returns 0: a quorum waits for no master that does not answer.
func (c *Client) kindHeld(ctx context.Context, op, name string) (protocol.Kind, error) {
	if c.quorum != nil { // it finds out
		return 0, nil
	}
	in, err := c.engine.Inspect(ctx, name, protocol.Page{Holds: 1})
	if err == nil {
		err = foreignError(op, in)
	}
	if err != nil {
		return 0, operatorError(op, name, err)
	}
	if in.Kind == 0 || in.Kind == protocol.Latch {
		return 0, ErrNotHeld
	}
	return in.Kind, nil
}

// ErrNotWaiting means that the waiter has no place in the queue.
var ErrNotWaiting = errors.New("holdfast: not waiting")

// Evict takes a waiter out of the queue: the one with the ID that Inspect or Queue told. Its call
// ends with a *WaitError whose Reason is WaitEvicted, and whose By is the label of this client. If
// other goroutines of its process wait for the name, the next one joins at the end of the queue.
// The error is ErrNotWaiting if no waiter has this ID, as it holds or has left. Other errors are
// those of every call. A quorum refuses it.
func (c *Client) Evict(ctx context.Context, name, waiter string) error {
	if err := c.checkCall(ctx, "Client.Evict", name); err != nil {
		return err
	}
	if c.quorum != nil {
		_, err := c.engine.Evict(ctx, name, protocol.Mutex, "", c.config.Label)
		return operatorError("evict", name, err)
	}
	for in, err := range c.inspectQueue(ctx, name) {
		if err == nil {
			err = foreignError("evict", in)
		}
		if err != nil {
			return operatorError("evict", name, err)
		}
		for _, p := range in.Queue {
			if waiterID(p.ID) != waiter {
				continue
			}
			done, err := c.engine.Evict(ctx, name, in.Kind, p.ID, c.config.Label)
			if err == nil && !done {
				return ErrNotWaiting
			}
			return operatorError("evict", name, err)
		}
	}
	return ErrNotWaiting
}

// operatorError translates the error of a call of an operator.
func operatorError(op, name string, err error) error {
	var ended *engine.WaitFailure
	if !errors.As(err, &ended) {
		return publicError(op, name, err)
	}
	over := composeErrors(": ", errors.New(prefix+op), ended.Err)
	if ended.Failure == nil {
		return over
	}
	return composeErrors("; ", over, publicError(op, name, ended.Failure))
}
