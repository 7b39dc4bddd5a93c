package redisstore_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) {
	redis.SetLogger(silent{}) // go-redis logs every connection that fails, and here many do
	os.Exit(leak.Main(m))
}

type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func options(c adaptertest.Client) *redis.UniversalOptions {
	return &redis.UniversalOptions{
		Addrs: c.Addresses, MasterName: c.Master, IsClusterMode: c.Cluster, Username: c.User, Password: c.Password,
		DialerRetries: 1, // as docs/topologies.md advises for a cluster
	}
}

// adapter makes stores on clients whose options are changed.
func adapter(change func(*redis.UniversalOptions)) adaptertest.Adapter {
	return func(tb testing.TB, c adaptertest.Client) (store.Store, error) {
		opt := options(c)
		change(opt)
		rdb := redis.NewUniversalClient(opt)
		tb.Cleanup(func() { _ = rdb.Close() })
		return redisstore.New(rdb), nil
	}
}

var plain = adapter(func(*redis.UniversalOptions) {})

func TestConformance(t *testing.T) {
	t.Run("redis-server", func(t *testing.T) { adaptertest.Conformance(t, plain) })
}

func TestSentinelConformance(t *testing.T) { adaptertest.SentinelConformance(t, plain) }
func TestClusterConformance(t *testing.T)  { adaptertest.ClusterConformance(t, plain) }
func TestQuorumConformance(t *testing.T)   { adaptertest.QuorumConformance(t, plain) }
func TestPermissionsOneByOne(t *testing.T) { adaptertest.Permissions(t, plain) }
func TestClusterPermissions(t *testing.T)  { adaptertest.ClusterPermissions(t, plain) }
func TestClusterSeam(t *testing.T)         { adaptertest.ClusterSeam(t, plain) }
func TestClusterNodes(t *testing.T)        { adaptertest.ClusterNodes(t, plain) }
func TestSentinelSeam(t *testing.T)        { adaptertest.SentinelSeam(t, plain) }
func TestUnderFIPS(t *testing.T)           { adaptertest.FIPS(t, plain) }
func TestSentOnceBroken(t *testing.T)      { adaptertest.SentOnce(t, plain) }

// The contracts of a store hold whatever the protocol and the client's own time-outs are.
func TestSeam(t *testing.T) {
	t.Run("RESP3", func(t *testing.T) { adaptertest.Seam(t, plain) })
	for name, change := range map[string]func(*redis.UniversalOptions){
		"RESP2":                 func(o *redis.UniversalOptions) { o.Protocol = 2 },
		"ContextTimeoutEnabled": func(o *redis.UniversalOptions) { o.ContextTimeoutEnabled = true },
		"no timeouts":           func(o *redis.UniversalOptions) { o.ReadTimeout, o.WriteTimeout = -1, -1 },
		"no deadlines": func(o *redis.UniversalOptions) {
			o.ReadTimeout, o.WriteTimeout, o.ContextTimeoutEnabled = -2, -2, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			adaptertest.NeedProof(t)
			adaptertest.Seam(t, adapter(change))
		})
	}
}

func TestLateAnswer(t *testing.T) {
	adaptertest.LateAnswer(t, adapter(func(o *redis.UniversalOptions) { o.ReadTimeout = time.Second }))
}
