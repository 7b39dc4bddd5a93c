package valkeystore_test

import (
	"os"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/testing/adaptertest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/valkeystore"
)

// TestMain fails when a goroutine is left behind.
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// adapter makes stores on clients of valkey-go, as the tests of rueidisstore do.
func adapter(tb testing.TB, c adaptertest.Client) (store.Store, error) {
	opt := valkey.ClientOption{InitAddress: c.Addresses, Username: c.User, Password: c.Password}
	opt.Sentinel.MasterSet = c.Master
	if c.Cluster {
		opt.InitAddress = c.Addresses[:1]
	}
	if c.User != "" {
		opt.DisableCache, opt.ForceSingleClient = true, !c.Cluster && c.Master == ""
	}
	client, err := valkey.NewClient(opt)
	if err != nil {
		return nil, err
	}
	tb.Cleanup(client.Close)
	return valkeystore.New(client), nil
}

func TestConformance(t *testing.T)         { adaptertest.Conformance(t, adapter) }
func TestSentinelConformance(t *testing.T) { adaptertest.SentinelConformance(t, adapter) }
func TestClusterConformance(t *testing.T)  { adaptertest.ClusterConformance(t, adapter) }
func TestQuorumConformance(t *testing.T)   { adaptertest.QuorumConformance(t, adapter) }
func TestSeam(t *testing.T)                { adaptertest.Seam(t, adapter) }
func TestSentinelSeam(t *testing.T)        { adaptertest.SentinelSeam(t, adapter) }
func TestClusterSeam(t *testing.T)         { adaptertest.ClusterSeam(t, adapter) }
func TestClusterNodes(t *testing.T)        { adaptertest.ClusterNodes(t, adapter) }
func TestSentOnceBroken(t *testing.T)      { adaptertest.SentOnce(t, adapter) }
func TestPermissionsOneByOne(t *testing.T) { adaptertest.Permissions(t, adapter) }
func TestUnderFIPS(t *testing.T)           { adaptertest.FIPS(t, adapter) }

func TestClusterPermissions(t *testing.T) {
	adaptertest.ClusterPermissions(t, adapter, "cluster|slots", "cluster|shards")
}
