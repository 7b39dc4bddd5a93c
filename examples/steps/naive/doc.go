// Package naive has the locks of the tutorials, written out as the tutorials write them, over
// go-redis. Each file is a lock with a bug that is left in it, and begins with that bug. The
// package is there to be read, and to be seen to fail by the program above it. No other program
// should use it.
//
// A TryLock tries once, and reports whether the caller holds. An Unlock gives the lock back.
package naive

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// A Key is what all these locks have.
type Key struct {
	rdb *redis.Client
	key string        // the name
	id  string        // what is unique to this caller
	ttl time.Duration // the life of the key
}

// NewKey makes the key of one process.
func NewKey(rdb *redis.Client, key, id string, ttl time.Duration) Key { return Key{rdb, key, id, ttl} }
