package protocol

import (
	"context"
	"errors"
	"fmt"
)

// ErrWaitOver is the cause of a context that bounds the waiting of a call alone.
var ErrWaitOver = errors.New("the time to wait is over")

// EndOf is how ctx ended: what ctx.Err says, and the cause where that is another error. It matches
// both. If the time to wait is over, the caller's own context is not: then it is ErrWaitOver alone.
func EndOf(ctx context.Context) error {
	end, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, ErrWaitOver) {
		return cause
	}
	if end == nil { // a request that ends with the deadline of ctx may see it first
		end = context.DeadlineExceeded
	}
	switch {
	case cause == nil:
		return end
	case errors.Is(cause, end):
		return cause
	}
	return fmt.Errorf("%w: %w", end, cause)
}
