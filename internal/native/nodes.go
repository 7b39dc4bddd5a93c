package native

import (
	"sync"
	"sync/atomic"

	"github.com/holdfast-go/holdfast/store"
)

// A node is one server: what travels to it, and what is known of its clock. The clocks of two servers have nothing to do with
// each other, and one that does not answer holds up nobody who asks another.
type node struct {
	lane  lane
	clock serverClock
}

// nodes are the servers behind a store. Which serves a slot is a hint: the store decides where a request goes.
type nodes struct {
	server store.Store
	one    *node // of a single server, and for slots of which nothing is known

	mu    sync.Mutex
	known map[string]*node // by id
	table atomic.Pointer[[slots]*node]
}

func newNodes(server store.Store) *nodes {
	return &nodes{server: server, one: &node{lane: lane{server: server}}, known: make(map[string]*node)}
}

// serving is the node of a slot.
func (n *nodes) serving(slot int) *node {
	if table := n.table.Load(); table != nil && table[slot] != nil {
		return table[slot]
	}
	return n.one
}

// learn takes in which node serves what.
func (n *nodes) learn(shape store.Topology) {
	if !shape.Cluster {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	table := new([slots]*node)
	for _, member := range shape.Nodes {
		if n.known[member.ID] == nil {
			n.known[member.ID] = &node{lane: lane{server: n.server}}
		}
		for _, r := range member.Slots {
			for slot := max(r.From, 0); slot <= min(r.To, slots-1); slot++ {
				table[slot] = n.known[member.ID]
			}
		}
	}
	n.table.Store(table)
}
