package rueidisstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/internal/testing/pubsubtest"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// spublish sends to a sharded channel at the node that takes it, and returns how many heard it: -1
// where none takes it.
func spublish(servers []*redisserver.Server, channel, payload string) int64 {
	for _, srv := range servers {
		if n, err := srv.Do("SPUBLISH", channel, payload); err == nil {
			return n.(int64)
		}
	}
	return -1
}

// move gives a slot to another node, whose claim is the newest from the start: else the other may
// take the slot back on the way.
func move(t *testing.T, servers []*redisserver.Server, ids []string, slot any, to int) {
	t.Helper()
	do(t, servers[to], "CLUSTER", "BUMPEPOCH")
	for _, i := range []int{to, 1 - to} {
		do(t, servers[i], "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
	}
}

// Trap 46: what a script says by SPUBLISH is heard where the keys' slot is served, and only there.
func TestSharded(t *testing.T) {
	servers, ids := redisserver.StartTwoMasters(t)
	if spublish(servers, "{a}", "") != 0 {
		t.Skip("the server has no sharded channels")
	}
	for name, protocol := range protocols {
		t.Run("messages, "+name, func(t *testing.T) {
			sub, s := subscription(t, client(t, servers[0].Addr(), protocol))
			var names []string
			for i := range 200 {
				names = append(names, fmt.Sprintf("{%d}%s", i, name)) // others than those of the connections that still close
			}
			pubsubtest.Add(t, sub, append(names, "plain", "{}empty")...)
			for _, name := range names {
				if n := spublish(servers, name, "x"); n != 1 {
					t.Fatalf("%s has %d listeners", name, n)
				}
			}
			for _, srv := range servers {
				do(t, srv, "PUBLISH", names[1], "not sharded")
			}
			eventually(t, "one connection a node for 200 channels, and one for all that is not sharded", func() bool {
				connections := 0
				for _, srv := range servers {
					connections += strings.Count(do(t, srv, "CLIENT", "LIST", "TYPE", "pubsub").(string), "\n")
				}
				return connections == 3
			})
			for _, said := range []string{"plain:0", "plain:1", "{}empty:0", "{}empty:1", names[0] + ":x", names[199] + ":x"} {
				eventually(t, said, func() bool {
					for i, srv := range servers { // goes to all nodes, if they are connected at this moment
						do(t, srv, "PUBLISH", "plain", i)
						do(t, srv, "PUBLISH", "{}empty", i)
					}
					return s.Heard(said)
				})
			}
			if s.Heard(names[1]+":not sharded") || s.Heard("gap") {
				t.Error("heard what was not sharded, or of a gap")
			}
			for _, name := range names {
				if err := sub.Remove(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				eventually(t, "it is given up", func() bool { return spublish(servers, name, "y") == 0 })
			}
			pubsubtest.Add(t, sub, names[0])
			if n := spublish(servers, names[0], "z"); n != 1 {
				t.Errorf("%d listeners", n)
			}
		})
		t.Run("a slot moves, "+name, func(t *testing.T) {
			sub, s := subscription(t, client(t, servers[0].Addr(), protocol))
			pubsubtest.Add(t, sub, "{a}1", "{a}2", "{b}") // {a} is at the second
			slot := do(t, servers[0], "CLUSTER", "KEYSLOT", "{a}")
			for round, to := range []int{0, 1} {
				began := time.Now()
				move(t, servers, ids, slot, to)
				eventually(t, "a gap", func() bool { return s.Count("gap") > round })
				t.Logf("a gap after %v", time.Since(began))
				for _, name := range []string{"{a}1", "{a}2"} {
					eventually(t, "it is heard again", func() bool { return spublish(servers[to:to+1], name, fmt.Sprint(round)) == 1 })
					eventually(t, "the message", func() bool { return s.Heard(name + ":" + fmt.Sprint(round)) })
				}
			}
			pubsubtest.Add(t, sub, "{a}1", "{a}3")
			if spublish(servers, "{a}3", "x") != 1 || spublish(servers, "{b}", "x") != 1 {
				t.Error("not heard")
			}
		})
	}
	t.Run("a lost connection", func(t *testing.T) {
		sub, s := subscription(t, clusterClient(t, servers))
		pubsubtest.Add(t, sub, "{a}1", "{a}2", "{b}")
		for _, srv := range servers {
			do(t, srv, "CLIENT", "KILL", "TYPE", "pubsub")
		}
		eventually(t, "all are back", func() bool {
			return spublish(servers, "{a}1", "x")+spublish(servers, "{a}2", "x")+spublish(servers, "{b}", "x") == 3
		})
		eventually(t, "a gap", func() bool { return s.Heard("gap") })
	})
	t.Run("denied", func(t *testing.T) {
		for _, srv := range servers {
			do(t, srv, "ACL", "SETUSER", "few", "reset", "on", ">pw", "resetchannels", "-@all", "+ssubscribe", "+sunsubscribe", "+cluster|slots", "&*ok")
		}
		sub, _ := subscription(t, client(t, servers[0].Addr(), func(o *rueidis.ClientOption) { o.Username, o.Password, o.DisableCache = "few", "pw", true }))
		pubsubtest.Add(t, sub, "{a}ok")
		if err := sub.Add(within(t, 10*time.Second), "{a}no"); err == nil || !strings.HasPrefix(err.Error(), "NOPERM ") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		store := routed(clusterClient(t, servers))
		for _, r := range store.Do(within(t, 10*time.Second), set("{a}", "{b}")) {
			if r.Value != "OK" {
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
		if err := sub.Add(within(t, time.Second), "{a}"); err == nil {
			t.Error("added after Close")
		}
	})
}
