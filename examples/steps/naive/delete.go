package naive

import "context"

// A Delete is SET with NX and PX, one command that takes the lock and sets its expiry. DEL gives it
// back.
//
// The bug: DEL does not ask who holds. A process whose key has expired deletes the key of the next
// process, and lets a third one in.
type Delete struct{ Key }

// TryLock takes a free lock.
func (l Delete) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, l.key, "locked", l.ttl).Result()
}

// Unlock deletes the key.
func (l Delete) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.key).Err() }
