package naive

import "context"

// A Unique is SET with NX and PX, and a script that compares and deletes in one step. It is the
// lock of the Redis documentation for one server.
//
// The bug: the expiry is fixed. Work that takes longer goes on without the lock, beside the next
// holder, and does not notice.
type Unique struct{ Key }

// TryLock takes a free lock.
func (l Unique) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.SetNX(ctx, l.key, l.id, l.ttl).Result()
}

const compareAndDelete = `-- compare and delete
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// Unlock deletes the key if it is still that of this process.
func (l Unique) Unlock(ctx context.Context) error {
	return l.rdb.Eval(ctx, compareAndDelete, []string{l.key}, l.id).Err()
}
