package moving

import (
	"context"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis/rueidislock"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/holdfast-go/holdfast"
)

// How the same services lock in the release between, and in the last one.

// BothRedsync takes the lock of redsync within that of holdfast.
func BothRedsync(ctx context.Context, client *holdfast.Client, old *redsync.Redsync,
	bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		return UnderRedsync(ctx, old, "order:42", 8*time.Second, bill)
	})
}

// BothRedislock takes the lock of redislock within that of holdfast.
func BothRedislock(ctx context.Context, client *holdfast.Client, old *redislock.Client,
	bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		return UnderRedislock(ctx, old, "order:42", 8*time.Second, bill)
	})
}

// BothRueidislock takes the lock of rueidislock within that of holdfast.
func BothRueidislock(ctx context.Context, client *holdfast.Client, old rueidislock.Locker,
	bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		return UnderRueidislock(ctx, old, "order:42", bill)
	})
}

// BothEtcd takes the mutex of etcd within that of holdfast.
func BothEtcd(ctx context.Context, client *holdfast.Client, session *concurrency.Session,
	bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		return UnderEtcd(ctx, session, "/order/42", bill)
	})
}

// Moved is the last release, whichever library there was before.
func Moved(ctx context.Context, client *holdfast.Client, bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, bill)
}
