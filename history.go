package holdfast

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// historyWait is how long a wait in vain is without Config.SlowWait, to be in the history.
const historyWait = time.Second

// History streams what happened to a name since a moment, the newest entries first. It tells what
// clients with Config.History wrote about 100 ms ago or earlier, and the servers still keep. The
// name's class is that of this client's Config.Class. Without a history there are no entries, and
// no error.
//
// It is for people, and nothing may be decided by it. An entry may be missing: the server did not
// take it, the process was killed before it wrote it, or it was one of more than 4,096 in 100 ms. A
// lease that ends with its process has no end; the next grant has a larger token.
//
// It reads all entries of the class since then, a page at a time, so it costs what Config.History
// allows. A quorum's are read whole from each master, and a minority that does not answer is no
// error. It needs the permission of XREVRANGE, and Config.History that of XADD. The stream ends
// after an error, which is as for Inspect: of kind StoreForeign if the key has another type.
func (c *Client) History(ctx context.Context, name string, since time.Time) iter.Seq2[lockinfo.Entry, error] {
	return func(yield func(lockinfo.Entry, error) bool) {
		if err := c.checkCall(ctx, "Client.History", name); err != nil {
			yield(lockinfo.Entry{}, err)
			return
		}
		reading := c.history.Read(c.classes.Of(name), name, since)
		for over := false; !over; {
			var entries []lockinfo.Entry
			err := c.engine.Call(ctx, func() (err error) {
				entries, over, err = reading.Next(ctx)
				return err
			})
			if err != nil {
				yield(lockinfo.Entry{}, operatorError("history", name, err))
				return
			}
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

// recordNow has an entry written about what happens now, if a history is kept. A kind of 0 is not
// known.
func (c *Client) recordNow(e lockinfo.Entry, kind protocol.Kind) {
	if c.config.History == 0 {
		return
	}
	if kind != 0 {
		e.LockKind = lockinfo.Kind(kind.String())
	}
	e.At = time.Now()
	c.history.Add(c.classes.Of(e.Name), e)
}

// recordEvent has the entry of an event written, if a history is kept. Most events have none.
func (c *Client) recordEvent(event engine.Event, class string) {
	if c.config.History == 0 || event.Spec == nil {
		return
	}
	e := lockinfo.Entry{At: event.At, Name: event.Name, LockKind: lockinfo.Kind(event.Lock.String()),
		Label: event.Spec.Label, Owner: event.Spec.Owner,
		Token: event.Token, Holder: event.Holder}
	switch event.Kind {
	case engine.Granted, engine.Passed:
		e.Kind = lockinfo.EntryGranted
		if event.Contended {
			e.Waited = event.Took
		}
	case engine.Released:
		e.Kind, e.Held = lockinfo.EntryReleased, event.Took
		if event.Detached {
			e.Kind = lockinfo.EntryDetached
		}
	case engine.LostHold:
		e.Kind, e.Held = lockinfo.EntryLost, event.Took
	case engine.GaveUp:
		if event.Took < cmp.Or(c.config.SlowWait, historyWait) {
			return
		}
		e.Kind, e.Waited, e.At = lockinfo.EntryGaveUp, event.Took, time.Now()
	default:
		return
	}
	if event.Err != nil {
		e.Reason, e.By = entryReason(eventError(event))
	}
	c.history.Add(class, e)
}

// entryReason returns why a lease or a wait ended, in a word, and by whom.
func entryReason(err error) (reason, by string) {
	var lost *LostError
	var waited *WaitError
	switch {
	case errors.As(err, &lost):
		return lost.Reason.Code(), lost.By
	case errors.As(err, &waited):
		return waited.Reason.Code(), waited.By
	case errors.Is(err, ErrUncertain):
		return "uncertain", ""
	}
	return "other", ""
}

// recordDiscarded records that the holds of a ticket were given back.
func (c *Client) recordDiscarded(holds []engine.Detached, err error) {
	if err != nil {
		return
	}
	for _, h := range holds {
		c.recordNow(lockinfo.Entry{Kind: lockinfo.EntryReleased, Name: h.Spec.Name, Label: h.Spec.Label,
			Owner: h.Spec.Owner, Token: h.Token}, h.Spec.Kind)
	}
}
