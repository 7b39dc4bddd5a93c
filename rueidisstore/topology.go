package rueidisstore

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/holdfast-go/holdfast/store"
)

const (
	slots     = 16384
	asked     = 4               // nodes that are asked for the slots at once: some may be down
	tableTime = 2 * time.Second // that one may take to answer
)

// errSlots is about a server that speaks another dialect.
var errSlots = errors.New("rueidisstore: cannot read the answer to CLUSTER SLOTS")

// A table is what one node knew of the slots at one time, and the clients of the nodes.
type table struct {
	nodes     []store.Node
	addresses map[string]string // by id
	ranges    []served          // in order
	clients   map[string]rueidis.Client
}

// unknown is the table before any was read.
var unknown = &table{}

// A served range of slots has a master at an address.
type served struct {
	from, to int
	addr     string
}

// master is the address of the node that serves a slot; empty: none does.
func (t *table) master(slot int) string {
	i, found := slices.BinarySearchFunc(t.ranges, slot, func(r served, slot int) int {
		switch {
		case r.to < slot:
			return -1
		case r.from > slot:
			return 1
		}
		return 0
	})
	if !found {
		return ""
	}
	return t.ranges[i].addr
}

// anyMaster is the client of one of the masters.
func (t *table) anyMaster() (rueidis.Client, error) {
	for _, i := range rand.Perm(len(t.ranges)) {
		if client := t.clients[t.ranges[i].addr]; client != nil {
			return client, nil
		}
	}
	return nil, errors.New("rueidisstore: the client has a connection to no master")
}

// A flight is a look at the slots that is under way.
type flight struct {
	done chan struct{}
	err  error // once done is closed
}

// known is the table; a fresh one is read anew. It waits no longer than ctx.
func (c *cluster) known(ctx context.Context, fresh bool) (*table, error) {
	if t := c.latest(); !fresh && t != unknown {
		return t, nil
	}
	f := c.look()
	select {
	case <-f.done:
	case <-ctx.Done():
		return c.latest(), ctx.Err()
	}
	return c.latest(), f.err
}

// latest is the table as it was read last.
func (c *cluster) latest() *table {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.table
}

// look begins to read the slots, unless that is under way. On failure the table stays what it was.
func (c *cluster) look() *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.flight != nil {
		return c.flight
	}
	f := &flight{done: make(chan struct{})}
	c.flight = f
	go func() {
		t, err := read(c.client.Nodes())
		c.mu.Lock()
		defer c.mu.Unlock()
		if err == nil {
			c.table = t
		}
		c.flight, f.err = nil, err
		close(f.done)
	}()
	return f
}

// read asks some of the nodes for the slots, and takes the first answer.
func read(clients map[string]rueidis.Client) (*table, error) {
	type outcome struct {
		t   *table
		err error
	}
	outcomes := make(chan outcome, asked)
	n := 0
	for addr, client := range clients { // in no order
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), tableTime)
			defer cancel()
			t, err := slotsOf(ctx, client, addr)
			outcomes <- outcome{t, err}
		}()
		if n++; n == asked {
			break
		}
	}
	err := errors.New("rueidisstore: the client knows no node of the cluster")
	for range n {
		var o outcome
		if o = <-outcomes; o.err == nil {
			o.t.clients = clients
			return o.t, nil
		}
		err = o.err
	}
	return nil, err
}

// slotsOf asks the node at an address for CLUSTER SLOTS.
func slotsOf(ctx context.Context, client rueidis.Client, asked string) (*table, error) {
	r := send(ctx, client, []store.Request{{Args: []any{"CLUSTER", "SLOTS"}}})[0]
	if r.Err != nil {
		return nil, r.Err
	}
	entries, ok := r.Value.([]any)
	if !ok {
		return nil, errSlots
	}
	t := &table{addresses: map[string]string{}}
	index := map[string]int{}
	for _, e := range entries {
		entry, _ := e.([]any) // from, to, master, replicas ...
		if len(entry) < 3 {
			return nil, errSlots
		}
		from, _ := entry[0].(int64)
		to, _ := entry[1].(int64)
		for i, e := range entry[2:] {
			id, addr := identity(e, asked)
			at, seen := index[id]
			if !seen {
				at = len(t.nodes)
				index[id], t.addresses[id] = at, addr
				t.nodes = append(t.nodes, store.Node{ID: id, Role: "replica"})
			}
			if i == 0 {
				t.nodes[at].Role = "master"
				t.nodes[at].Slots = append(t.nodes[at].Slots, store.SlotRange{From: int(from), To: int(to)})
				t.ranges = append(t.ranges, served{int(from), int(to), addr})
			}
		}
	}
	slices.SortFunc(t.ranges, func(a, b served) int { return a.from - b.from })
	return t, nil
}

// identity reads a node in CLUSTER SLOTS: host, port, id, and more in newer versions.
func identity(e any, asked string) (id, addr string) {
	fields, _ := e.([]any)
	if len(fields) < 2 {
		return "", ""
	}
	host, _ := fields[0].(string)
	port, _ := fields[1].(int64)
	addr = endpoint(host, strconv.FormatInt(port, 10), asked)
	if len(fields) > 2 {
		id, _ = fields[2].(string)
	}
	if id == "" {
		id = addr
	}
	return id, addr
}

// endpoint is an address. A node that does not know its own host is where it was asked.
func endpoint(host, port, asked string) string {
	if host == "" {
		host, _, _ = net.SplitHostPort(asked)
	}
	return net.JoinHostPort(host, port)
}

// Describe lists the nodes that serve slots and their replicas. A node that does not answer has no
// version.
func (c *cluster) Describe(ctx context.Context) (store.Topology, error) {
	if err := over(ctx); err != nil {
		return store.Topology{}, err
	}
	seen, err := c.known(ctx, true)
	if err != nil {
		return store.Topology{}, err
	}
	nodes := slices.Clone(seen.nodes)
	t := store.Topology{Cluster: true, ShardedPubSub: len(nodes) > 0, Nodes: nodes}
	var all sync.WaitGroup
	for i := range nodes {
		client := seen.clients[seen.addresses[nodes[i].ID]]
		if client == nil {
			continue
		}
		all.Go(func() {
			if n, err := describe(ctx, client); err == nil {
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
