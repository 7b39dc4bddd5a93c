package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/storetest"
)

// calm is a cluster in which none is replaced, and no link between nodes given up, because it stood
// still for a moment.
func calm(t *testing.T) *redisserver.Cluster {
	t.Helper()
	rig := redisserver.StartCluster(t)
	rig.Patient()
	return rig
}

// calmSentinel is a master that is not replaced because it stood still for a moment.
func calmSentinel(t *testing.T) *redisserver.Sentinel {
	t.Helper()
	rig := redisserver.StartSentinel(t)
	rig.Patient()
	return rig
}

// The same suite as on a single server, with nothing but another client.
func TestConformanceSentinel(t *testing.T) {
	long(t)
	rig := calmSentinel(t)
	storetest.Run(t, storetest.Backend{
		Parallel: 4,
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			return open(tb, failover(tb, rig), config)
		},
		Left: func(tb testing.TB, prefix string) []string { return left(tb, prefix, rig.Master()) },
	})
}

func TestConformanceCluster(t *testing.T) {
	long(t)
	rig := calm(t)
	storetest.Run(t, storetest.Backend{
		Parallel: 4,
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			return open(tb, clustered(tb, rig), config)
		},
		Left: func(tb testing.TB, prefix string) []string { return left(tb, prefix, rig.Masters()...) },
	})
}

// failover is a client of the master that the sentinels name.
func failover(tb testing.TB, rig *redisserver.Sentinel) *redis.Client {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: rig.Name(), SentinelAddrs: rig.Addrs()})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// clustered is a client of a cluster.
func clustered(tb testing.TB, rig *redisserver.Cluster) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), DialerRetries: 1}) // as docs/topologies.md advises
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}
