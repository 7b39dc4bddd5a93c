package rueidisstore_test

import (
	"maps"
	"testing"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

// login is a change of a client: it speaks as a user. Without permissions it may not ask what it
// otherwise asks first.
func login(user, password string) func(*rueidis.ClientOption) {
	return func(o *rueidis.ClientOption) {
		if user != "" {
			o.Username, o.Password, o.DisableCache = user, password, true
		}
	}
}

func TestSeam(t *testing.T) {
	clients := maps.Clone(protocols)
	clients["pipelining"] = func(o *rueidis.ClientOption) { o.AlwaysPipelining = true }
	for name, protocol := range clients {
		t.Run(name, func(t *testing.T) {
			srv := redisserver.Start(t)
			single := func(o *rueidis.ClientOption) { o.ForceSingleClient = true }
			storetest.Seam(t, storetest.SeamBackend{
				Open: func(tb testing.TB, user, password string) store.Store {
					return rueidisstore.New(client(tb, srv.Addr(), protocol, single, login(user, password)))
				},
				Address: srv.Addr(),
				At: func(tb testing.TB, address string) store.Store {
					return rueidisstore.New(client(tb, address, protocol, single))
				},
			})
		})
	}
}

func TestSeamCluster(t *testing.T) {
	servers, _ := redisserver.StartTwoMasters(t)
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		return rueidisstore.New(client(tb, servers[0].Addr(), login(user, password)))
	}})
}

func TestSeamSentinel(t *testing.T) {
	long(t)
	rig := redisserver.StartSentinel(t)
	rig.Patient()
	behind := func(o *rueidis.ClientOption) { o.InitAddress, o.Sentinel.MasterSet = rig.Addrs(), rig.Name() }
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		return rueidisstore.New(client(tb, rig.Addrs()[0], behind, login(user, password)))
	}})
}
