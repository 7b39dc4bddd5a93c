package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/storetest"
)

func TestConformance(t *testing.T) {
	t.Run("redis-server", func(t *testing.T) {
		srv := redisserver.Start(t)
		storetest.Run(t, storetest.Backend{
			Parallel: 4,
			Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
				rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
				tb.Cleanup(func() { rdb.Close() })
				return open(tb, rdb, config)
			},
			Left: func(tb testing.TB, prefix string) []string { return left(tb, prefix, srv) },
		})
	})
}

func open(tb testing.TB, rdb redis.UniversalClient, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	client, err := holdfast.New(redisstore.New(rdb), config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// left are the keys under a prefix at the servers that are not the clock of a slot.
func left(tb testing.TB, prefix string, servers ...*redisserver.Server) []string {
	var keys []string
	for _, srv := range servers {
		answer, err := srv.Do("KEYS", prefix+"*")
		if err != nil {
			tb.Fatal(err)
		}
		for _, key := range answer.([]any) {
			keys = append(keys, key.(string))
		}
	}
	return locks(keys, prefix)
}

// locks are the keys under a prefix that are not the clock of a slot.
func locks(keys []string, prefix string) (states []string) {
	for _, key := range keys {
		if strings.HasPrefix(key, prefix) && !strings.HasSuffix(key, "}:clock") {
			states = append(states, key)
		}
	}
	return states
}
