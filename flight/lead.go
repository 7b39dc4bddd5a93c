package flight

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast"
)

// get returns the value, as the package says.
func (c *call[T]) get(ctx context.Context) (T, error) {
	var none T
	for waits := 0; ; waits++ {
		value, state, err := c.read(ctx)
		if err != nil || c.isUsable(state) {
			if err == nil && state == RefreshAhead {
				c.refreshAhead(ctx)
			}
			return value, err
		}
		if err := c.sharedError(); err != nil {
			return none, err
		}
		value, over, err := c.ask(ctx, waits)
		switch {
		case over:
			return value, err
		case err == nil || c.isLookOver(err):
		case c.opens(ctx, err):
			return c.computeOpen(ctx)
		default:
			return none, err
		}
	}
}

// ask asks for the lock once, and waits if others have it. The call has waited so many times
// before. It returns what lead does; without an error, a call that is not over reads.
func (c *call[T]) ask(ctx context.Context, waits int) (value T, over bool, err error) {
	value, over, err = c.lead(ctx, c.lock.TryDo)
	switch {
	case over || !c.isBusy(err):
		return value, over, err
	case c.ahead: // another makes the next value
		return value, true, c.waitToRead(ctx)
	case waits == 0 || waits == 1 && isAwaited(err):
		return value, false, c.waitToRead(ctx)
	}
	return c.lead(ctx, c.lock.Do)
}

// lead reads again and computes, under the lock. Over: the call has ended. Otherwise the error says
// why the lock could not be had, and nil that the lease was lost, and the call may try once more.
func (c *call[T]) lead(ctx context.Context,
	lock func(context.Context, func(context.Context) error) error) (value T, over bool, err error) {
	held, computed := false, false
	lost := lock(ctx, func(ctx context.Context) error {
		held = true
		var state State
		if value, state, err = c.read(ctx); err == nil && !c.isUsable(state) {
			computed = true
			lease, _ := holdfast.LeaseFrom(ctx)
			value, err = c.compute(ctx, lease.Token())
		}
		return nil
	})
	switch {
	case !held:
		return value, false, lost
	case lost == nil:
		if computed && err != nil && ctx.Err() == nil {
			c.shareError(err)
		}
		return value, true, err
	case c.lost:
		return value, true, joinLost(err, lost)
	}
	c.lost = true
	var none T
	return none, false, nil
}

// joinLost joins what compute returned with how its lease was lost, unless it says that itself.
func joinLost(err, lost error) error {
	var l *holdfast.LostError
	if errors.As(lost, &l) && errors.Is(err, l) {
		return err
	}
	return errors.Join(err, lost)
}

// computeOpen computes without the lock.
func (c *call[T]) computeOpen(ctx context.Context) (T, error) {
	value, err := c.compute(ctx, 0)
	if err != nil && ctx.Err() == nil {
		c.shareError(err)
	}
	return value, err
}

// waitToRead waits until the leader has released the lock, and gives the lock back at once.
func (c *call[T]) waitToRead(ctx context.Context) error {
	for {
		entered := false
		err := c.lock.RDo(ctx, func(context.Context) error { entered = true; return nil })
		switch {
		case entered:
			return nil
		case !c.isLookOver(err):
			return err
		}
	}
}

// isUsable reports whether a value needs no compute.
func (c *call[T]) isUsable(state State) bool {
	return state == Fresh || state == RefreshAhead && !c.ahead
}

// isBusy reports whether the call should wait, after it asked for the lock once.
func (c *call[T]) isBusy(err error) bool {
	return errors.Is(err, holdfast.ErrHeld) || errors.Is(err, holdfast.ErrUnavailable) && !c.failOpen
}

// isAwaited reports whether others stand in the queue: a writer is the first of them.
func isAwaited(err error) bool {
	var held *holdfast.HeldError
	return errors.As(err, &held) && held.Waiters > 0
}

// isLookOver reports whether a wait ended only to see whether the server is there, as it is.
func (c *call[T]) isLookOver(err error) bool {
	return c.failOpen && errors.Is(err, holdfast.ErrWaitOver) && !errors.Is(err, holdfast.ErrUnavailable)
}

// opens reports whether the call computes without the lock.
func (c *call[T]) opens(ctx context.Context, err error) bool {
	return c.failOpen && !c.ahead && ctx.Err() == nil && errors.Is(err, holdfast.ErrUnavailable)
}

// sharedError returns the error of an earlier call that is shared, or nil.
func (c *call[T]) sharedError() error {
	mu.Lock()
	defer mu.Unlock()
	return failures[c.key].err
}
