package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

func subscription(t *testing.T, rdb redis.UniversalClient) (wire.Subscription, *pubsubtest.Sink) {
	t.Helper()
	return pubsubtest.Subscribe(t, redisstore.New(rdb))
}

func TestSubscription(t *testing.T) {
	speaking := func(protocol int) func(*testing.T, *redisserver.Server) store.Store {
		return func(t *testing.T, srv *redisserver.Server) store.Store {
			return redisstore.New(client(t, srv, func(o *redis.Options) { o.Protocol = protocol }))
		}
	}
	pubsubtest.Run(t, pubsubtest.Backend{
		Open: func(t *testing.T, srv *redisserver.Server, user string) store.Store {
			return redisstore.New(client(t, srv, func(o *redis.Options) {
				if user != "" {
					o.Username, o.Password = user, "pw"
				}
			}))
		},
		Protocols: map[string]func(*testing.T, *redisserver.Server) store.Store{"RESP2": speaking(2), "RESP3": speaking(3)},
	})
}
