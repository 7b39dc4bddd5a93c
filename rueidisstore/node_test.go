package rueidisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/rueidisstore"
)

// An error names the server that was asked: of a cluster the one that serves the name, of sentinels
// none, as the master may be another by then.
func TestErrorsNameTheServer(t *testing.T) {
	asked := func(t *testing.T, rdb rueidis.Client, name string) *holdfast.StoreError {
		t.Helper()
		client, err := holdfast.New(rueidisstore.New(rdb), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var failed *holdfast.StoreError
		if _, err := client.Mutex(name).TryLock(within(t, 10*time.Second)); !errors.As(err, &failed) {
			t.Fatalf("got %v", err)
		}
		want := fmt.Sprintf("holdfast: lock %q", name)
		if failed.Node != "" {
			want += " at " + failed.Node
		}
		if !strings.HasPrefix(failed.Error(), want+": ") {
			t.Errorf("got %v, want %s", failed, want)
		}
		return failed
	}
	foreign := func(t *testing.T, srv *redisserver.Server, name string) {
		t.Helper()
		do(t, srv, "RPUSH", "holdfast:{"+name+"}", "x")
	}
	t.Run("one server", func(t *testing.T) {
		srv := redisserver.Start(t)
		foreign(t, srv, "n")
		rdb := client(t, srv.Addr())
		if failed := asked(t, rdb, "n"); failed.Kind != holdfast.StoreForeign || failed.Node != srv.Addr() {
			t.Errorf("got %+v", failed)
		}
		srv.Kill()
		if failed := asked(t, rdb, "n"); failed.Kind != holdfast.StoreUnreachable || failed.Node != srv.Addr() {
			t.Errorf("got %+v", failed)
		}
	})
	t.Run("cluster", func(t *testing.T) {
		servers, _ := redisserver.StartTwoMasters(t)
		rdb, met := clusterClient(t, servers), map[string]bool{}
		for i := range 6 {
			name := fmt.Sprint("n", i)
			srv := servers[0]
			if _, err := srv.Do("RPUSH", "holdfast:{"+name+"}", "x"); err != nil { // MOVED
				srv = servers[1]
				foreign(t, srv, name)
			}
			if failed := asked(t, rdb, name); failed.Kind != holdfast.StoreForeign || failed.Node != srv.Addr() {
				t.Errorf("got %+v, want %s", failed, srv.Addr())
			}
			met[srv.Addr()] = true
		}
		if len(met) < 2 {
			t.Errorf("only %v was asked", met)
		}
	})
	t.Run("sentinel", func(t *testing.T) {
		rig := redisserver.StartSentinel(t)
		var master *redisserver.Server
		eventually(t, "a master", func() bool { master = rig.Master(); return master != nil })
		foreign(t, master, "n")
		rdb := client(t, rig.Addrs()[0], func(o *rueidis.ClientOption) { o.InitAddress, o.Sentinel.MasterSet = rig.Addrs(), rig.Name() })
		if failed := asked(t, rdb, "n"); failed.Kind != holdfast.StoreForeign || failed.Node != "" {
			t.Errorf("got %+v", failed)
		}
	})
}

// A closed client has no connections. The one that it gives instead has the error of the last
// attempt to connect, for ever.
func TestRenewOfAClosedClientEnds(t *testing.T) {
	srv := redisserver.Start(t)
	rdb := client(t, srv.Addr())
	s := rueidisstore.New(rdb)
	srv.Kill()
	s.Renew(srv.Addr()) // which leaves such an error
	rdb.Close()
	ended := make(chan struct{})
	go func() { defer close(ended); s.Renew(srv.Addr()) }()
	select {
	case <-ended:
	case <-within(t, 20*time.Second).Done():
		t.Error("the renewal goes on")
	}
}
