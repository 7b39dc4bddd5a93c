package naive

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Delete is SET with NX and PX, one command that takes the lock and sets its expiry. DEL gives it
// back.
//
// The bug: DEL does not ask who holds. A process whose key has expired deletes the key of the next
// process, and lets a third one in.
type Delete struct {
	rdb *redis.Client
	key string
	ttl time.Duration
}

// NewDelete makes the lock of one process.
func NewDelete(rdb *redis.Client, key string, ttl time.Duration) *Delete {
	return &Delete{rdb, key, ttl}
}

// TryLock takes a free lock.
func (l *Delete) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, l.key, "locked", l.ttl).Result()
}

// Unlock deletes the key.
func (l *Delete) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.key).Err() }
