package protocol

import (
	"context"
	"errors"
	"fmt"
)

// EndOf is how ctx ended: what ctx.Err says, and the cause where that is another error. It matches
// both.
func EndOf(ctx context.Context) error {
	end, cause := ctx.Err(), context.Cause(ctx)
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
