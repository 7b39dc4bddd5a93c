package adaptertest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
)

// LateAnswer tests that an answer is waited for until the deadline. The client must have time-outs
// of its own of a second.
func LateAnswer(t *testing.T, adapter Adapter) {
	NeedProof(t)
	st := adapter.Open(t, single(redisserver.Start(t)).client)
	for n := 1; n <= 2; n++ {
		commands := append(slices.Repeat([]store.Command{{"PING"}}, n-1), store.Command{"WAIT", 100, 1500})
		if r := st.Do(Within(t, Patience), "", commands)[n-1]; r.Value != int64(0) {
			t.Errorf("%d commands: got %+v", n, r)
		}
	}
}

// SentOnce tests that each of many commands is carried out once at most while connections break all
// the time, and exactly once if it was answered (traps 12 and 36).
func SentOnce(t *testing.T, adapter Adapter) {
	NeedProof(t)
	srv := redisserver.Start(t)
	p := fault.Start(t, srv.Addr())
	st := adapter.Open(t, Client{Addresses: []string{p.Addr()}})
	const goroutines, rounds = 8, 40
	replies := make([][]store.Reply, goroutines*rounds)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for id := g * rounds; id < (g+1)*rounds; id++ {
				var commands []store.Command
				for i := range 1 + id%4 {
					commands = append(commands, store.Command{"INCR", fmt.Sprintf("n%d-%d", id, i)})
				}
				if id%16 == 7 {
					p.Cut()
				}
				replies[id] = st.Do(Within(t, Patience), "", commands)
			}
		})
	}
	all.Wait()
	unknown := 0
	for id := range replies {
		for i, r := range replies[id] {
			n, err := srv.Do("GET", fmt.Sprintf("n%d-%d", id, i))
			switch {
			case err != nil:
				t.Fatal(err)
			case n != nil && n != "1":
				t.Errorf("carried out %v times: %+v", n, r)
			case r.Err == nil && (n == nil || r.Value != int64(1)), r.Unsent && n != nil:
				t.Errorf("got %+v, at the server %v", r, n)
			case r.Err != nil && !r.Unsent:
				unknown++
			}
		}
	}
	if unknown == 0 {
		t.Error("nothing broke, so this test shows nothing")
	}
}

// ClusterNodes tests that a store meets a node that joins the cluster, and says of one that is gone
// that nothing was sent (trap 37).
func ClusterNodes(t *testing.T, adapter Adapter) {
	top, rig := cluster(t)
	st, ctx := adapter.Open(t, top.client), Within(t, 4*Patience)
	ping := func(srv *redisserver.Server) store.Reply {
		return st.Do(Within(t, Patience), srv.Addr(), []store.Command{{"PING"}})[0]
	}
	meets := func(srv *redisserver.Server) bool {
		_ = st.Refresh(ctx, "{a}")
		known, err := st.Nodes(ctx)
		return err == nil && slices.Contains(known.Addresses, srv.Addr())
	}
	old, slot := rig.Masters()[0], rig.Slot("{a}")
	Eventually(t, "the nodes are met", func() bool { return meets(old) })
	added := rig.Add()
	rig.Move(added, slot)
	if !meets(added) { // a router asks once
		t.Error("the new node is not met")
	}
	for _, srv := range []*redisserver.Server{old, added} {
		if r := ping(srv); r.Value != "PONG" {
			t.Errorf("got %+v", r)
		}
	}
	added.Kill()
	Eventually(t, "nothing is sent to the node that is gone", func() bool { return ping(added).Unsent })
	if r := ping(old); r.Value != "PONG" {
		t.Errorf("got %+v", r)
	}
}
