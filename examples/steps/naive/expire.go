package naive

import "context"

// An Expire is SETNX, and then EXPIRE, so that the server ends the lock of a process that crashed.
//
// The bug: these are two commands. A process that crashes between them leaves a key without an
// expiry, and no process ever gets in again.
type Expire struct{ Key }

// TryLock takes a free lock, and sets its expiry.
func (l Expire) TryLock(ctx context.Context) (bool, error) {
	ok, err := l.rdb.Do(ctx, "SETNX", l.key, "locked").Bool()
	if err != nil || !ok {
		return false, err
	}
	return true, l.rdb.PExpire(ctx, l.key, l.ttl).Err()
}

// Unlock deletes the key.
func (l Expire) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.key).Err() }
