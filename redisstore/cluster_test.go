package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func do(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args[:2], err)
	}
	return v
}

func clusterClient(t *testing.T, servers []*redisserver.Server) *redis.ClusterClient {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{servers[0].Addr()}})
	t.Cleanup(func() { rdb.Close() })
	return rdb
}

func set(keys ...string) (reqs []wire.Request) {
	for _, k := range keys {
		reqs = append(reqs, wire.Request{Key: k, Args: []any{"SET", k, "v"}})
	}
	return reqs
}

func TestClusterRoutes(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	st, ctx := routed(clusterClient(t, servers)), within(t, 20*time.Second)
	var keys []string
	for i := range 50 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	for i, r := range st.Do(ctx, set(keys...)) {
		if r.Value != "OK" {
			t.Fatalf("%s: %+v", keys[i], r)
		}
	}
	if a, b := do(t, servers[0], "DBSIZE").(int64), do(t, servers[1], "DBSIZE").(int64); a == 0 || b == 0 || a+b != 50 {
		t.Errorf("%d and %d keys", a, b)
	}
	top, err := st.Describe(ctx)
	if err != nil || !top.Cluster || top.ShardedPubSub != shards(t, servers[0]) || len(top.Nodes) != 2 {
		t.Fatalf("got %+v, %v", top, err)
	}
	for _, n := range top.Nodes {
		r := st.Do(ctx, []wire.Request{{Args: []any{"CLUSTER", "MYID"}, Node: n.ID}})[0]
		if r.Value != n.ID || n.Role != "master" || n.Version == "" || len(n.Slots) != 1 || n.ID != ids[0] && n.ID != ids[1] {
			t.Errorf("node %+v says %+v", n, r)
		}
	}
	r := st.Do(ctx, []wire.Request{{Args: []any{"PING"}, Node: "elsewhere"}, {Args: []any{"PING"}}})
	if !r[0].Unsent || r[1].Value != "PONG" {
		t.Errorf("got %+v", r)
	}
}

func TestClusterFollowsSlots(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	store, ctx := routed(clusterClient(t, servers)), within(t, 20*time.Second)
	key := "{a}" // slot 15495, at the second
	slot := do(t, servers[0], "CLUSTER", "KEYSLOT", key)
	if r := store.Do(ctx, set(key, "other"))[0]; r.Value != "OK" {
		t.Fatal(r)
	}
	t.Run("ASK", func(t *testing.T) {
		do(t, servers[0], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
		do(t, servers[1], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[0])
		got := store.Do(ctx, set("{a}new", "{a}newer", "b"))
		if got[0].Value != "OK" || got[1].Value != "OK" || got[2].Value != "OK" {
			t.Fatalf("got %+v", got)
		}
		if n := do(t, servers[0], "CLUSTER", "COUNTKEYSINSLOT", slot); n != int64(2) {
			t.Errorf("%v keys at the importing node", n)
		}
	})
	t.Run("MOVED", func(t *testing.T) {
		do(t, servers[1], "MIGRATE", "127.0.0.1", servers[0].Port(), key, 0, 5000)
		do(t, servers[0], "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
		do(t, servers[1], "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
		if r := store.Do(ctx, set("{a}newest"))[0]; r.Value != "OK" {
			t.Fatal(r)
		}
	})
}

func TestClusterSentOnceAndBounded(t *testing.T) {
	servers, _ := redisserver.StartTwoMasters(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{servers[0].Addr()}, ReadTimeout: 30 * time.Second})
	defer rdb.Close()
	st := routed(rdb)
	keys := []string{"{a}", "{b}"} // one at each
	for _, r := range st.Do(within(t, 20*time.Second), set(keys...)) {
		if r.Value != "OK" {
			t.Fatal(r)
		}
	}
	servers[1].Stop()
	began := time.Now()
	incr := []wire.Request{{Key: "n{a}", Args: []any{"INCR", "n{a}"}}, {Key: "n{b}", Args: []any{"INCR", "n{b}"}}}
	got := st.Do(within(t, 3*time.Second), incr)
	if took := time.Since(began); took > patience { // the client's own timeout is longer
		t.Errorf("took %v", took)
	}
	if got[0].Err == nil || got[0].Unsent || got[1].Value != int64(1) {
		t.Errorf("got %+v", got)
	}
	servers[1].Continue()
	eventually(t, "the late request", func() bool { v, _ := servers[1].Do("GET", "n{a}"); return v != nil })
	if v := do(t, servers[1], "GET", "n{a}"); v != "1" {
		t.Errorf("carried out %v times", v)
	}
}

func TestClusterSubscription(t *testing.T) {
	servers, _ := redisserver.StartTwoMasters(t)
	sub, s := subscription(t, clusterClient(t, servers))
	pubsubtest.Add(t, sub, "a", "b")
	for i, srv := range servers {
		eventually(t, "the message", func() bool {
			do(t, srv, "PUBLISH", "a", fmt.Sprint(i)) // goes to all nodes, if their link is there
			return s.Heard(fmt.Sprint("a:", i))
		})
	}
	there, at := 0, servers[0]
	for _, srv := range servers { // counted first: who is cut off may come to the next
		if n := strings.Count(do(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string), "\n"); n > 0 {
			there, at = there+n, srv
		}
	}
	if there != 1 {
		t.Errorf("%d connections with messages", there)
	}
	do(t, at, "CLIENT", "KILL", "TYPE", "pubsub")
	eventually(t, "a gap", func() bool { return s.Heard("gap") })
	eventually(t, "the message", func() bool { do(t, servers[0], "PUBLISH", "b", "2"); return s.Heard("b:2") })
	if err := sub.Remove(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
}

func TestClusterUnreachable(t *testing.T) {
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, DialerRetries: 1})
	defer rdb.Close()
	store := routed(rdb)
	if r := store.Do(within(t, time.Second), set("a", "b")); !r[0].Unsent || !r[1].Unsent {
		t.Errorf("got %+v", r)
	}
	if _, err := store.Describe(within(t, time.Second)); err == nil {
		t.Error("described")
	}
}
