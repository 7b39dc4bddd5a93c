package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

// masters are independent servers, each of which may forget.
type masters []*redisserver.Server

func startMasters(t *testing.T, n int) masters {
	t.Helper()
	all := make(masters, n)
	for i := range all {
		all[i] = redisserver.Start(t)
	}
	return all
}

// open makes a client on all of them.
func (m masters) open(tb testing.TB, config *holdfast.Config) *holdfast.Client {
	tb.Helper()
	stores := make([]store.Store, len(m))
	for i, srv := range m {
		rdb := redis.NewClient(&redis.Options{Addr: srv.Addr()})
		tb.Cleanup(func() { rdb.Close() })
		stores[i] = redisstore.New(rdb)
	}
	client, err := holdfast.NewQuorum(stores, config)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}

// left are the keys under a prefix at any of them, but for what a node knows of itself.
func (m masters) left(tb testing.TB, prefix string) (keys []string) {
	for _, srv := range m {
		answer, err := srv.Do("KEYS", prefix+"*")
		if err != nil {
			tb.Fatal(err)
		}
		for _, key := range answer.([]any) {
			if key := key.(string); !strings.HasSuffix(key, ":{%quorum}") {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

func TestQuorumConformance(t *testing.T) {
	long(t)
	for name, n := range map[string]int{"three masters": 3, "five masters": 5} {
		t.Run(name, func(t *testing.T) {
			if n > 3 {
				long(t)
			}
			all := startMasters(t, n)
			storetest.Run(t, storetest.Backend{
				Parallel: 4,
				Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
					config.TrustNewNodes = true
					return all.open(tb, config)
				},
				Left:         all.left,
				NoQueue:      true,
				NoSemaphores: true,
				NoLatches:    true,
			})
		})
	}
}
