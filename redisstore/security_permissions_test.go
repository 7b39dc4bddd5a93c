package redisstore_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// Trap 47: the smallest user, command by command.
func TestPermissionsOneByOne(t *testing.T) {
	t.Parallel()
	permissions.Run(t, "refused without it", true, func(t *testing.T) permissions.Realm { return realm(redisserver.Start(t)) })
}

// The same on a cluster.
func TestPermissionsCluster(t *testing.T) {
	long(t)
	t.Parallel()
	rig := calm(t)
	realm := func() permissions.Realm {
		r := permissions.Realm{Store: func(tb testing.TB, user, password string) (store.Store, error) {
			rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), DialerRetries: 1, Username: user, Password: password})
			tb.Cleanup(func() { rdb.Close() })
			return redisstore.New(rdb), nil
		}}
		for _, srv := range rig.Masters() {
			r.Servers = append(r.Servers, srv.Do)
		}
		for _, srv := range rig.Replicas() {
			r.Replicas = append(r.Replicas, srv.Do)
		}
		return r
	}
	permissions.Run(t, "on a cluster", false, func(*testing.T) permissions.Realm { return realm() })
	permissions.Sometimes(t, realm(), rig.Send)
}

// realm is one server whose users' permissions are tried.
func realm(srv *redisserver.Server) permissions.Realm {
	return permissions.Realm{
		Servers: []func(...any) (any, error){srv.Do},
		Store: func(tb testing.TB, user, password string) (store.Store, error) {
			rdb := redis.NewClient(&redis.Options{Addr: srv.Addr(), Username: user, Password: password})
			tb.Cleanup(func() { rdb.Close() })
			return redisstore.New(rdb), nil
		},
	}
}
