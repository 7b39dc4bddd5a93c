package holdfast

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Latch is a name that many processes wait at until as many have counted down as were set. It is not set at first; set
// until that many have counted down; then open, for its TTL, and not set again. Nobody holds a latch: one that is
// abandoned goes away a TTL after it was last set or counted down. The TTL of a latch is 24 hours; WithTTL, the only option
// that has a meaning for a latch, makes it less, from 100 ms, whatever Config.MaxTTL is.
//
// Handles have no state of their own, are cheap, and safe for concurrent use. The zero Latch and nil return errors.
type Latch struct {
	name   string
	latch  *engine.Latch
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// Latch makes a handle. It sends nothing and cannot fail: what is wrong with the name (1 byte to 1 KiB, any bytes) or the
// options is an *ArgumentError from each of its methods.
func (c *Client) Latch(name string, options ...Option) *Latch {
	if c == nil || c.engine == nil {
		return &Latch{name: name, err: zeroHandle("Latch", "a client that New made")}
	}
	s := c.apply(options)
	ttl := maxMaxTTL
	if s.has(optTTL) {
		ttl = s.TTL.Truncate(time.Millisecond)
	}
	bad := s.refused("Latch")
	bad.check(name != "" && len(name) <= maxText, "name", shortened(name), "from 1 to 1024 bytes")
	bad.check(ttl >= minTTL && ttl <= maxMaxTTL, "WithTTL", ttl, "from 100ms to 24h")
	if err := bad.err(named("Latch", name)); err != nil {
		return &Latch{name: name, err: err}
	}
	return &Latch{name: name, latch: c.engine.Latch(protocol.Spec{Name: name, Label: s.label}, ttl)}
}

// Set sets how many must count down before the latch opens: from 0, which opens it at once, to 2^31-1. It is set once, and
// again only after it has opened or gone away: until then the error is a *HeldError, which matches ErrHeld, and nothing
// is changed. An answer that is lost is asked for again, for up to Config.ReleaseTimeout or until ctx ends; setting
// twice is not a risk of that. The error is then a *StoreError, or a *WaitError when ctx ended; the *StoreError in either says
// with Applied whether the latch may have been set.
func (l *Latch) Set(ctx context.Context, count int) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	var bad problems
	bad.check(count >= 0 && count <= math.MaxInt32, "count", count, "from 0 to 2147483647")
	if err := bad.err("Latch.Set"); err != nil {
		return err
	}
	standing, set, err := l.latch.Set(ctx, int64(count))
	switch {
	case err != nil:
		return public("set", l.name, err)
	case !set:
		return &HeldError{Name: l.name, Kind: protocol.Latch.String(), Holders: int(standing.Count)}
	}
	return nil
}

// CountDown takes one off. The last one opens the latch, and all who wait are told; of an open latch it takes nothing.
// Each call counts once: an answer that is lost is asked for again, for up to Config.ReleaseTimeout or until ctx ends,
// without counting twice. An error that matches ErrNotHeld: the latch is not set, and nothing was done. Else the error is as
// Set's: where a *StoreError says that it may have been applied, calling again may count twice.
func (l *Latch) CountDown(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	standing, err := l.latch.CountDown(ctx)
	if err != nil {
		return public("count down", l.name, err)
	}
	return l.set(standing)
}

// Count is how many have yet to count down; 0: the latch is open. An error that matches ErrNotHeld: it is not set. Else the
// error is a *StoreError, or a *WaitError when ctx ended.
func (l *Latch) Count(ctx context.Context) (int, error) {
	if err := l.check(ctx); err != nil {
		return 0, err
	}
	standing, err := l.latch.Look(ctx)
	if err != nil {
		return 0, public("count", l.name, err)
	}
	return int(standing.Count), l.set(standing)
}

// Wait waits until the latch is open. One that is not set yet is waited for until it is set and opens. The waiting is bounded
// by ctx alone: while the server is away, Wait goes on asking, and a message that is missed costs it a few seconds.
// The error is a *WaitError when ctx ended the waiting, ErrClosed, an *ArgumentError, or a *StoreError for a refusal that
// waiting does not cure. It leaves the latch as it is.
func (l *Latch) Wait(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return public("wait", l.name, l.latch.Wait(ctx))
}

// set is nil of a latch that is set or open.
func (l *Latch) set(standing protocol.Standing) error {
	if standing.Latch == protocol.LatchUnset {
		return fmt.Errorf("%w: latch %q is not set", ErrNotHeld, shortened(l.name))
	}
	return nil
}

// check refuses handles and contexts that are none.
func (l *Latch) check(ctx context.Context) error {
	if l == nil {
		return zeroHandle("Latch", "made by Client.Latch")
	}
	return usable(ctx, "Latch", l.latch != nil, l.err)
}
