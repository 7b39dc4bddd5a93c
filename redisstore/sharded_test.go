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
)

// spublish sends to a sharded channel where its slot is served, and returns how many of that node
// heard it: -1 for an error.
func spublish(rig *redisserver.Cluster, channel, payload string) int64 {
	master := rig.Master(rig.Slot(channel))
	if master == nil {
		return -1
	}
	n, err := master.Do("SPUBLISH", channel, payload)
	if err != nil {
		return -1
	}
	return n.(int64)
}

// listeners are the connections with messages at the nodes that run.
func listeners(t *testing.T, rig *redisserver.Cluster) (n int) {
	for _, srv := range rig.Masters() {
		n += strings.Count(do(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string), "\n")
	}
	return n
}

// Trap 46: what a script says by SPUBLISH is heard where the keys' slot is served, and only there.
func TestSharded(t *testing.T) {
	rig := calm(t)
	if !shards(t, rig.Servers()[0]) {
		sub, s := subscription(t, clustered(t, rig))
		pubsubtest.Add(t, sub, "{m}1", "plain", "{m}2")
		for _, name := range []string{"{m}1", "plain", "{m}2"} {
			eventually(t, name+" without sharding", func() bool { do(t, rig.Servers()[1], "PUBLISH", name, "x"); return s.Heard(name + ":x") })
		}
		return
	}
	t.Run("messages", func(t *testing.T) {
		sub, s := subscription(t, clustered(t, rig))
		var names []string
		for i := range 300 {
			names = append(names, fmt.Sprintf("{%d}c", i))
		}
		pubsubtest.Add(t, sub, append(names, "plain", "{}empty")...)
		for _, name := range names {
			if n := spublish(rig, name, "x"); n != 1 {
				t.Fatalf("%s has %d listeners", name, n)
			}
		}
		for _, srv := range rig.Masters() {
			do(t, srv, "PUBLISH", "{1}c", "not sharded")
		}
		for _, name := range names {
			eventually(t, name, func() bool { return s.Heard(name + ":x") })
		}
		for _, srv := range rig.Masters() {
			eventually(t, "plain", func() bool { // from any node, if its link to that of the subscription is there
				do(t, srv, "PUBLISH", "plain", srv.Addr())
				do(t, srv, "PUBLISH", "{}empty", srv.Addr())
				return s.Heard("plain:"+srv.Addr()) && s.Heard("{}empty:"+srv.Addr())
			})
		}
		if n := listeners(t, rig); n != 4 { // one a node, and one for all that is not sharded
			t.Errorf("%d connections for 302 channels", n)
		}
		if s.Heard("{1}c:not sharded") || s.Heard("gap") {
			t.Error("heard what was not sharded, or of a gap")
		}
		for _, name := range names {
			if err := sub.Remove(t.Context(), name); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it is given up", func() bool { return spublish(rig, name, "y") == 0 })
		}
		pubsubtest.Add(t, sub, names[0])
		if n := spublish(rig, names[0], "z"); n != 1 {
			t.Errorf("%d listeners", n)
		}
	})
	t.Run("a slot moves", func(t *testing.T) {
		sub, s := subscription(t, clustered(t, rig))
		pubsubtest.Add(t, sub, "{m}1", "{m}2", "{other}")
		slot := rig.Slot("{m}")
		for round, to := range others(rig, slot) {
			began := time.Now()
			rig.Move(to, slot)
			eventually(t, "a gap", func() bool { return s.Count("gap") > round })
			t.Logf("a gap after %v", time.Since(began))
			for _, name := range []string{"{m}1", "{m}2"} {
				eventually(t, "it is heard again", func() bool { return spublish(rig, name, fmt.Sprint(round)) == 1 })
				eventually(t, "the message", func() bool { return s.Heard(name + ":" + fmt.Sprint(round)) })
			}
		}
		pubsubtest.Add(t, sub, "{m}1", "{m}3")
		// A replica may have told the client of the slots as they were: what it subscribed it then
		// looks for once more.
		eventually(t, "all are heard", func() bool { return spublish(rig, "{m}3", "x")+spublish(rig, "{other}", "x") == 2 })
	})
	t.Run("a lost connection", func(t *testing.T) {
		sub, s := subscription(t, clustered(t, rig))
		pubsubtest.Add(t, sub, "{m}1", "{m}2", "{other}")
		for _, srv := range rig.Masters() {
			do(t, srv, "CLIENT", "KILL", "TYPE", "pubsub")
		}
		eventually(t, "all are back", func() bool {
			return spublish(rig, "{m}1", "x")+spublish(rig, "{m}2", "x")+spublish(rig, "{other}", "x") == 3
		})
		eventually(t, "a gap", func() bool { return s.Heard("gap") })
	})
	t.Run("denied", func(t *testing.T) {
		for _, srv := range rig.Servers() {
			do(t, srv, "ACL", "SETUSER", "few", "reset", "on", ">pw", "resetchannels", "-@all", "+ssubscribe", "+sunsubscribe", "+cluster|slots", "+cluster|nodes", "&*ok")
		}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), Username: "few", Password: "pw"})
		t.Cleanup(func() { rdb.Close() })
		sub, _ := subscription(t, rdb)
		pubsubtest.Add(t, sub, "{m}ok")
		if err := sub.Add(within(t, patience), "{m}no"); err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: rig.Addrs(), Protocol: 2}) // it has goroutines of its own with RESP3
		t.Cleanup(func() { rdb.Close() })
		store, spread := routed(rdb), make([]string, 100)
		for i := range spread {
			spread[i] = fmt.Sprint(i)
		}
		for range 3 { // go-redis has goroutines of its own once it is connected
			if r := store.Do(within(t, patience), set(spread...))[0]; r.Value != "OK" {
				t.Fatal(r)
			}
		}
		check := noLeak(t)
		sub, err := store.Subscribe(context.Background(), new(pubsubtest.Sink))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			pubsubtest.Add(t, sub, fmt.Sprintf("{%d}", i))
		}
		_ = sub.Close()
		check()
		if err := sub.Add(within(t, patience), "{a}"); err == nil {
			t.Error("added after Close")
		}
	})
}

