package redisstore_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/redisstore/internal/embedded"
	"github.com/holdfast-go/holdfast/storetest"
)

func TestConformance(t *testing.T) {
	t.Run("redis-server", func(t *testing.T) {
		srv := redisserver.Start(t)
		storetest.Run(t, storetest.Backend{
			Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
				rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
				tb.Cleanup(func() { rdb.Close() })
				return open(tb, rdb, config)
			},
			Left: func(tb testing.TB, prefix string) []string { return left(tb, prefix, srv) },
		})
	})
	for name, shows := range map[string]time.Time{
		"miniredis":                   {},
		"miniredis in 1970":           time.UnixMicro(10),
		"miniredis in September 2001": time.UnixMicro(1e15 - 777_777), // soon there is a digit more
	} {
		t.Run(name, func(t *testing.T) {
			var srv *embedded.Server
			var clock *embedded.Clock
			storetest.Run(t, storetest.Backend{
				Around: func(t *testing.T, run func(*testing.T)) {
					synctest.Test(t, func(t *testing.T) {
						t.Cleanup(func() { pass(time.Minute) }) // go-redis dials in the background for a while
						srv = embedded.Start(t)
						var err error
						if clock, err = embedded.NewClock(srv); err != nil {
							t.Fatal(err)
						}
						if !shows.IsZero() {
							clock.Show(shows)
						}
						run(t)
					})
				},
				Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
					rdb := srv.Client(func(o *redis.Options) { o.ClientName = "suite" })
					tb.Cleanup(func() { rdb.Close() })
					return open(tb, rdb, config)
				},
				Left: func(_ testing.TB, prefix string) []string { clock.Tick(); return locks(srv.Redis.Keys(), prefix) },
			})
		})
	}
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
