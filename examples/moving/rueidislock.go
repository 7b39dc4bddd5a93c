package moving

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis/rueidislock"
)

// UnderRueidislock runs work under a lock of rueidislock, as long as that library says that the
// lock lives. It asks again and again, as WithContext may miss the moment at which a lock is free.
// It returns ErrOldLost, joined with the error of work, if the lock was lost.
func UnderRueidislock(ctx context.Context, old rueidislock.Locker, name string, work func(context.Context) error) error {
	for {
		held, release, err := old.TryWithContext(ctx, name)
		if err == nil {
			defer release()
			err = work(held)
			if held.Err() != nil && ctx.Err() == nil {
				err = errors.Join(err, ErrOldLost)
			}
			return err
		}
		if errors.Is(err, rueidislock.ErrLockerClosed) {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
