package moving

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
)

// UnderRedislock runs work under a lock of redislock, as long as that lock lives. It returns
// redislock's error if the lock is not had, and ErrOldLost, joined with the error of work, if it
// was lost.
func UnderRedislock(ctx context.Context, old *redislock.Client, name string, ttl time.Duration,
	work func(context.Context) error) error {
	every := redislock.LinearBackoff(100 * time.Millisecond)
	lock, err := old.Obtain(ctx, name, ttl, &redislock.Options{RetryStrategy: every})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(context.WithoutCancel(ctx)) }() // else it expires
	return whileRenewed(ctx, ttl, func(ctx context.Context) error {
		err := lock.Refresh(ctx, ttl, nil)
		if errors.Is(err, redislock.ErrNotObtained) {
			return ErrOldLost
		}
		return err
	}, work)
}
