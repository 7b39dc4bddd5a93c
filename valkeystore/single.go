// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// A server is a store on one server, or on the master that sentinels name.
type server struct{ client valkey.Client }

// Address returns where the server is, for errors; empty of a client that may change to another, as
// to the master that sentinels name.
func (s *server) Address() string {
	for addr, node := range s.client.Nodes() {
		if reflect.ValueOf(node).Comparable() && node == s.client {
			return addr // the client of a node is of that one for ever
		}
	}
	return ""
}

func (s *server) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	client, err := s.carrier(node, len(commands))
	if err != nil {
		return store.Unsent(len(commands), err)
	}
	return send(ctx, client, commands)
}

// carrier returns the client that carries so many commands. A client that follows REDIRECT
// (EnableRedirect) does so with all commands of a batch for the sake of one, also with those that
// were carried out; the client of its node does not.
func (s *server) carrier(node string, commands int) (valkey.Client, error) {
	if node != "" || commands == 1 {
		return s.at(node)
	}
	if nodes := s.client.Nodes(); len(nodes) == 1 {
		for _, client := range nodes {
			return client, nil
		}
	}
	return s.client, nil
}

// at returns the client of a node; without a name the one whose own routing leads.
func (s *server) at(node string) (valkey.Client, error) {
	if node == "" {
		return s.client, nil
	}
	nodes := s.client.Nodes()
	if nodes[node] == nil {
		return nil, fmt.Errorf("valkeystore: no node %q, there is only %q", node, slices.Sorted(maps.Keys(nodes)))
	}
	return nodes[node], nil
}

func (s *server) Nodes(context.Context) (store.Nodes, error) {
	return store.Nodes{Addresses: slices.Sorted(maps.Keys(s.client.Nodes()))}, nil
}

// Refresh makes a client that follows REDIRECT do so.
func (s *server) Refresh(ctx context.Context, key string) error {
	poke(ctx, s.client, key)
	return store.Ended(ctx)
}

func (s *server) Renew(node string) {
	if client, err := s.at(node); err == nil {
		renew(client)
	}
}

func (s *server) Listen(ctx context.Context, node string, sharded bool, events store.Events) (store.Listener, error) {
	client, err := s.at(node)
	if err != nil {
		return nil, err
	}
	return listen(ctx, client, sharded, events)
}

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
