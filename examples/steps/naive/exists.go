package naive

import "context"

// An Exists looks whether the lock is free, and takes it then.
//
// The bug: EXISTS and SET are two commands. Two processes may both find the lock free, and then
// both take it.
type Exists struct{ Key }

// TryLock takes the lock if it is free.
func (l Exists) TryLock(ctx context.Context) (bool, error) {
	taken, err := l.rdb.Exists(ctx, l.key).Result()
	if err != nil || taken == 1 {
		return false, err
	}
	return true, l.rdb.Set(ctx, l.key, l.id, l.ttl).Err()
}

// Unlock deletes the key.
func (l Exists) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.key).Err() }
