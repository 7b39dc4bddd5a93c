package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// cluster is a store on a Redis Cluster. It uses the connections of the client's nodes, and not
// its way of processing, which repeats requests.
type cluster struct {
	rdb *redis.ClusterClient

	mu    sync.Mutex
	nodes map[string]*node // by address: as the cluster says it, and as the client dials it
}

func (c *cluster) node(address string) (*node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.nodes[address]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("redisstore: the client has no connection to %q", address)
}

func (c *cluster) Do(ctx context.Context, address string, commands []store.Command) []store.Reply {
	n, err := c.node(address)
	if err != nil {
		return store.Unsent(len(commands), err)
	}
	replies := n.do(ctx, commands)
	if len(replies) > 0 && errors.Is(replies[0].Err, redis.ErrClosed) { // the client gave the node up
		c.mu.Lock()
		delete(c.nodes, address)
		c.mu.Unlock()
	}
	return replies
}

func (c *cluster) Nodes(ctx context.Context) (store.Nodes, error) {
	for range 2 {
		c.mu.Lock()
		addresses := slices.Collect(maps.Keys(c.nodes))
		c.mu.Unlock()
		if len(addresses) > 0 {
			return store.Nodes{Cluster: true, Addresses: addresses}, nil
		}
		if err := c.Refresh(ctx, ""); err != nil {
			return store.Nodes{}, err
		}
	}
	return store.Nodes{}, errors.New("redisstore: the client knows no node of the cluster")
}

// Refresh makes the client read the slots anew. No context interrupts that: when ctx is over
// first, it goes on until the client's own timeouts.
func (c *cluster) Refresh(ctx context.Context, _ string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var mu sync.Mutex
	nodes, done := map[string]*node{}, make(chan error, 1)
	go func() {
		done <- c.rdb.ForEachShard(ctx, func(_ context.Context, rdb *redis.Client) error {
			n := newNode(rdb)
			mu.Lock()
			defer mu.Unlock()
			nodes[rdb.Options().Addr], nodes[rdb.NodeAddress()] = n, n
			return nil
		})
	}()
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	addAnnounced(nodes)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.nodes = nodes
	return nil
}

// addAnnounced adds what those nodes announce that the user named by another address. Of the others
// go-redis tells what it dials in place of a loopback host, or of port 0: it is the same for these.
func addAnnounced(nodes map[string]*node) {
	known := maps.Clone(nodes)
	for announced, n := range known {
		host, port, _ := net.SplitHostPort(announced)
		dialedHost, dialedPort, _ := net.SplitHostPort(n.rdb.Options().Addr)
		for address, other := range known {
			h, p, _ := net.SplitHostPort(address)
			if alias := net.JoinHostPort(host, p); h == dialedHost && nodes[alias] == nil {
				nodes[alias] = other
			}
			if alias := net.JoinHostPort(h, port); p == dialedPort && nodes[alias] == nil {
				nodes[alias] = other
			}
		}
	}
}

func (c *cluster) Renew(address string) {
	if n, err := c.node(address); err == nil {
		n.renew()
	}
}

func (c *cluster) Listen(ctx context.Context, address string, sharded bool,
	events store.Events) (store.Listener, error) {
	n, err := c.node(address)
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	return listen(n.rdb, sharded, events), nil
}
