// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"maps"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
	"github.com/holdfast-go/holdfast/valkeystore"
)

// login is a change of a client: it speaks as a user. Without permissions it may not ask what it
// otherwise asks first.
func login(user, password string) func(*valkey.ClientOption) {
	return func(o *valkey.ClientOption) {
		if user != "" {
			o.Username, o.Password, o.DisableCache = user, password, true
		}
	}
}

func TestSeam(t *testing.T) {
	clients := maps.Clone(protocols)
	clients["pipelining"] = func(o *valkey.ClientOption) { o.AlwaysPipelining = true }
	for name, protocol := range clients {
		t.Run(name, func(t *testing.T) {
			srv := redisserver.Start(t)
			single := func(o *valkey.ClientOption) { o.ForceSingleClient = true }
			storetest.Seam(t, storetest.SeamBackend{
				Open: func(tb testing.TB, user, password string) store.Store {
					return valkeystore.New(client(tb, srv.Addr(), protocol, single, login(user, password)))
				},
				Address: srv.Addr(),
				At: func(tb testing.TB, address string) store.Store {
					return valkeystore.New(client(tb, address, protocol, single))
				},
			})
		})
	}
}

func TestSeamCluster(t *testing.T) {
	servers, _ := redisserver.StartTwoMasters(t)
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		return valkeystore.New(client(tb, servers[0].Addr(), login(user, password)))
	}})
}

func TestSeamSentinel(t *testing.T) {
	long(t)
	rig := redisserver.StartSentinel(t)
	rig.Patient()
	behind := func(o *valkey.ClientOption) { o.InitAddress, o.Sentinel.MasterSet = rig.Addrs(), rig.Name() }
	storetest.Seam(t, storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		return valkeystore.New(client(tb, rig.Addrs()[0], behind, login(user, password)))
	}})
}
