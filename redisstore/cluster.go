package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/store"
)

// redirects is how often one request is sent on by MOVED and ASK, which say that it was not carried
// out.
const redirects = 3

// cluster is a store on a Redis Cluster. It uses the client's knowledge of the slots and the
// connections of the client's nodes, and not its way of processing, which repeats requests.
type cluster struct {
	rdb    *redis.ClusterClient
	loaded atomic.Bool // the client knows the slots
	nodes  sync.Map    // *redis.Client -> *node, those in use

	mu    sync.Mutex
	known map[string]*redis.Client // by id and by address
}

func newCluster(rdb *redis.ClusterClient) *cluster { return &cluster{rdb: rdb} }

// A stop is a request on its way through the cluster.
type stop struct {
	index  int // of the request
	at     *node
	asking bool // the node has not taken the slot over yet
}

func (c *cluster) Do(ctx context.Context, reqs []store.Request) []store.Reply {
	replies := make([]store.Reply, len(reqs))
	if err := c.load(ctx); err != nil {
		return unsent(replies, err)
	}
	stops := make([]stop, 0, len(reqs))
	for i := range reqs {
		n, err := c.serving(ctx, &reqs[i])
		if err != nil {
			replies[i] = store.Reply{Err: err, Unsent: true}
			continue
		}
		stops = append(stops, stop{index: i, at: n})
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
	loads := map[*node][]stop{}
	for _, s := range stops {
		loads[s.at] = append(loads[s.at], s)
	}
	var all sync.WaitGroup
	for n, load := range loads {
		if len(loads) == 1 {
			c.deliver(ctx, n, load, reqs, replies)
			return
		}
		all.Go(func() { c.deliver(ctx, n, load, reqs, replies) })
	}
	all.Wait()
}

func (c *cluster) deliver(ctx context.Context, n *node, load []stop, reqs []store.Request, replies []store.Reply) {
	batch := make([]store.Request, 0, len(load))
	for _, s := range load {
		if s.asking {
			batch = append(batch, store.Request{Args: []any{"ASKING"}})
		}
		batch = append(batch, reqs[s.index])
	}
	answers := n.do(ctx, batch)
	for _, s := range load {
		var asked store.Reply
		if s.asking {
			asked, answers = answers[0], answers[1:]
		}
		replies[s.index], answers = answers[0], answers[1:]
		if asked.Refused != "" && hasPrefix(replies[s.index].Refused, "MOVED ", "ASK ") { // it may not ask, so nothing was carried out
			replies[s.index] = asked
		}
		replies[s.index].Node = n.rdb.Options().Addr
		if r := &replies[s.index]; r.Err != nil || hasPrefix(r.Refused, "READONLY", "CLUSTERDOWN", "MOVED") {
			c.rdb.ReloadState(ctx) // in the background: another node may serve the slot by now
		}
	}
}

// redirected returns the stops of those that were sent on to a node that is known, and of those
// that could not be sent because the node is gone, where another serves the slot by now.
//
//nolint:gocyclo // each outcome of a request on a cluster
func (c *cluster) redirected(ctx context.Context, reqs []store.Request, replies []store.Reply, stops []stop) []stop {
	var next []stop
	fresh := false
	for _, s := range stops {
		r := &replies[s.index]
		if r.Err != nil {
			if !r.Unsent || reqs[s.index].Node != "" || ctx.Err() != nil {
				continue
			}
			if !fresh {
				fresh = true
				_ = c.refresh(ctx)
			}
			if n, err := c.serving(ctx, &reqs[s.index]); err == nil && n != s.at {
				next = append(next, stop{index: s.index, at: n})
			}
			continue
		}
		words := strings.Fields(r.Refused) // MOVED 3999 127.0.0.1:6381
		if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
			continue
		}
		rdb := c.lookup(words[2])
		if rdb == nil && !fresh {
			fresh = true
			if c.refresh(ctx) == nil {
				rdb = c.lookup(words[2])
			}
		}
		if rdb != nil {
			next = append(next, stop{index: s.index, at: c.node(rdb), asking: words[0] == "ASK"})
		}
	}
	return next
}

// serving is the node that the request is for.
func (c *cluster) serving(ctx context.Context, r *store.Request) (*node, error) {
	if r.Node == "" {
		rdb, err := c.rdb.MasterForKey(ctx, r.Key)
		if err != nil {
			return nil, err
		}
		return c.node(rdb), nil
	}
	rdb := c.lookup(r.Node)
	if rdb == nil {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
		if rdb = c.lookup(r.Node); rdb == nil {
			return nil, fmt.Errorf("redisstore: the cluster has no node %q", r.Node)
		}
	}
	return c.node(rdb), nil
}

func (c *cluster) node(rdb *redis.Client) *node {
	if n, ok := c.nodes.Load(rdb); ok {
		return n.(*node)
	}
	n, _ := c.nodes.LoadOrStore(rdb, newNode(rdb))
	return n.(*node)
}

func (c *cluster) lookup(name string) *redis.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known[name]
}

// has tells whether a node belonged to the cluster when its slots were read last.
func (c *cluster) has(rdb *redis.Client) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, known := range c.known {
		if known == rdb {
			return true
		}
	}
	return false
}

// load makes the client learn the slots, once, and waits no longer than ctx.
func (c *cluster) load(ctx context.Context) error {
	if c.loaded.Load() {
		return ctx.Err()
	}
	err := within(ctx, func() error {
		_, err := c.rdb.MasterForKey(ctx, "")
		return err
	})
	if err == nil {
		c.loaded.Store(true)
	}
	return err
}

func (c *cluster) Subscribe(ctx context.Context, sink store.Sink) (store.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := newSubscription(sink, c.listener())
	s.home = newChannelRouter(s, c)
	return s, nil
}

// listener returns a function that makes unconnected PubSubs, each to another master than the last
// one, as that may be gone: a message that is not sharded goes to all nodes.
func (c *cluster) listener() func() *redis.PubSub {
	const patience = time.Second
	begin := rand.Uint32()
	return func() *redis.PubSub {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		begin++
		if c.load(ctx) == nil {
			if rdb, err := c.rdb.MasterForKey(ctx, strconv.FormatUint(uint64(begin), 36)); err == nil {
				return listener(rdb)()
			}
		}
		return c.rdb.Subscribe(context.Background())
	}
}

// within runs what a context does not interrupt. When ctx is over first, it goes on until the
// client's own timeouts.
func within(ctx context.Context, run func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- run() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func hasPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

var errSlots = errors.New("redisstore: cannot read the answer to CLUSTER SLOTS")
