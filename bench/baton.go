package main

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// baton passes one element of a list on. It is no lock, because the element dies with whoever holds
// it, but a bound: two commands a hand-over, in order, and the server itself wakes the next.
type baton struct{ rdb *redis.Client }

func openBaton(t target) (Contender, error) { return baton{newRedis(t)}, nil }

// Seed makes the one element.
func (b baton) Seed(ctx context.Context, name string) error {
	return b.rdb.RPush(ctx, name, "baton").Err()
}

func (b baton) Lock(ctx context.Context, name string) (func() error, error) {
	if err := b.rdb.BLPop(ctx, 0, name).Err(); err != nil {
		return nil, err
	}
	return func() error { return b.rdb.RPush(ctx, name, "baton").Err() }, nil
}

func (b baton) Close() error { return b.rdb.Close() }
