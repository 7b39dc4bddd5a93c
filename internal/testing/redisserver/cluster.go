package redisserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Slots is how many slots a cluster has.
const Slots = 16384

// A Cluster begins with three masters, which have a third of the slots each, and a replica for
// each. A master that does not answer for two seconds is replaced. Methods of a Cluster end the
// test if they cannot do what they say, so they are for the goroutine of the test.
type Cluster struct {
	tb      testing.TB
	opts    []string
	servers []*Server
}

// StartCluster runs all six nodes until the test is over. It returns when all nodes agree that the
// cluster is up and the replicas are in step. opts are for each node.
func StartCluster(tb testing.TB, opts ...string) *Cluster {
	tb.Helper()
	c := &Cluster{tb: tb, opts: append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
		"--cluster-replica-validity-factor", "0",
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"}, opts...)}
	const masters = 3
	for i := range 2 * masters {
		srv := Start(tb, c.opts...)
		c.servers = append(c.servers, srv)
		srv.must("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i < masters {
			srv.addSlots(i, masters)
		}
		if i > 0 {
			c.servers[0].must("CLUSTER", "MEET", "127.0.0.1", srv.Port())
		}
	}
	c.awaitAcquaintance()
	for i, srv := range c.servers[masters:] {
		srv.must("CLUSTER", "REPLICATE", c.servers[i].must("CLUSTER", "MYID"))
	}
	c.Settled()
	return c
}

// Addrs returns the addresses of all nodes that are part of the cluster and run.
func (c *Cluster) Addrs() []string { return addresses(c.runningServers()) }

// Servers returns all nodes that are part of the cluster, also those that do not run. The first
// three were the first masters.
func (c *Cluster) Servers() []*Server { return c.servers }

// Slot returns the slot of a key.
func (c *Cluster) Slot(key string) int {
	c.tb.Helper()
	slot, _ := c.runningServers()[0].must("CLUSTER", "KEYSLOT", key).(int64)
	return int(slot)
}

// Master returns the node that serves a slot, and nil during an election. If two nodes believe that
// they do, it returns the newer master.
func (c *Cluster) Master(slot int) (master *Server) {
	newest := -1
	for _, srv := range c.runningServers() {
		if me := srv.member(); me.master && me.serves(slot) && me.epoch > newest {
			newest, master = me.epoch, srv
		}
	}
	return master
}

// Masters returns the nodes that serve slots.
func (c *Cluster) Masters() (masters []*Server) {
	for _, srv := range c.runningServers() {
		if me := srv.member(); me.master && len(me.slots) > 0 {
			masters = append(masters, srv)
		}
	}
	return masters
}

// Replicas returns the nodes that run and are no masters.
func (c *Cluster) Replicas() []*Server {
	return slices.DeleteFunc(c.runningServers(), func(s *Server) bool { return s.member().master })
}

// Patient makes the nodes wait half a minute for a master that does not answer. A machine may stand
// still for longer than the two seconds that they wait otherwise.
func (c *Cluster) Patient() {
	c.tb.Helper()
	for _, srv := range c.runningServers() {
		srv.must("CONFIG", "SET", "cluster-node-timeout", 30_000)
	}
}

// NextMaster waits until another node serves a slot, and returns it.
func (c *Cluster) NextMaster(slot int, old *Server) (master *Server) {
	c.tb.Helper()
	await(c.tb, "another master", func() bool {
		master = c.Master(slot)
		return master != nil && master != old && master.healthy()
	})
	return master
}

// Settled waits until all running nodes agree that the cluster is up, and all replicas whose master
// runs are in step.
func (c *Cluster) Settled() {
	c.tb.Helper()
	for _, srv := range c.runningServers() {
		await(c.tb, "the cluster is up", srv.healthy)
		await(c.tb, "a replica is in step", func() bool {
			info, _ := srv.Do("INFO", "replication")
			text, _ := info.(string)
			return line(text, "role") == "master" && line(text, "connected_slaves") != "" ||
				line(text, "master_link_status") == "up"
		})
	}
}

// awaitAcquaintance waits until each node knows all the others, and nobody else.
func (c *Cluster) awaitAcquaintance() {
	c.tb.Helper()
	for _, srv := range c.runningServers() {
		await(c.tb, "the nodes know each other", func() bool {
			text, _ := srv.must("CLUSTER", "NODES").(string)
			return !strings.Contains(text, "handshake") && strings.Count(text, "\n") == len(c.servers) &&
				strings.Count(text, " connected") == len(c.servers)
		})
	}
}

// AwaitMaster returns the node that serves a slot, once there is one.
func (c *Cluster) AwaitMaster(slot int) (master *Server) {
	c.tb.Helper()
	await(c.tb, fmt.Sprintf("a master of slot %d", slot), func() bool { master = c.Master(slot); return master != nil })
	return master
}

func (c *Cluster) runningServers() []*Server {
	return slices.DeleteFunc(slices.Clone(c.servers), func(s *Server) bool { return !s.canAnswer() })
}

// healthy reports whether the node says that the cluster is up.
func (s *Server) healthy() bool {
	info, _ := s.Do("CLUSTER", "INFO")
	text, _ := info.(string)
	return line(text, "cluster_state") == "ok"
}

// A member is what a node says of itself.
type member struct {
	id     string
	master bool
	epoch  int
	slots  [][2]int
}

func (m member) serves(slot int) bool {
	return slices.ContainsFunc(m.slots, func(r [2]int) bool { return r[0] <= slot && slot <= r[1] })
}

// member asks a node what it is; nothing when it does not answer.
func (s *Server) member() (m member) {
	answer, _ := s.Do("CLUSTER", "NODES")
	text, _ := answer.(string)
	for l := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(l) // id, address, flags, master, ping, pong, epoch, link, slots ...
		if len(words) < 8 || !strings.Contains(words[2], "myself") {
			continue
		}
		m.id, m.master = words[0], strings.Contains(words[2], "master")
		m.epoch, _ = strconv.Atoi(words[6])
		for _, word := range words[8:] {
			from, to, ok := strings.Cut(word, "-")
			if !ok {
				to = from
			}
			a, err1 := strconv.Atoi(from)
			b, err2 := strconv.Atoi(to)
			if err1 == nil && err2 == nil { // else it is on its way
				m.slots = append(m.slots, [2]int{a, b})
			}
		}
	}
	return m
}
