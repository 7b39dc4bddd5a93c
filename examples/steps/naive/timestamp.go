package naive

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Timestamp is SETNX with a time as the value: the lock is over when that time has come. GETSET
// decides which of several processes takes it over.
//
// The bug: each process compares the time with its own clock. For a process whose clock is ahead,
// every lock is over.
type Timestamp struct {
	Key
	Now func() time.Time // the clock of this process
}

// TryLock takes a free lock, or one whose time is over.
func (l Timestamp) TryLock(ctx context.Context) (bool, error) {
	until := l.Now().Add(l.ttl).UnixMilli()
	ok, err := l.rdb.Do(ctx, "SETNX", l.key, until).Bool()
	if err != nil || ok {
		return ok, err
	}
	old, err := l.rdb.Get(ctx, l.key).Int64()
	if errors.Is(err, redis.Nil) {
		return false, nil // given back meanwhile: the next try gets it
	}
	if err != nil || old > l.Now().UnixMilli() {
		return false, err // not over yet, by our clock
	}
	before, err := l.rdb.Do(ctx, "GETSET", l.key, until).Int64()
	return err == nil && before == old, err // else another process was faster
}

// Unlock deletes the key.
func (l Timestamp) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.key).Err() }
