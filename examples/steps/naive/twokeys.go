package naive

import "context"

// A TwoKeys is a read-write lock of two keys: a count of the readers, and the name of the writer.
// On a cluster they are in different slots, so that no script can use both.
//
// The bugs: a look at one key and a change of the other are two commands, and between them another
// process may get in. And a count has no names: a reader whose entry has expired takes away that of
// another.
type TwoKeys struct {
	Key
	Write bool
}

// TryLock takes the lock to read if nobody writes, or to write if nobody reads or writes.
func (l TwoKeys) TryLock(ctx context.Context) (bool, error) {
	readers, writer := l.key+":readers", l.key+":writer"
	if l.Write {
		if read, err := l.rdb.Exists(ctx, readers).Result(); err != nil || read == 1 {
			return false, err
		}
		return l.rdb.SetNX(ctx, writer, l.id, l.ttl).Result()
	}
	if written, err := l.rdb.Exists(ctx, writer).Result(); err != nil || written == 1 {
		return false, err
	}
	if err := l.rdb.Incr(ctx, readers).Err(); err != nil {
		return false, err
	}
	return true, l.rdb.PExpire(ctx, readers, l.ttl).Err()
}

// Unlock deletes the key of the writer, or counts a reader less. The last one deletes the count.
func (l TwoKeys) Unlock(ctx context.Context) error {
	readers, writer := l.key+":readers", l.key+":writer"
	if l.Write {
		return l.rdb.Del(ctx, writer).Err()
	}
	left, err := l.rdb.Decr(ctx, readers).Result()
	if err != nil || left > 0 {
		return err
	}
	return l.rdb.Del(ctx, readers).Err()
}
