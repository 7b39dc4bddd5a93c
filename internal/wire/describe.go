package wire

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/store"
)

// Describe implements Store. On a cluster it lists the nodes that serve slots and their replicas; a
// node that does not answer has no version. Elsewhere it lists the nodes that answer, and fails if
// none does.
func (r *router) Describe(ctx context.Context) (Topology, error) {
	if err := ended(ctx); err != nil {
		return Topology{}, err
	}
	cluster, err := r.isCluster(ctx)
	switch {
	case err != nil:
		return Topology{}, err
	case cluster:
		return r.describeCluster(ctx)
	}
	known, err := r.store.Nodes(ctx)
	if err != nil {
		return Topology{}, err
	}
	var t Topology
	var failed error
	for _, address := range known.Addresses {
		node, err := readInfo(doAt(ctx, r.store, address, []store.Command{{"INFO"}})[0])
		if err != nil {
			failed = err
			continue
		}
		node.ID = address
		t.ShardedPubSub = knowsSharded(node.Version) && (t.ShardedPubSub || len(t.Nodes) == 0)
		t.Nodes = append(t.Nodes, node)
	}
	if len(t.Nodes) == 0 && failed != nil {
		return Topology{}, failed
	}
	return t, nil
}

func (r *router) describeCluster(ctx context.Context) (Topology, error) {
	table, err := r.slots.known(ctx, true)
	if err != nil {
		return Topology{}, err
	}
	nodes := slices.Clone(table.nodes)
	t := Topology{Cluster: true, ShardedPubSub: len(nodes) > 0, Nodes: nodes}
	lacks := make([]bool, len(nodes))
	var all sync.WaitGroup
	for i := range nodes {
		address := table.addresses[nodes[i].ID]
		if !table.met[address] {
			continue
		}
		all.Go(func() {
			replies := doAt(ctx, r.store, address, []store.Command{{"INFO"}, {"COMMAND", "INFO", "SSUBSCRIBE"}})
			if n, err := readInfo(replies[0]); err == nil {
				nodes[i].Version, nodes[i].Eviction = n.Version, n.Eviction
			}
			known, _ := replies[1].Value.([]any) // whatever the version is; a user may not be allowed to ask
			lacks[i] = replies[1].Err == nil && len(known) == 1 && known[0] == nil
		})
	}
	all.Wait()
	for i, n := range nodes {
		knows := knowsSharded(n.Version) || n.Version == "" && n.Role == "replica"
		t.ShardedPubSub = t.ShardedPubSub && knows && !lacks[i]
	}
	return t, nil
}

// readInfo reads the version, role and eviction policy of a server. A fact that it refuses to tell
// stays empty.
func readInfo(reply store.Reply) (Node, error) {
	if reply.Err != nil {
		return Node{}, reply.Err
	}
	var node Node
	limited := false
	info, _ := reply.Value.(string)
	for line := range strings.SplitSeq(info, "\n") {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch key {
		case "redis_version":
			if node.Version == "" {
				node.Version = value
			}
		case "valkey_version": // redis_version is only what it is compatible with
			node.Version = value
		case "maxmemory":
			limited = value != "0"
		case "maxmemory_policy":
			node.Eviction = value
		case "role":
			node.Role = value
			if value == "slave" {
				node.Role = "replica"
			}
		}
	}
	if !limited {
		node.Eviction = ""
	}
	return node, nil
}

// knowsSharded reports whether a server of the version knows SPUBLISH: Redis and Valkey do from
// 7.0.
func knowsSharded(version string) bool {
	major, _, _ := strings.Cut(version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && n >= 7
}
