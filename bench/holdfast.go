package main

import (
	"context"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/redis/go-redis/v9"
)

// ours is holdfast with its defaults: renewed, queued, with tokens.
type ours struct {
	rdb    *redis.Client
	client *holdfast.Client
}

func openHoldfast(t target) (Contender, error) {
	rdb := newRedis(t)
	client, err := holdfast.New(redisstore.New(rdb), &holdfast.Config{TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &ours{rdb, client}, nil
}

func (o *ours) Lock(ctx context.Context, name string) (func() error, error) {
	lease, err := o.client.Mutex(name).Lock(ctx)
	if err != nil {
		return nil, err
	}
	return func() error { return lease.Release() }, nil
}

func (o *ours) Close() error {
	err := o.client.Close()
	if cerr := o.rdb.Close(); err == nil {
		err = cerr
	}
	return err
}
