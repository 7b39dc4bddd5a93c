package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

func TestSeam(t *testing.T) {
	srv := redisserver.Start(t)
	at := func(tb testing.TB, opt *redis.Options) store.Store {
		rdb := redis.NewClient(opt)
		tb.Cleanup(func() { rdb.Close() })
		return redisstore.New(rdb)
	}
	storetest.Seam(t, storetest.SeamBackend{
		Open: func(tb testing.TB, user, password string) store.Store {
			return at(tb, &redis.Options{Addr: srv.Addr(), Username: user, Password: password})
		},
		Address: srv.Addr(),
		At:      func(tb testing.TB, address string) store.Store { return at(tb, &redis.Options{Addr: address}) },
	})
}

func TestSeamCluster(t *testing.T) {
	rig := calm(t)
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), Username: user, Password: password})
		tb.Cleanup(func() { rdb.Close() })
		return redisstore.New(rdb)
	}})
}

func TestSeamSentinel(t *testing.T) {
	long(t)
	rig := calmSentinel(t)
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: rig.Name(), SentinelAddrs: rig.Addrs(), Username: user, Password: password})
		tb.Cleanup(func() { rdb.Close() })
		return redisstore.New(rdb)
	}})
}
