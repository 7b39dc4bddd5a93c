package examples_test

import (
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// The code of docs/quorum.md, word for word. It is compiled and not run: its masters are not there,
// and its clients are never closed.
var _ = func() (*holdfast.Client, error) {
	client, err := holdfast.NewQuorum([]store.Store{
		redisstore.New(redis.NewClient(&redis.Options{Addr: "a:6379"})),
		redisstore.New(redis.NewClient(&redis.Options{Addr: "b:6379"})),
		redisstore.New(redis.NewClient(&redis.Options{Addr: "c:6379"})),
	}, nil)
	return client, err
}
