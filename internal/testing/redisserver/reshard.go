package redisserver

import (
	"slices"
	"strings"
)

// Move moves slots with their keys to another node of the cluster, one after the other, as
// redis-cli does. Clients see ASK, TRYAGAIN and MOVED on the way. Slots that are there already
// stay.
func (c *Cluster) Move(to *Server, slots ...int) {
	c.tb.Helper()
	target := to.member().id
	for _, slot := range slots {
		from := c.AwaitMaster(slot)
		if from == to {
			continue
		}
		to.must("CLUSTER", "SETSLOT", slot, "IMPORTING", from.member().id)
		from.must("CLUSTER", "SETSLOT", slot, "MIGRATING", target)
		for {
			keys, _ := from.must("CLUSTER", "GETKEYSINSLOT", slot, 10).([]any)
			if len(keys) == 0 {
				break
			}
			migrate := []any{"MIGRATE", "127.0.0.1", to.Port(), "", 0, 5000, "KEYS"}
			from.must(append(migrate, keys...)...)
		}
		// The new owner first: the old one would else take the slot back by an older claim.
		to.must("CLUSTER", "SETSLOT", slot, "NODE", target)
		for _, other := range append(c.Masters(), from) {
			// A master that lost its last slot has become a replica, if the news was quicker.
			if _, err := other.Do("CLUSTER", "SETSLOT", slot, "NODE", target); err != nil &&
				!strings.Contains(err.Error(), "only with masters") {
				c.tb.Fatalf("redisserver: slot %d: %v", slot, err)
			}
		}
	}
}

// Send takes the slot of a key on its way to another master, with the present keys of the slot. It
// leaves the slot so until arrive is called.
func (c *Cluster) Send(key string) (arrive func()) {
	c.tb.Helper()
	slot := c.Slot(key)
	from := c.AwaitMaster(slot)
	masters := c.Masters()
	to := masters[slices.IndexFunc(masters, func(s *Server) bool { return s != from })]
	to.must("CLUSTER", "SETSLOT", slot, "IMPORTING", from.member().id)
	from.must("CLUSTER", "SETSLOT", slot, "MIGRATING", to.member().id)
	for _, key := range from.must("CLUSTER", "GETKEYSINSLOT", slot, 1000).([]any) {
		from.must("MIGRATE", "127.0.0.1", to.Port(), key, 0, 5000)
	}
	return func() { c.Move(to, slot) }
}

// Add makes an empty node part of the cluster: a master without slots.
func (c *Cluster) Add() *Server {
	c.tb.Helper()
	srv := Start(c.tb, c.opts...)
	srv.must("CLUSTER", "MEET", "127.0.0.1", c.runningServers()[0].Port())
	c.servers = append(c.servers, srv)
	c.awaitAcquaintance()
	await(c.tb, "the new node sees the cluster up", srv.healthy)
	return srv
}

// Follow adds a replica to the master of a slot, and returns the replica when it is in step.
func (c *Cluster) Follow(slot int) *Server {
	c.tb.Helper()
	srv, master := c.Add(), c.AwaitMaster(slot)
	srv.must("CLUSTER", "REPLICATE", master.member().id)
	await(c.tb, "the master knows its replicas", func() bool {
		return master.field("replication", "connected_slaves") == "2"
	})
	c.Settled()
	return srv
}

// Remove takes a node out of the cluster and ends it. The slots of a master, with their keys, go to
// the other masters first, and its replicas follow one of these.
func (c *Cluster) Remove(srv *Server) {
	c.tb.Helper()
	me := srv.member()
	others := slices.DeleteFunc(c.Masters(), func(s *Server) bool { return s == srv })
	i := 0
	for _, r := range me.slots {
		for slot := r[0]; slot <= r[1]; slot++ {
			c.Move(others[i%len(others)], slot)
			i++
		}
	}
	for _, other := range c.runningServers() {
		if text, _ := other.must("CLUSTER", "NODES").(string); other != srv &&
			strings.Contains(text, "myself,slave "+me.id) {
			other.must("CLUSTER", "REPLICATE", others[0].member().id)
		}
	}
	c.servers = slices.DeleteFunc(c.servers, func(s *Server) bool { return s == srv })
	// A node that is forgotten stays so for a minute, which gossip about it does not outlast once
	// it is gone.
	for _, other := range c.runningServers() {
		other.must("CLUSTER", "FORGET", me.id)
	}
	srv.Kill()
	c.Settled()
}
