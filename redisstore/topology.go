package redisstore

import (
	"context"
	"maps"
	"net"
	"strconv"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// Describe lists the nodes that serve slots and their replicas. A node that does not answer has no
// version.
func (c *cluster) Describe(ctx context.Context) (store.Topology, error) {
	if err := c.load(ctx); err != nil {
		return store.Topology{}, err
	}
	if err := c.refresh(ctx); err != nil {
		return store.Topology{}, err
	}
	nodes, _, err := c.slots(ctx)
	if err != nil {
		return store.Topology{}, err
	}
	t := store.Topology{Cluster: true, ShardedPubSub: len(nodes) > 0, Nodes: nodes}
	var all sync.WaitGroup
	for i := range nodes {
		rdb := c.lookup(nodes[i].ID)
		if rdb == nil {
			continue
		}
		all.Go(func() {
			if n, err := describe(ctx, c.node(rdb)); err == nil {
				nodes[i].Version, nodes[i].Eviction = n.Version, n.Eviction
			}
		})
	}
	all.Wait()
	for _, n := range nodes {
		t.ShardedPubSub = t.ShardedPubSub && (shards(n.Version) || n.Version == "" && n.Role == "replica")
	}
	return t, nil
}

// refresh makes the client read the slots anew and notes its nodes by id and address.
func (c *cluster) refresh(ctx context.Context) error {
	var mu sync.Mutex
	known := map[string]*redis.Client{}
	err := within(ctx, func() error {
		return c.rdb.ForEachShard(ctx, func(_ context.Context, rdb *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			known[rdb.Options().Addr] = rdb
			if addr := rdb.NodeAddress(); addr != "" {
				known[addr] = rdb
			}
			return nil
		})
	})
	if err != nil {
		return err
	}
	_, addresses, err := c.slots(ctx)
	if err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	inUse := map[*redis.Client]bool{}
	for _, rdb := range known {
		inUse[rdb] = true
	}
	byID := map[string]*redis.Client{}
	for id, addr := range addresses {
		if rdb := known[addr]; rdb != nil {
			byID[id] = rdb
		}
	}
	maps.Copy(known, byID)
	c.mu.Lock()
	c.known = known
	c.mu.Unlock()
	c.nodes.Range(func(rdb, _ any) bool { // nodes that are gone; one still in use is only made anew
		if !inUse[rdb.(*redis.Client)] {
			c.nodes.Delete(rdb)
		}
		return true
	})
	return nil
}

// slots asks a node for CLUSTER SLOTS, and returns the nodes and the address of each id.
func (c *cluster) slots(ctx context.Context) ([]store.Node, map[string]string, error) {
	rdb, err := c.rdb.MasterForKey(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	r := c.node(rdb).do(ctx, []store.Request{{Args: []any{"CLUSTER", "SLOTS"}}})[0]
	if r.Err != nil {
		return nil, nil, r.Err
	}
	ranges, ok := r.Value.([]any)
	if !ok {
		return nil, nil, errSlots
	}
	var nodes []store.Node
	index := map[string]int{}
	addresses := map[string]string{}
	for _, e := range ranges {
		entry, _ := e.([]any) // from, to, master, replicas ...
		if len(entry) < 3 {
			return nil, nil, errSlots
		}
		from, _ := entry[0].(int64)
		to, _ := entry[1].(int64)
		for i, e := range entry[2:] {
			id, addr := identity(e)
			at, seen := index[id]
			if !seen {
				at = len(nodes)
				index[id], addresses[id] = at, addr
				nodes = append(nodes, store.Node{ID: id, Role: "replica"})
			}
			if i == 0 {
				nodes[at].Role = "master"
				nodes[at].Slots = append(nodes[at].Slots, store.SlotRange{From: int(from), To: int(to)})
			}
		}
	}
	return nodes, addresses, nil
}

// identity reads a node in CLUSTER SLOTS: host, port, id, and more in newer versions.
func identity(e any) (id, addr string) {
	fields, _ := e.([]any)
	if len(fields) < 2 {
		return "", ""
	}
	host, _ := fields[0].(string)
	port, _ := fields[1].(int64)
	addr = net.JoinHostPort(host, strconv.FormatInt(port, 10))
	if len(fields) > 2 {
		id, _ = fields[2].(string)
	}
	if id == "" {
		id = addr
	}
	return id, addr
}
