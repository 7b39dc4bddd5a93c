package rueidisstore_test

import (
	"os"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/store"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// adapter makes stores on clients whose options are changed.
func adapter(change func(*rueidis.ClientOption)) adaptertest.Adapter {
	return func(tb testing.TB, c adaptertest.Client) (store.Store, error) {
		opt := rueidis.ClientOption{InitAddress: c.Addresses, Username: c.User, Password: c.Password}
		opt.Sentinel.MasterSet = c.Master
		switch {
		case c.Cluster:
			// One address: of several, the client dials all and looks at the slots when the first
			// has answered. A connection that comes during the look leaves a goroutine that sleeps
			// for 5s, and the end of each case would wait for it.
			opt.InitAddress = c.Addresses[:1]
		case c.User != "":
			opt.ForceSingleClient = c.Master == "" // it may not ask whether this is a cluster
		}
		opt.DisableCache = c.User != "" // nor for client-side caching
		change(&opt)
		client, err := rueidis.NewClient(opt)
		if err != nil {
			return nil, err
		}
		tb.Cleanup(client.Close)
		return rueidisstore.New(client), nil
	}
}

var (
	plain = adapter(func(*rueidis.ClientOption) {})
	resp2 = adapter(func(o *rueidis.ClientOption) { o.AlwaysRESP2, o.DisableCache = true, true })
)

func TestConformance(t *testing.T) {
	t.Run("RESP3", func(t *testing.T) { adaptertest.Conformance(t, plain) })
	t.Run("RESP2", func(t *testing.T) {
		adaptertest.NeedProof(t)
		adaptertest.Conformance(t, resp2)
	})
}

func TestSentinelConformance(t *testing.T) { adaptertest.SentinelConformance(t, plain) }
func TestClusterConformance(t *testing.T)  { adaptertest.ClusterConformance(t, plain) }
func TestQuorumConformance(t *testing.T)   { adaptertest.QuorumConformance(t, plain) }
func TestClusterSeam(t *testing.T)         { adaptertest.ClusterSeam(t, plain) }
func TestClusterNodes(t *testing.T)        { adaptertest.ClusterNodes(t, plain) }
func TestSentinelSeam(t *testing.T)        { adaptertest.SentinelSeam(t, plain) }
func TestPermissionsOneByOne(t *testing.T) { adaptertest.Permissions(t, plain) }
func TestUnderFIPS(t *testing.T)           { adaptertest.FIPS(t, plain) }

func TestClusterPermissions(t *testing.T) {
	adaptertest.ClusterPermissions(t, plain, "cluster|slots", "cluster|shards")
}

// The contracts of a store hold whatever the protocol and the use of connections are.
func TestSeam(t *testing.T) {
	t.Run("RESP3", func(t *testing.T) { adaptertest.Seam(t, plain) })
	for name, adapter := range map[string]adaptertest.Adapter{
		"RESP2":           resp2,
		"no pipelining":   adapter(func(o *rueidis.ClientOption) { o.DisableAutoPipelining = true }),
		"pipelining":      adapter(func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }),
		"short lifetimes": adapter(func(o *rueidis.ClientOption) { o.ConnLifetime = 20 * time.Millisecond }),
	} {
		t.Run(name, func(t *testing.T) {
			adaptertest.NeedProof(t)
			adaptertest.Seam(t, adapter)
		})
	}
}

func TestSentOnceBroken(t *testing.T) {
	t.Run("default", func(t *testing.T) { adaptertest.SentOnce(t, plain) })
	t.Run("short lifetimes", func(t *testing.T) {
		adaptertest.SentOnce(t, adapter(func(o *rueidis.ClientOption) { o.ConnLifetime = 5 * time.Millisecond }))
	})
}

func TestLateAnswer(t *testing.T) {
	adaptertest.LateAnswer(t, adapter(func(o *rueidis.ClientOption) { o.ConnWriteTimeout = time.Second }))
}
