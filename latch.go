package holdfast

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A Latch is a name at which many processes wait until as many have counted down as were set. At
// first a latch is not set. Then it is set, until that many have counted down. Then it is open, for
// its TTL, and after that not set again.
//
// A latch has no holder. An abandoned latch goes away a TTL after it was last set or counted down.
// The TTL of a latch is 24 hours. WithTTL makes it less, down to 100 ms, whatever Config.MaxTTL is.
type Latch struct {
	name   string
	latch  *engine.Latch
	err    error // what is wrong with its arguments
	noCopy noCopy
}

// Latch makes a handle, as Client says.
func (c *Client) Latch(name string, options ...Option) *Latch {
	if c == nil || c.engine == nil {
		return &Latch{name: name, err: zeroHandleError("Latch", "a client that New made")}
	}
	s := c.applyOptions("Latch", options)
	ttl := limits.MaxTTL
	if s.isGiven(optTTL) {
		ttl = s.TTL.Truncate(time.Millisecond)
	}
	bad := s.meaninglessOptions("Latch")
	bad.check(name != "" && len(name) <= limits.MaxText, "name", shorten(name), "from 1 to 1024 bytes")
	bad.check(!s.isGiven(optWait) || s.Wait > 0, "WithWait", s.Wait, "above 0")
	bad.check(ttl >= limits.MinTTL && ttl <= limits.MaxTTL, "WithTTL", ttl, "from 100ms to 24h")
	if err := bad.err(handleText("Latch", name)); err != nil {
		return &Latch{name: name, err: err}
	}
	return &Latch{name: name, latch: c.engine.NewLatch(protocol.Spec{Name: name, Label: s.label}, ttl, s.Wait)}
}

// Set sets how many must count down before the latch opens, from 0 to 2^31-1. A count of 0 opens
// the latch at once. A latch can be set again only after it has opened or gone away. Until then the
// error is a *HeldError, which matches ErrHeld, and nothing is changed.
//
// If an answer is lost, Set asks again, for up to Config.ReleaseTimeout or until ctx ends. This
// does not set the latch twice. Other errors are those of every call. The *StoreError, or that in a
// *WaitError, says with MayHaveApplied whether the latch may have been set.
func (l *Latch) Set(ctx context.Context, count int) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	if count < 0 || count > math.MaxInt32 {
		return badArgument("Latch.Set", "count", count, "from 0 to 2147483647")
	}
	standing, set, err := l.latch.Set(ctx, int64(count))
	switch {
	case err != nil:
		return publicError("set", l.name, err)
	case !set:
		return &HeldError{Name: l.name, Kind: protocol.Latch.String(), Holders: int(standing.Count)}
	}
	return nil
}

// CountDown takes one off the count. The last CountDown opens the latch and tells all waiters. On
// an open latch it does nothing, and returns nil.
//
// Each call counts once. If an answer is lost, CountDown asks again as Set does, without counting
// twice. If the latch is not set, the error matches ErrNotHeld, and nothing was done. All other
// errors are as for Set. If the request may have been applied, another call may count twice.
func (l *Latch) CountDown(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	standing, err := l.latch.CountDown(ctx)
	if err != nil {
		return publicError("count down", l.name, err)
	}
	return l.checkSet(standing)
}

// Count returns how many have yet to count down. 0 means that the latch is open. If the latch is
// not set, the error matches ErrNotHeld. Other errors are those of every call.
func (l *Latch) Count(ctx context.Context) (int, error) {
	if err := l.check(ctx); err != nil {
		return 0, err
	}
	standing, err := l.latch.Look(ctx)
	if err != nil {
		return 0, publicError("count", l.name, err)
	}
	return int(standing.Count), l.checkSet(standing)
}

// Wait waits until the latch is open, also if it is not set yet. Only ctx and WithWait bound the
// waiting: while the server is away, Wait goes on asking. A message that is missed costs it a few
// seconds. The errors are those of every call, as for Mutex.Lock. Wait leaves the latch as it is.
func (l *Latch) Wait(ctx context.Context) error {
	if err := l.check(ctx); err != nil {
		return err
	}
	return publicError("wait", l.name, l.latch.Wait(ctx))
}

// checkSet returns nil if the latch is set or open.
func (l *Latch) checkSet(standing protocol.Standing) error {
	if standing.Latch == protocol.LatchUnset {
		return fmt.Errorf("%w: latch %q is not set", ErrNotHeld, shorten(l.name))
	}
	return nil
}

// check refuses a handle that no client made, a nil context, and a handle with bad arguments.
func (l *Latch) check(ctx context.Context) error {
	if l == nil {
		return zeroHandleError("Latch", "made by Client.Latch")
	}
	return checkHandle(ctx, "Latch", l.latch != nil, l.err)
}
