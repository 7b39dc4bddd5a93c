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

// Moved is the last release, whichever library there was before.
func Moved(ctx context.Context, client *holdfast.Client, bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, bill)
}

// A Library is an old library, as these services use it: Only in release N-1, and Under in release
// N, within the lock of holdfast.
type Library struct {
	Only, Under func(ctx context.Context, bill func(context.Context) error) error
}

// Redsync returns redsync, whose locks expire after ttl.
func Redsync(old *redsync.Redsync, ttl time.Duration) Library {
	return Library{
		func(ctx context.Context, bill func(context.Context) error) error { return OnlyRedsync(ctx, old, bill) },
		func(ctx context.Context, bill func(context.Context) error) error {
			return UnderRedsync(ctx, old, "order:42", ttl, bill)
		},
	}
}

// Redislock returns redislock, whose locks expire after ttl.
func Redislock(old *redislock.Client, ttl time.Duration) Library {
	return Library{
		func(ctx context.Context, bill func(context.Context) error) error {
			return OnlyRedislock(ctx, old, bill)
		},
		func(ctx context.Context, bill func(context.Context) error) error {
			return UnderRedislock(ctx, old, "order:42", ttl, bill)
		},
	}
}

// Rueidislock returns rueidislock.
func Rueidislock(old rueidislock.Locker) Library {
	return Library{
		func(ctx context.Context, bill func(context.Context) error) error {
			return OnlyRueidislock(ctx, old, bill)
		},
		func(ctx context.Context, bill func(context.Context) error) error {
			return UnderRueidislock(ctx, old, "order:42", bill)
		},
	}
}

// Etcd returns etcd's concurrency.
func Etcd(session *concurrency.Session) Library {
	return Library{
		func(ctx context.Context, bill func(context.Context) error) error { return OnlyEtcd(ctx, session, bill) },
		func(ctx context.Context, bill func(context.Context) error) error {
			return UnderEtcd(ctx, session, "/order/42", bill)
		},
	}
}

// Both takes the lock of a library within that of holdfast.
func (l Library) Both(ctx context.Context, client *holdfast.Client, bill func(context.Context) error) error {
	return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error { return l.Under(ctx, bill) })
}
