package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

// quorum is github.com/go-redsync/redsync on its smallest quorum, one server. It asks at an
// interval while the name is held, and takes back what it may have won after each refusal.
type quorum struct {
	rdb  *redis.Client
	sync *redsync.Redsync
	poll time.Duration
}

func openRedsync(t target) (Contender, error) {
	rdb := newRedis(t)
	return &quorum{rdb, redsync.New(goredis.NewPool(rdb)), t.poll}, nil
}

func (q *quorum) Lock(ctx context.Context, name string) (func() error, error) {
	mu := q.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithRetryDelay(q.poll), redsync.WithTries(math.MaxInt))
	if err := mu.LockContext(ctx); err != nil {
		return nil, err
	}
	return func() error {
		ok, err := mu.UnlockContext(ctx)
		if err == nil && !ok {
			err = fmt.Errorf("%s was not held any more", name)
		}
		return err
	}, nil
}

func (q *quorum) Close() error { return q.rdb.Close() }
