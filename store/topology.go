package store

// A Topology is what a store knows of its servers.
type Topology struct {
	Cluster       bool // keys are spread over slots
	ShardedPubSub bool // SPUBLISH is there; on a cluster, at every node
	Nodes         []Node
}

// A Node is one server of a topology.
type Node struct {
	ID       string // stable while the node lives: its cluster id, or its address
	Role     string // "master" or "replica"; empty when not known
	Version  string // such as "7.0.15"; empty when not known
	Eviction string // its maxmemory-policy, where maxmemory is set; empty when not known
	Slots    []SlotRange
}

// A SlotRange is a range of cluster slots, both ends included.
type SlotRange struct{ From, To int }
