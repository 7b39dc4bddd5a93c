package examples_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// The code of docs/quorum.md, word for word, with masters that are not there.
func TestQuorumPageCodeAsksAllMasters(t *testing.T) {
	client, err := holdfast.NewQuorum([]store.Store{
		redisstore.New(redis.NewClient(&redis.Options{Addr: "a:6379"})),
		redisstore.New(redis.NewClient(&redis.Options{Addr: "b:6379"})),
		redisstore.New(redis.NewClient(&redis.Options{Addr: "c:6379"})),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // before any name is looked up
	var refused *holdfast.QuorumError
	_, err = client.Mutex("order:42").TryLock(ctx)
	if !errors.As(err, &refused) && !errors.Is(err, context.Canceled) {
		t.Errorf("without masters: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}
