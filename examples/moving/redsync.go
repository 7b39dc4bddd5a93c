package moving

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
)

// UnderRedsync runs work under a lock of redsync, as long as that lock lives. It returns redsync's
// error if the lock is not had, and ErrOldLost, joined with the error of work, if it was lost.
func UnderRedsync(ctx context.Context, old *redsync.Redsync, name string, expiry time.Duration,
	work func(context.Context) error) error {
	mutex := old.NewMutex(name, redsync.WithExpiry(expiry))
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() { _, _ = mutex.UnlockContext(context.WithoutCancel(ctx)) }() // else it expires
	return whileRenewed(ctx, expiry, func(ctx context.Context) error {
		_, err := mutex.ExtendContext(ctx)
		if taken := new(redsync.ErrTaken); errors.As(err, &taken) {
			return ErrOldLost
		}
		return err
	}, work)
}
