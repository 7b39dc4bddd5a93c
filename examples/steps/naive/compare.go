package naive

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// A Compare has a value that is unique to its holder, and asks for it before it deletes the key.
//
// The bug: GET and DEL are two commands. The key may expire between them, and then DEL deletes the
// lock of the next process.
type Compare struct{ Key }

// TryLock takes a free lock.
func (l Compare) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, l.key, l.id, l.ttl).Result()
}

// Unlock deletes the key if it is still that of this process.
func (l Compare) Unlock(ctx context.Context) error {
	holder, err := l.rdb.Get(ctx, l.key).Result()
	if errors.Is(err, redis.Nil) || err == nil && holder != l.id {
		return nil // not ours any more
	}
	if err != nil {
		return err
	}
	return l.rdb.Del(ctx, l.key).Err()
}
