// Code generated from rueidisstore by TestTwin there; DO NOT EDIT.

package valkeystore

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast/store"
)

// redirects is how often one request is sent on by MOVED and ASK, which say that it was not carried
// out.
const redirects = 3

// cluster is a store on a Redis Cluster. It uses the connections of the client's nodes, with a
// table of the slots of its own: a WAIT must go where its write went, and the client does not say
// where that is.
type cluster struct {
	client valkey.Client

	mu     sync.Mutex
	table  *table
	flight *flight
}

func newCluster(client valkey.Client) *cluster { return &cluster{client: client, table: unknown} }

// A stop is a request on its way through the cluster.
type stop struct {
	index  int // of the request
	addr   string
	asking bool // the node has not taken the slot over yet
}

func (c *cluster) Do(ctx context.Context, reqs []store.Request) []store.Reply {
	replies := make([]store.Reply, len(reqs))
	if err := over(ctx); err != nil {
		return unsent(replies, err)
	}
	stops := make([]stop, 0, len(reqs))
	for i := range reqs {
		addr, err := c.serving(ctx, &reqs[i])
		if err != nil {
			replies[i] = store.Reply{Err: err, Unsent: true}
			continue
		}
		stops = append(stops, stop{index: i, addr: addr})
	}
	for left := redirects; len(stops) > 0; left-- {
		c.send(ctx, reqs, replies, stops)
		if left == 0 {
			break
		}
		stops = c.redirected(ctx, reqs, replies, stops)
	}
	for i := range replies {
		if hasPrefix(replies[i].Refused, "MOVED ", "ASK ") { // to a node that the client does not know yet: it was not carried out
			replies[i].Refused = "TRYAGAIN " + replies[i].Refused
		}
	}
	return replies
}

// send sends every node what it shall get in one flush, all nodes at the same time.
func (c *cluster) send(ctx context.Context, reqs []store.Request, replies []store.Reply, stops []stop) {
	loads := map[string][]stop{}
	for _, s := range stops {
		loads[s.addr] = append(loads[s.addr], s)
	}
	var all sync.WaitGroup
	for addr, load := range loads {
		if len(loads) == 1 {
			c.deliver(ctx, addr, load, reqs, replies)
			return
		}
		all.Go(func() { c.deliver(ctx, addr, load, reqs, replies) })
	}
	all.Wait()
}

func (c *cluster) deliver(ctx context.Context, addr string, load []stop, reqs []store.Request, replies []store.Reply) {
	client, err := c.at(ctx, addr, reqs[load[0].index].Key)
	if err != nil {
		for _, s := range load {
			if replies[s.index].Refused == "" { // it was sent on to nowhere
				replies[s.index] = store.Reply{Err: err, Unsent: true, Node: addr}
			}
		}
		return
	}
	batch := make([]store.Request, 0, len(load))
	for _, s := range load {
		if s.asking {
			batch = append(batch, store.Request{Args: []any{"ASKING"}})
		}
		batch = append(batch, reqs[s.index])
	}
	answers := send(ctx, client, batch)
	for _, s := range load {
		var asked store.Reply
		if s.asking {
			asked, answers = answers[0], answers[1:]
		}
		replies[s.index], answers = answers[0], answers[1:]
		if asked.Refused != "" && hasPrefix(replies[s.index].Refused, "MOVED ", "ASK ") { // it may not ask, so nothing was carried out
			replies[s.index] = asked
		}
		replies[s.index].Node = addr
		if r := &replies[s.index]; r.Err != nil || hasPrefix(r.Refused, "READONLY", "CLUSTERDOWN", "MOVED") {
			c.look() // in the background: another node may serve the slot by now
		}
	}
}

// redirected returns the stops of those that were sent on, and of those that could not be sent
// because the node is gone, where another serves the slot by now.
func (c *cluster) redirected(ctx context.Context, reqs []store.Request, replies []store.Reply, stops []stop) (next []stop) {
	fresh := false
	for _, s := range stops {
		r := &replies[s.index]
		if r.Err != nil {
			if !r.Unsent || reqs[s.index].Node != "" || over(ctx) != nil {
				continue
			}
			t, err := c.known(ctx, !fresh)
			fresh = true
			if addr := t.master(c.slot(reqs[s.index].Key)); err == nil && addr != "" && addr != s.addr {
				next = append(next, stop{index: s.index, addr: addr})
			}
			continue
		}
		words := strings.Fields(r.Refused) // MOVED 3999 127.0.0.1:6381
		if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
			continue
		}
		addr := words[2]
		if strings.HasPrefix(addr, ":") { // a node that does not know its own address
			addr = endpoint("", addr[1:], s.addr)
		}
		next = append(next, stop{index: s.index, addr: addr, asking: words[0] == "ASK"})
	}
	return next
}

// serving is the address of the node that the request is for.
func (c *cluster) serving(ctx context.Context, r *store.Request) (string, error) {
	for fresh := false; ; fresh = true {
		t, err := c.known(ctx, fresh)
		if err != nil {
			return "", err
		}
		var addr string
		if r.Node != "" {
			addr = t.addresses[r.Node]
		} else {
			addr = t.master(c.slot(r.Key))
		}
		switch {
		case addr != "":
			return addr, nil
		case !fresh:
		case r.Node != "":
			return "", fmt.Errorf("valkeystore: the cluster has no node %q", r.Node)
		default:
			return "", fmt.Errorf("valkeystore: no node serves slot %d", c.slot(r.Key))
		}
	}
}

// slot is where a key lies. That of no key at all is 0.
func (c *cluster) slot(key string) int {
	if key == "" {
		return 0
	}
	named := c.client.B().Arbitrary("GET").Keys(key).Build()
	return int(named.Slot()) % slots
}

// at is the client's own client of a node. One that it does not know it learns of by being sent
// there for a key.
func (c *cluster) at(ctx context.Context, addr, key string) (valkey.Client, error) {
	if client := c.latest().clients[addr]; client != nil {
		return client, nil
	}
	if client := c.client.Nodes()[addr]; client != nil {
		return client, nil
	}
	poke(ctx, c.client, key)
	if client := c.client.Nodes()[addr]; client != nil {
		return client, nil
	}
	return nil, fmt.Errorf("valkeystore: the client has no connection to %s", addr)
}

func (c *cluster) Subscribe(ctx context.Context, sink store.Sink) (store.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSubscription(sink, c.any)
	s.home = &channelRouter{s: s, cluster: c, wake: make(chan struct{}, 1), lines: map[string]*line{}}
	return s, nil
}

// any is the client of some master: what is published at one node comes to all.
func (c *cluster) any(ctx context.Context) (valkey.Client, error) {
	t, err := c.known(ctx, false)
	if err != nil {
		return nil, err
	}
	return t.anyMaster()
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
