package moving

import (
	"context"
	"errors"
	"time"

	"github.com/redis/rueidis/rueidislock"
)

// UnderRueidislock runs work under a lock of rueidislock, as long as that library says that the
// lock lives. It asks again and again, as WithContext may miss the moment at which a lock is free.
// The lock is given back when work has ended: rueidislock would do so when ctx ends. If the lock
// was lost, UnderRueidislock returns ErrOldLost, joined with the error of work.
func UnderRueidislock(ctx context.Context, old rueidislock.Locker, name string,
	work func(context.Context) error) error {
	for {
		held, release, err := old.TryWithContext(context.WithoutCancel(ctx), name)
		if err == nil {
			defer release()
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(held, func() { cancel(ErrOldLost) })()
			return endedWith(ctx, work(ctx))
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
