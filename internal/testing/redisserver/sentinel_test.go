package redisserver_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// long skips what takes long, and what kills or stops a server.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("takes long: only with HOLDFAST_PROOF=1")
	}
}

func TestReplicated(t *testing.T) {
	long(t)
	master, replicas := redisserver.StartReplicated(t, 2)
	if _, err := master.Do("SET", "k", "v"); err != nil {
		t.Fatal(err)
	}
	if n, err := master.Do("WAIT", 2, 5000); n != int64(2) {
		t.Fatalf("%v replicas have it, %v", n, err)
	}
	for _, r := range replicas {
		if v, err := r.Do("GET", "k"); v != "v" {
			t.Errorf("a replica has %v, %v", v, err)
		}
	}
}

func TestSentinelReplacesItsMaster(t *testing.T) {
	long(t)
	rig := redisserver.StartSentinel(t)
	rig.Settled() // the first master may have been replaced: a machine may stand still for the second that it has
	if len(rig.Addrs()) != 3 || len(rig.Servers()) != 3 || !slices.Contains(rig.Servers(), rig.Master()) {
		t.Fatalf("sentinels %v, servers %v, master %v", rig.Addrs(), rig.Servers(), rig.Master())
	}
	for name, away := range map[string]func() *redisserver.Server{"killed": rig.KillMaster, "stopped": rig.StopMaster} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			old := away()
			master := rig.NextMaster(old)
			t.Logf("another master after %v", time.Since(began).Round(time.Millisecond))
			if _, err := master.Do("SET", "k", name); err != nil {
				t.Fatal(err)
			}
			if name == "killed" { // else it is seen below that it comes back as it is
				if err := old.Restart(); err != nil {
					t.Fatal(err)
				}
			}
			old.Continue()
			rig.Settled()
			if v, err := old.Do("GET", "k"); v != name {
				t.Errorf("the old master follows and has %v, %v", v, err)
			}
		})
	}
}

func TestClusterReplacesItsMaster(t *testing.T) {
	long(t)
	rig := redisserver.StartCluster(t)
	slot := rig.Slot("k")
	for name, away := range map[string]func(int) *redisserver.Server{"killed": rig.KillMaster,
		"stopped": rig.StopMaster} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			old := away(slot)
			master := rig.NextMaster(slot, old)
			t.Logf("another master after %v", time.Since(began).Round(time.Millisecond))
			if _, err := master.Do("SET", "k", name); err != nil {
				t.Fatal(err)
			}
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

func TestClusterChanges(t *testing.T) {
	long(t)
	rig := redisserver.StartCluster(t)
	slot := rig.Slot("k")
	from := rig.Master(slot)
	for _, key := range []string{"k", "{k}1", "{k}2"} {
		if _, err := from.Do("SET", key, "v", "PX", 60000); err != nil {
			t.Fatal(err)
		}
	}
	has := func(srv *redisserver.Server, want int64) {
		t.Helper()
		if n, err := srv.Do("CLUSTER", "COUNTKEYSINSLOT", slot); n != want {
			t.Errorf("%v keys, want %d, %v", n, want, err)
		}
	}
	added := rig.Add()
	rig.Move(added, slot)
	if rig.Master(slot) != added || len(rig.Masters()) != 4 {
		t.Fatalf("slot %d is at %v, %d masters", slot, rig.Master(slot), len(rig.Masters()))
	}
	has(from, 0)
	has(added, 3)
	if _, err := from.Do("GET", "k"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("the old node says %v", err)
	}
	rig.Remove(added)
	if master := rig.Master(slot); master == nil || master == added || len(rig.Servers()) != 6 || added.Pid() != 0 {
		t.Fatalf("slot %d is at %v, %d nodes, pid %d", slot, master, len(rig.Servers()), added.Pid())
	}
	has(rig.Master(slot), 3)
}
