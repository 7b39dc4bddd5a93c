package moving

import (
	"context"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis/rueidislock"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// How services lock that do not know holdfast yet.

// OnlyRedsync is a service with redsync.
func OnlyRedsync(ctx context.Context, old *redsync.Redsync, bill func(context.Context) error) (err error) {
	mutex := old.NewMutex("order:42")
	if err := mutex.LockContext(ctx); err != nil {
		return err
	}
	defer func() {
		if ok, failure := mutex.UnlockContext(ctx); !ok && err == nil {
			err = fmt.Errorf("billed without the lock: %w", failure)
		}
	}()
	return bill(ctx)
}

// OnlyRedislock is a service with redislock.
func OnlyRedislock(ctx context.Context, old *redislock.Client, bill func(context.Context) error) error {
	lock, err := old.Obtain(ctx, "order:42", 8*time.Second, &redislock.Options{
		RetryStrategy: redislock.LimitRetry(redislock.LinearBackoff(100*time.Millisecond), 30),
	})
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release(ctx) }()
	return bill(ctx)
}

// OnlyRueidislock is a service with rueidislock.
func OnlyRueidislock(ctx context.Context, old rueidislock.Locker, bill func(context.Context) error) error {
	ctx, cancel, err := old.WithContext(ctx, "order:42")
	if err != nil {
		return err
	}
	defer cancel()
	return bill(ctx)
}

// OnlyEtcd is a service with etcd's concurrency.
func OnlyEtcd(ctx context.Context, session *concurrency.Session, bill func(context.Context) error) error {
	mutex := concurrency.NewMutex(session, "/order/42")
	if err := mutex.Lock(ctx); err != nil {
		return err
	}
	defer func() { _ = mutex.Unlock(ctx) }()
	return bill(ctx)
}
