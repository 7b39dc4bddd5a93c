package redisserver

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/eventually"
)

// rigTime bounds whatever several servers have to agree on: a first synchronization, an election.
const rigTime = 60 * time.Second

// StartReplicated runs a master and n replicas of it until the test is over, and returns when all
// replicas are in step. opts are for each of them.
func StartReplicated(tb testing.TB, n int, opts ...string) (master *Server, replicas []*Server) {
	tb.Helper()
	opts = append([]string{"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		"--repl-ping-replica-period", "1"}, opts...)
	master = Start(tb, opts...)
	following := append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(master.Port())}, opts...)
	for range n {
		replicas = append(replicas, Start(tb, following...))
	}
	for _, r := range replicas {
		await(tb, "a replica is in step", func() bool { return r.field("replication", "master_link_status") == "up" })
	}
	await(tb, "the master knows its replicas", func() bool {
		return master.field("replication", "connected_slaves") == strconv.Itoa(n)
	})
	return master, replicas
}

// StartTwoMasters runs a cluster of two masters until the test is over, with half the slots each.
// Nobody takes over when one stands still or is gone.
func StartTwoMasters(tb testing.TB, opts ...string) (servers []*Server) {
	tb.Helper()
	for i := range 2 {
		srv := Start(tb, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, opts...)...)
		srv.addSlots(i, 2)
		srv.must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		servers = append(servers, srv)
	}
	servers[0].must("CLUSTER", "MEET", "127.0.0.1", servers[1].Port())
	for _, srv := range servers {
		await(tb, "the cluster is up", srv.healthy)
	}
	for _, srv := range servers { // a node that stands still takes the other down with it, but not so soon
		srv.must("CONFIG", "SET", "cluster-node-timeout", 30_000)
	}
	return servers
}

// addSlots makes a node serve a share of the slots.
func (s *Server) addSlots(share, of int) {
	s.tb.Helper()
	slots := []any{"CLUSTER", "ADDSLOTS"}
	for slot := share * Slots / of; slot < (share+1)*Slots/of; slot++ {
		slots = append(slots, slot)
	}
	s.must(slots...)
}

// await polls until the condition holds, and ends the test when it does not for too long.
func await(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	eventually.Must(tb, rigTime, "redisserver: "+what, holds)
}

// must is Do for a command that fails only by a mistake of ours, or if the server is gone. It then
// ends the test.
func (s *Server) must(args ...any) any {
	s.tb.Helper()
	v, err := s.Do(args...)
	if err != nil {
		s.tb.Fatalf("redisserver: %s: %.100s: %v", s.Addr(), fmt.Sprint(args...), err)
	}
	return v
}

// field returns one line of a section of INFO; empty when the server does not answer.
func (s *Server) field(section, name string) string {
	answer, _ := s.Do("INFO", section)
	text, _ := answer.(string)
	return line(text, name)
}

// line finds "name:value" in a text.
func line(text, name string) string {
	for l := range strings.SplitSeq(text, "\r\n") {
		if value, ok := strings.CutPrefix(l, name+":"); ok {
			return value
		}
	}
	return ""
}
