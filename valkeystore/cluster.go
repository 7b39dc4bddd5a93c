// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// cluster is a store on a Redis Cluster. It uses the connections of the client's nodes.
type cluster struct {
	client valkey.Client
	nodes  atomic.Pointer[map[string]valkey.Client] // by address, as Nodes last saw them
}

// at returns the client's own client of a node.
func (c *cluster) at(address string) (valkey.Client, error) {
	if nodes := c.nodes.Load(); nodes != nil && (*nodes)[address] != nil {
		return (*nodes)[address], nil
	}
	if client := c.look()[address]; client != nil {
		return client, nil
	}
	return nil, fmt.Errorf("valkeystore: the client has no connection to %q", address)
}

// look notes which nodes the client has met.
func (c *cluster) look() map[string]valkey.Client {
	nodes := c.client.Nodes()
	c.nodes.Store(&nodes)
	return nodes
}

func (c *cluster) Do(ctx context.Context, address string, commands []store.Command) []store.Reply {
	client, err := c.at(address)
	if err != nil {
		return store.Unsent(len(commands), err)
	}
	return send(ctx, client, commands)
}

func (c *cluster) Nodes(context.Context) (store.Nodes, error) {
	return store.Nodes{Cluster: true, Addresses: slices.Collect(maps.Keys(c.look()))}, nil
}

// Refresh sends something for a key: the client learns of a node by being sent there.
func (c *cluster) Refresh(ctx context.Context, key string) error {
	poke(ctx, c.client, key)
	return store.Ended(ctx)
}

func (c *cluster) Renew(address string) {
	if client, err := c.at(address); err == nil {
		renew(client)
	}
}

func (c *cluster) Listen(ctx context.Context, address string, sharded bool,
	events store.Events) (store.Listener, error) {
	client, err := c.at(address)
	if err != nil {
		return nil, err
	}
	return listen(ctx, client, sharded, events)
}