// shards tells whether a server knows sharded channels.
func shards(t *testing.T, srv *redisserver.Server) bool {
	t.Helper()
	_, err := srv.Do("SPUBLISH", "{}nobody", "")
	return err == nil || !strings.Contains(err.Error(), "unknown command")
}

// others are the masters but that of a slot, and that one at last.
func others(rig *redisserver.Cluster, slot int) (masters []*redisserver.Server) {
	first := rig.Master(slot)
	for _, m := range rig.Masters() {
		if m != first {
			masters = append(masters, m)
		}
	}
	return append(masters, first)
}

// The node that serves a channel's slot dies: the channel is heard again where the replica took
// over, and the gap is told.
func TestShardedNodeDies(t *testing.T) {
	long(t)
	t.Parallel()
	rig := redisserver.StartCluster(t)
	if !shards(t, rig.Servers()[0]) {
		t.Skip("the server has no sharded channels")
	}
	for name, away := range map[string]func(int) *redisserver.Server{"killed": rig.KillMaster, "stopped": rig.StopMaster} {
		t.Run(name, func(t *testing.T) {
			sub, s := subscription(t, clustered(t, rig))
			pubsubtest.Add(t, sub, "{m}1", "{other}", "plain")
			slot := rig.Slot("{m}1")
			old := away(slot)
			master := rig.NextMaster(slot, old)
			elected := time.Now()
			eventually(t, "it is heard again", func() bool { n, _ := master.Do("SPUBLISH", "{m}1", "x"); return n == int64(1) })
			took := time.Since(elected)
			eventually(t, "a gap", func() bool { return s.Heard("gap") })
			t.Logf("heard again %v after the election", took.Round(time.Millisecond))
			eventually(t, "what is not sharded is heard", func() bool {
				_, _ = master.Do("PUBLISH", "plain", "y")
				return s.Heard("plain:y")
			})
			if name == "killed" {
				if err := old.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			old.Continue()
			rig.Settled()
		})
	}
}
