package harness

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// The topologies.
const (
	Single   = "single"
	Sentinel = "sentinel"
	Cluster  = "cluster"
	Quorum   = "quorum"
)

// A Route is how a client reaches servers; a child process is told it.
type Route struct {
	Topology string
	Addrs    []string
	Master   string // the sentinels' name for it
}

// A Deployment is servers in one topology. Each fault has a prefix of its own there.
type Deployment struct {
	Route
	Masters []*redisserver.Server                  // when it began
	Of      func(key string) []*redisserver.Server // those that serve a key now
	Prefix  string
	On      func(store.Store) store.Store // what changes the stores of clients; may be nil
}

// SentinelRoute returns the route to the master that sentinels name.
func SentinelRoute(rig *redisserver.Sentinel) Route {
	return Route{Topology: Sentinel, Addrs: rig.Addrs(), Master: rig.Name()}
}

// ClusterRoute returns the route to a cluster.
func ClusterRoute(rig *redisserver.Cluster) Route {
	return Route{Topology: Cluster, Addrs: rig.Addrs()}
}

// Client makes a client on connections of its own, until the test is over.
func (to Route) Client(t *testing.T, config holdfast.Config) *holdfast.Client {
	t.Helper()
	return (&Deployment{Route: to}).Client(t, config)
}

// Deploy starts the servers of a topology.
func Deploy(t *testing.T, topology string) *Deployment {
	t.Helper()
	opts := []string{"--dbfilename", "taken"} // a directory may stand there, so that a server cannot save
	d := &Deployment{Route: Route{Topology: topology}}
	var all []*redisserver.Server
	switch topology {
	case Single:
		all = []*redisserver.Server{redisserver.Start(t, opts...)}
	case Quorum:
		for range 3 {
			all = append(all, redisserver.Start(t, opts...))
		}
	case Sentinel:
		rig := redisserver.StartSentinel(t, opts...)
		d.Route = SentinelRoute(rig)
		all = []*redisserver.Server{rig.Master()}
		rig.Patient() // who is to serve is no fault of this package, also where servers are stopped
	case Cluster:
		rig := redisserver.StartCluster(t, opts...)
		d.Route, all = ClusterRoute(rig), rig.Masters()
		rig.Patient()
		d.Of = func(key string) []*redisserver.Server { return []*redisserver.Server{rig.Master(rig.Slot(key))} }
	}
	if d.Addrs == nil {
		for _, srv := range all {
			d.Addrs = append(d.Addrs, srv.Addr())
		}
	}
	if d.Of == nil {
		d.Of = func(string) []*redisserver.Server { return all }
	}
	d.Masters = all
	return d
}

// Under returns the same servers with another prefix, under which all masters of a quorum count.
func (d *Deployment) Under(t *testing.T, prefix string) *Deployment {
	t.Helper()
	other := *d
	other.Prefix = prefix
	if d.Topology == Quorum {
		founder, judge := other.Client(t, holdfast.Config{TrustNewNodes: true}), other.Client(t, holdfast.Config{})
		Eventually(t, "all masters count", func() bool {
			_, err := founder.Quorum(t.Context())
			nodes, fails := judge.Quorum(t.Context())
			return err == nil && fails == nil && !slices.ContainsFunc(nodes,
				func(n lockinfo.Master) bool { return !n.Counts })
		})
	}
	return &other
}

// Client makes a client on connections of its own.
func (d *Deployment) Client(t *testing.T, config holdfast.Config) *holdfast.Client {
	t.Helper()
	return d.open(t, config, nil)
}

// Clients makes four clients.
func (d *Deployment) Clients(t *testing.T, config holdfast.Config) (all []*holdfast.Client) {
	for range 4 {
		all = append(all, d.Client(t, config))
	}
	return all
}

// Proxied makes n clients behind proxies of their own, one a server.
func (d *Deployment) Proxied(t *testing.T, n int, config holdfast.Config) (all []*holdfast.Client, w *Proxies) {
	t.Helper()
	w = &Proxies{t: t, proxies: map[string]*fault.Proxy{}}
	t.Cleanup(w.close) // after the clients are closed
	for range n {
		all = append(all, d.open(t, config, w))
	}
	return all, w
}

// open makes a client, and closes it at the end of the test.
func (d *Deployment) open(t *testing.T, config holdfast.Config, w *Proxies) *holdfast.Client {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = d.Prefix
	}
	c, closeAll, err := d.Route.Open(&config, d.On, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), closeAll() })
	return c
}

