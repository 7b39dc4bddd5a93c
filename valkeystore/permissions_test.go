// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/valkeystore"
)

// Trap 47: the smallest user, command by command.
func TestPermissionsOneByOne(t *testing.T) {
	long(t)
	permissions.Run(t, "refused without it", true, func(t *testing.T) permissions.Realm {
		srv := redisserver.Start(t)
		return permissions.Realm{Servers: operators(srv), Store: as(func(o *valkey.ClientOption) {
			o.InitAddress, o.ForceSingleClient = []string{srv.Addr()}, true
		})}
	})
}

// The same on a cluster.
func TestPermissionsCluster(t *testing.T) {
	long(t)
	rig := redisserver.StartCluster(t)
	rig.Patient()
	realm := permissions.Realm{Servers: operators(rig.Masters()...), Replicas: operators(rig.Replicas()...),
		Store: as(func(o *valkey.ClientOption) { o.InitAddress = rig.Addrs()[:1] })}
	permissions.Run(t, "on a cluster", false, func(*testing.T) permissions.Realm { return realm }, "cluster|slots", "cluster|shards")
	permissions.Sometimes(t, realm, rig.Send)

	t.Run("without cluster|slots", func(t *testing.T) { // the client takes the node for a server that is alone
		for _, srv := range rig.Servers() {
			do(t, srv, "ACL", "SETUSER", "few", "reset", "on", ">pw", "~*", "&*", "+@all", "-cluster|slots", "-cluster|shards")
		}
		store, err := as(func(o *valkey.ClientOption) { o.InitAddress = rig.Addrs()[:1] })(t, "few", "pw")
		if err != nil {
			t.Fatal(err)
		}
		c, err := holdfast.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		eventually(t, "an answer", func() bool {
			_, err = c.Mutex("{a}").TryLock(t.Context()) // at the third node
			return err == nil || strings.Contains(err.Error(), "+cluster|slots") || !errors.Is(err, holdfast.ErrUnavailable)
		})
		var failure *holdfast.StoreError
		if !errors.As(err, &failure) || failure.MayHaveApplied || !strings.Contains(err.Error(), "+cluster|slots") {
			t.Errorf("got %v", err)
		}
	})
}

func operators(servers ...*redisserver.Server) (do []func(...any) (any, error)) {
	for _, srv := range servers {
		do = append(do, srv.Do)
	}
	return do
}

// as makes stores for users.
func as(where func(*valkey.ClientOption)) func(testing.TB, string, string) (store.Store, error) {
	return func(tb testing.TB, user, password string) (store.Store, error) {
		opt := valkey.ClientOption{Username: user, Password: password, DisableCache: true}
		where(&opt)
		rdb, err := valkey.NewClient(opt)
		if err != nil {
			return nil, err
		}
		tb.Cleanup(rdb.Close)
		return valkeystore.New(rdb), nil
	}
}
