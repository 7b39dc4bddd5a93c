package topology_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// calm is a cluster that replaces no master and gives no link up because a node stood still for a
// moment.
func calm(t *testing.T) *redisserver.Cluster {
	t.Helper()
	rig := redisserver.StartCluster(t)
	rig.Patient()
	return rig
}

// failover is a client of the master that the sentinels name.
func failover(tb testing.TB, rig *redisserver.Sentinel) *redis.Client {
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: rig.Name(), SentinelAddrs: rig.Addrs()})
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// clustered is a client of a cluster.
func clustered(tb testing.TB, rig *redisserver.Cluster) *redis.ClusterClient {
	return cluster(tb, rig.Addrs()...)
}

// cluster is a client of the cluster that nodes belong to.
func cluster(tb testing.TB, addrs ...string) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, DialerRetries: 1}) // as docs/topologies.md advises
	tb.Cleanup(func() { rdb.Close() })
	return rdb
}

// listeners is the number of connections for messages at the masters that run.
func listeners(t *testing.T, rig *redisserver.Cluster) (n int) {
	for _, srv := range rig.Masters() {
		n += strings.Count(harness.Must(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string), "\n")
	}
	return n
}
