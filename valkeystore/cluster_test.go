// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// clusterClient is a client that was told of the first server.
func clusterClient(t *testing.T, servers []*redisserver.Server) valkey.Client {
	return client(t, servers[0].Addr())
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
	if err != nil || !top.Cluster || !top.ShardedPubSub || len(top.Nodes) != 2 {
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
	st := routed(clusterClient(t, servers))
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
	if took := time.Since(began); measured() && took > 8*time.Second { // valkey-go gives up after ten by itself
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
	eventually(t, "both messages", func() bool {
		for i, srv := range servers {
			do(t, srv, "PUBLISH", "a", fmt.Sprint(i)) // goes to all nodes, if they are connected at this moment
		}
		return s.Heard("a:0") && s.Heard("a:1")
	})
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
	eventually(t, "the message", func() bool {
		do(t, servers[0], "PUBLISH", "b", "2")
		return s.Heard("b:2")
	})
	if err := sub.Remove(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
}

func TestClusterUnreachable(t *testing.T) {
	servers, _ := redisserver.StartTwoMasters(t)
	rdb := clusterClient(t, servers)
	store := routed(rdb)
	for _, srv := range servers {
		srv.Kill()
	}
	if r := store.Do(within(t, time.Second), set("a", "b")); !r[0].Unsent || !r[1].Unsent {
		t.Errorf("got %+v", r)
	}
	if _, err := store.Describe(within(t, time.Second)); err == nil {
		t.Error("described")
	}
	rdb.Close()
	if r := store.Do(within(t, time.Second), set("a", "b")); !r[0].Unsent || !r[1].Unsent {
		t.Errorf("got %+v", r)
	}
}

// A node that is there since a moment ago, and that neither the client nor the store has heard of,
// takes a slot over.
func TestClusterNewNode(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	st, ctx := routed(clusterClient(t, servers)), within(t, 30*time.Second)
	key := "{a}" // slot 15495, at the second
	if r := st.Do(ctx, set(key))[0]; r.Value != "OK" {
		t.Fatal(r)
	}
	added := redisserver.Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0")
	do(t, added, "CLUSTER", "MEET", "127.0.0.1", servers[1].Port())
	id := do(t, added, "CLUSTER", "MYID").(string)
	for _, srv := range append(servers, added) {
		eventually(t, "all know each other", func() bool {
			known := do(t, srv, "CLUSTER", "NODES").(string)
			return strings.Count(known, " connected") == 3 && !strings.Contains(known, "handshake") && strings.Contains(known, id) &&
				strings.Contains(do(t, srv, "CLUSTER", "INFO").(string), "cluster_state:ok")
		})
	}
	slot := do(t, added, "CLUSTER", "KEYSLOT", key)
	do(t, added, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
	do(t, servers[1], "CLUSTER", "SETSLOT", slot, "MIGRATING", id)
	reqs := set("{a}new", "{a}newer")
	reqs[1].Replicas, reqs[1].ReplicasTimeout = 1, 1
	if r := st.Do(ctx, reqs); r[0].Value != "OK" || r[1].Value != "OK" {
		t.Fatalf("got %+v", r)
	}
	if n := do(t, added, "CLUSTER", "COUNTKEYSINSLOT", slot); n != int64(2) {
		t.Errorf("%v keys at the new node", n)
	}
	do(t, servers[1], "MIGRATE", "127.0.0.1", added.Port(), key, 0, 5000)
	do(t, added, "CLUSTER", "SETSLOT", slot, "NODE", id)
	do(t, servers[1], "CLUSTER", "SETSLOT", slot, "NODE", id)
	if r := st.Do(ctx, set("{a}newest"))[0]; r.Value != "OK" {
		t.Fatal(r)
	}
	eventually(t, "the new node is described", func() bool {
		top, err := st.Describe(ctx)
		return err == nil && len(top.Nodes) == 3
	})
	if r := st.Do(ctx, []wire.Request{{Args: []any{"CLUSTER", "MYID"}, Node: id}})[0]; r.Value != id {
		t.Errorf("got %+v", r)
	}
}

// A WAIT at the node that sends a request on says nothing of the node that carries it out.
func TestClusterReplicas(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	replica := redisserver.Start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--repl-diskless-sync-delay", "0")
	do(t, replica, "CLUSTER", "MEET", "127.0.0.1", servers[1].Port())
	eventually(t, "the replica knows its master", func() bool {
		_, err := replica.Do("CLUSTER", "REPLICATE", ids[1])
		return err == nil
	})
	eventually(t, "the replica is there", func() bool {
		return strings.Contains(do(t, servers[1], "INFO", "replication").(string), "state=online")
	})
	store, ctx := routed(clusterClient(t, servers)), within(t, 30*time.Second)
	confirmed := func(key string, timeout int64) int {
		t.Helper()
		reqs := set(key)
		reqs[0].Replicas, reqs[0].ReplicasTimeout = 1, timeout
		r := store.Do(ctx, reqs)[0]
		if r.Value != "OK" {
			t.Fatalf("got %+v", r)
		}
		return r.Replicas
	}
	if a, b := confirmed("{a}", 5000), confirmed("{b}", 300); a != 1 || b != 0 {
		t.Fatalf("%d and %d confirmed, only the master of {a} has a replica", a, b)
	}
	slot := do(t, servers[0], "CLUSTER", "KEYSLOT", "{a}")
	do(t, servers[1], "DEL", "{a}")
	do(t, servers[0], "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[1])
	do(t, servers[1], "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[0])
	if n := confirmed("{a}asked", 300); n != 0 {
		t.Errorf("ASK: %d confirmed at a master without replicas", n)
	}
	do(t, servers[0], "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
	do(t, servers[1], "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
	if n := confirmed("{a}moved", 300); n != 0 {
		t.Errorf("MOVED: %d confirmed at a master without replicas", n)
	}
}

// Trap 37: a node that is gone is left at once for the one that took its slots over.
func TestClusterNodeGone(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	st, ctx := routed(clusterClient(t, servers)), within(t, 30*time.Second)
	if r := st.Do(ctx, []wire.Request{{Key: "{a}", Args: []any{"PING"}}})[0]; r.Value != "PONG" { // {a} is at the second
		t.Fatal(r)
	}
	servers[1].Kill()
	eventually(t, "the connection is known to be lost", func() bool {
		r := st.Do(ctx, []wire.Request{{Key: "{a}", Args: []any{"PING"}}})[0]
		return r.Unsent
	})
	slot := do(t, servers[0], "CLUSTER", "KEYSLOT", "{a}")
	do(t, servers[0], "CONFIG", "SET", "cluster-require-full-coverage", "no")
	do(t, servers[0], "CLUSTER", "SETSLOT", slot, "NODE", ids[0])
	if r := st.Do(ctx, set("{a}"))[0]; r.Value != "OK" {
		t.Errorf("got %+v", r)
	}
}
