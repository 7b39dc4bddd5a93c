package naive

import (
	"context"
	"time"
)

// Poll waits for a lock: it tries again and again, until it gets in.
//
// The bugs: each waiter keeps the server busy for nothing, a free lock stands idle until the next
// try, and the first to try gets in, however long others have waited.
func Poll(ctx context.Context, try func(context.Context) (bool, error), every time.Duration) error {
	for {
		if ok, err := try(ctx); ok || err != nil {
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
