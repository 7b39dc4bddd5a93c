package redisserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A Sentinel is a master, two replicas and three sentinels that watch them. A master that does not
// answer for a second is replaced. Methods of a Sentinel end the test if they cannot do what they
// say, so they are for the goroutine of the test.
type Sentinel struct {
	tb        testing.TB
	servers   []*Server
	sentinels []*Server
}

// masterName is what the sentinels call the master.
const masterName = "rig"

// sentinelConf is the file that a sentinel begins with; it rewrites the file as it learns.
const sentinelConf = `bind 127.0.0.1
sentinel monitor %[1]s 127.0.0.1 %[2]d 2
sentinel down-after-milliseconds %[1]s 1000
sentinel failover-timeout %[1]s 3000
sentinel parallel-syncs %[1]s 2
`

// StartSentinel runs all six processes until the test is over. It returns when they know each other
// and the replicas are in step. opts are for the master and the replicas.
func StartSentinel(tb testing.TB, opts ...string) *Sentinel {
	tb.Helper()
	master, replicas := StartReplicated(tb, 2, opts...)
	s := &Sentinel{tb: tb, servers: append([]*Server{master}, replicas...)}
	for range 3 {
		s.sentinels = append(s.sentinels, begin(tb, fmt.Sprintf(sentinelConf, masterName, master.Port()), nil, nil))
	}
	for _, sentinel := range s.sentinels {
		await(tb, "the sentinels know each other", func() bool {
			known := pairs(sentinel.must("SENTINEL", "MASTER", masterName))
			return known["num-other-sentinels"] == "2" && known["num-slaves"] == "2" && known["flags"] == "master"
		})
		await(tb, "the sentinels know the replicas", func() bool {
			replicas, _ := sentinel.must("SENTINEL", "REPLICAS", masterName).([]any)
			return !slices.ContainsFunc(replicas, func(r any) bool {
				return pairs(r)["flags"] != "slave" || pairs(r)["master-link-status"] != "ok"
			})
		})
	}
	return s
}

// Name returns the name that the sentinels have for the master.
func (s *Sentinel) Name() string { return masterName }

// Addrs returns the addresses of the sentinels.
func (s *Sentinel) Addrs() []string { return addresses(s.sentinels) }

// Sentinels returns the sentinels themselves.
func (s *Sentinel) Sentinels() []*Server { return s.sentinels }

// Master returns the server that most of the sentinels call the master, if it answers as one. It
// returns nil during an election.
func (s *Sentinel) Master() *Server {
	votes := map[string]int{}
	for _, sentinel := range s.sentinels {
		if !sentinel.canAnswer() {
			continue
		}
		answer, _ := sentinel.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", masterName)
		if addr, ok := answer.([]any); ok && len(addr) == 2 {
			votes[net.JoinHostPort(addr[0].(string), addr[1].(string))]++
		}
	}
	for _, server := range s.servers {
		if votes[server.Addr()] >= 2 && server.canAnswer() && server.field("replication", "role") == "master" {
			return server
		}
	}
	return nil
}

// Patient makes the sentinels wait half a minute for a master that does not answer. A machine may
// stand still for longer than the second that they wait otherwise.
func (s *Sentinel) Patient() {
	s.tb.Helper()
	for _, sentinel := range s.sentinels {
		sentinel.must("SENTINEL", "SET", masterName, "down-after-milliseconds", 30_000)
	}
}

// NextMaster waits until another server is the master, and returns it.
func (s *Sentinel) NextMaster(old *Server) (master *Server) {
	s.tb.Helper()
	await(s.tb, "another master", func() bool { master = s.Master(); return master != nil && master != old })
	return master
}

// Settled waits until all running servers follow the master and are in step.
func (s *Sentinel) Settled() {
	s.tb.Helper()
	await(s.tb, "all follow the master", func() bool {
		master := s.Master()
		return master != nil && !slices.ContainsFunc(s.servers, func(r *Server) bool {
			return r != master && r.canAnswer() && (r.field("replication", "master_link_status") != "up" ||
				r.field("replication", "master_port") != fmt.Sprint(master.Port()))
		})
	})
}

// AwaitMaster returns the master, once there is one.
func (s *Sentinel) AwaitMaster() (master *Server) {
	s.tb.Helper()
	await(s.tb, "a master", func() bool { master = s.Master(); return master != nil })
	return master
}

// asSentinel returns the arguments of a sentinel. Its file is written once: from then on it is the
// sentinel's own.
func (s *Server) asSentinel() ([]string, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("sentinel-%d.conf", s.port))
	args := []string{path, "--sentinel"}
	if _, err := os.Stat(path); err == nil {
		return args, nil
	}
	text := fmt.Sprintf("port %d\ndir %s\nlogfile %s\n%s", s.port, s.dir, s.logfile(), s.conf)
	return args, os.WriteFile(path, []byte(text), 0o600)
}

// pairs reads a flat list of names and values.
func pairs(answer any) map[string]string {
	list, _ := answer.([]any)
	m := map[string]string{}
	for i := 0; i+1 < len(list); i += 2 {
		name, _ := list[i].(string)
		m[name], _ = list[i+1].(string)
	}
	return m
}

func addresses(servers []*Server) (addrs []string) {
	for _, s := range servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}