// Open makes a client of what a route leads to, and returns what closes its connections.
func (to Route) Open(config *holdfast.Config, on func(store.Store) store.Store, w *Proxies) (*holdfast.Client,
	func() error, error) {
	if on == nil {
		on = func(s store.Store) store.Store { return s }
	}
	var dial func(ctx context.Context, network, addr string) (net.Conn, error)
	if w != nil {
		dial = w.dial
	}
	const pool = 128
	var all []redis.UniversalClient
	switch to.Topology {
	case Sentinel:
		all = append(all, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: to.Master, SentinelAddrs: to.Addrs,
			Dialer: dial, PoolSize: pool}))
	case Cluster:
		all = append(all, redis.NewClusterClient(&redis.ClusterOptions{Addrs: to.Addrs, DialerRetries: 1, Dialer: dial,
			PoolSize: pool}))
	default:
		for _, addr := range to.Addrs {
			all = append(all, redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, Dialer: dial,
				PoolSize: pool}))
		}
	}
	closeAll := func() (err error) {
		for _, rdb := range all {
			err = errors.Join(err, rdb.Close())
		}
		return err
	}
	stores := make([]store.Store, len(all))
	for i, rdb := range all {
		stores[i] = on(redisstore.New(rdb))
	}
	var c *holdfast.Client
	var err error
	if to.Topology == Quorum {
		if config.MaxTTL == 0 && config.TTL > 0 {
			config.MaxTTL = config.TTL
		}
		c, err = holdfast.NewQuorum(stores, config)
	} else {
		c, err = holdfast.New(stores[0], config)
	}
	if err != nil {
		return nil, nil, errors.Join(err, closeAll())
	}
	return c, closeAll, nil
}

// Left returns the keys under the prefix, but for those that stay by design.
func (d *Deployment) Left(t *testing.T) (keys []string) {
	t.Helper()
	for _, srv := range d.Masters {
		for _, key := range Must(t, srv, "KEYS", d.Prefix+":*").([]any) {
			if key := key.(string); !strings.HasSuffix(key, ":clock") && !strings.HasSuffix(key, ":{%quorum}") {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// LeftAtLast waits until nothing is left under the prefix, and returns what stays.
func (d *Deployment) LeftAtLast(t *testing.T) (keys []string) {
	t.Helper()
	for late := time.Now().Add(Patience); time.Now().Before(late); <-time.After(5 * time.Millisecond) {
		if keys = d.Left(t); len(keys) == 0 {
			break
		}
	}
	return keys
}

// IsClean fails the test if anything stays under the prefix.
func (d *Deployment) IsClean(t *testing.T) {
	t.Helper()
	if keys := d.LeftAtLast(t); len(keys) > 0 {
		t.Fatalf("%d keys are left, such as %q", len(keys), keys[0])
	}
}

// Key returns the key of the state of a name.
func (d *Deployment) Key(name string) string {
	if d.Topology == Quorum {
		return d.Prefix + ":{%quorum}:" + name
	}
	return fmt.Sprintf("%s:{%s}", d.Prefix, name)
}

// Each does something to all masters.
func (d *Deployment) Each(f func(*redisserver.Server)) {
	for _, srv := range d.Masters {
		f(srv)
	}
}

// Proxies are proxies to servers, made as a client dials them.
type Proxies struct {
	t *testing.T

	mu      sync.Mutex
	proxies map[string]*fault.Proxy // nil: closed
}

func (w *Proxies) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	w.mu.Lock()
	if w.proxies == nil { // what is dialed behind a client that is closed
		w.mu.Unlock()
		return nil, net.ErrClosed
	}
	p := w.proxies[addr]
	if p == nil {
		p = fault.Start(w.t, addr)
		w.proxies[addr] = p
	}
	w.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, network, p.Addr())
}

// close makes no more of them: those there are end with the test.
func (w *Proxies) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxies = nil
}

// Silenced does something while nothing goes through: a renewal between two steps of it would undo
// the first, where a majority has the rest.
func (w *Proxies) Silenced(f func()) {
	w.Each((*fault.Proxy).Silence)
	defer w.Each((*fault.Proxy).Speak)
	f()
}

// Each does something to all of them.
func (w *Proxies) Each(f func(*fault.Proxy)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.proxies {
		f(p)
	}
}
