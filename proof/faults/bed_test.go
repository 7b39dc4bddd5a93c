package faults

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
	single   = "single"
	sentinel = "sentinel"
	cluster  = "cluster"
	quorum   = "quorum"
)

// A way is how a client reaches servers; a child process is told it.
type way struct {
	Topology string
	Addrs    []string
	Master   string            // the sentinels' name for it
	Proxies  map[string]string // by the address of a server, that of a proxy to it; others are dialed themselves
}

// A bed is servers in one topology. Each fault has a prefix of its own there.
type bed struct {
	way
	masters func() []*redisserver.Server // those that serve now
	of      func(key string) []*redisserver.Server
	prefix  string
}

// lay starts the servers of a topology.
func lay(t *testing.T, topology string) *bed {
	t.Helper()
	opts := []string{"--dbfilename", "taken"} // see refusals
	b := &bed{way: way{Topology: topology}}
	var all []*redisserver.Server
	switch topology {
	case single:
		all = []*redisserver.Server{redisserver.Start(t, opts...)}
	case quorum:
		for range 3 {
			all = append(all, redisserver.Start(t, opts...))
		}
	case sentinel:
		rig := redisserver.StartSentinel(t, opts...)
		b.Addrs, b.Master = rig.Addrs(), rig.Name()
		all = []*redisserver.Server{rig.Master()}
		rig.Patient() // who is to serve is no fault of this package, also where servers are stopped
	case cluster:
		rig := redisserver.StartCluster(t, opts...)
		b.Addrs, all = rig.Addrs(), rig.Masters()
		rig.Patient()
		b.of = func(key string) []*redisserver.Server { return []*redisserver.Server{rig.Master(rig.Slot(key))} }
	}
	if b.Addrs == nil {
		for _, srv := range all {
			b.Addrs = append(b.Addrs, srv.Addr())
		}
	}
	if b.of == nil {
		b.of = func(string) []*redisserver.Server { return all }
	}
	b.masters = func() []*redisserver.Server { return all }
	return b
}

// under is the same servers with another prefix, under which all masters of a quorum count.
func (b *bed) under(t *testing.T, prefix string) *bed {
	t.Helper()
	other := *b
	other.prefix = prefix
	if b.Topology == quorum {
		founder, judge := other.client(t, holdfast.Config{TrustNewNodes: true}, nil), other.client(t, holdfast.Config{}, nil)
		eventually(t, "all masters count", func() bool {
			_, err := founder.Quorum(t.Context())
			nodes, fails := judge.Quorum(t.Context())
			return err == nil && fails == nil && !slices.ContainsFunc(nodes, func(n lockinfo.Master) bool { return !n.Counts })
		})
	}
	return &other
}

// client is a client on connections of its own, on stores that may be changed.
func (b *bed) client(t *testing.T, config holdfast.Config, on func(store.Store) store.Store) *holdfast.Client {
	t.Helper()
	return b.open(t, config, on, nil)
}

// crowd is four clients.
func (b *bed) crowd(t *testing.T, config holdfast.Config, on func(store.Store) store.Store) (all []*holdfast.Client) {
	for range 4 {
		all = append(all, b.client(t, config, on))
	}
	return all
}

// wired is a client behind proxies of its own, one a server.
func (b *bed) wired(t *testing.T, config holdfast.Config) (*holdfast.Client, *wires) {
	t.Helper()
	w := &wires{t: t, proxies: map[string]*fault.Proxy{}}
	t.Cleanup(w.close) // after the client is closed
	return b.open(t, config, nil, w), w
}

// open makes a client, and closes it at the end of the test.
func (b *bed) open(t *testing.T, config holdfast.Config, on func(store.Store) store.Store, w *wires) *holdfast.Client {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = b.prefix
	}
	c, closeAll, err := b.way.open(&config, on, w)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = c.Close(), closeAll() })
	return c
}

// open makes a client of what a way leads to.
func (to way) open(config *holdfast.Config, on func(store.Store) store.Store, w *wires) (*holdfast.Client, func() error, error) {
	if on == nil {
		on = func(s store.Store) store.Store { return s }
	}
	var dial func(ctx context.Context, network, addr string) (net.Conn, error)
	switch {
	case w != nil:
		dial = w.dial
	case to.Proxies != nil:
		dial = to.dial
	}
	const pool = 128
	var all []redis.UniversalClient
	switch to.Topology {
	case sentinel:
		all = append(all, redis.NewFailoverClient(&redis.FailoverOptions{MasterName: to.Master, SentinelAddrs: to.Addrs, Dialer: dial, PoolSize: pool}))
	case cluster:
		all = append(all, redis.NewClusterClient(&redis.ClusterOptions{Addrs: to.Addrs, DialerRetries: 1, Dialer: dial, PoolSize: pool}))
	default:
		for _, addr := range to.Addrs {
			all = append(all, redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, Dialer: dial, PoolSize: pool}))
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
	if to.Topology == quorum {
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

// dial dials a server, or the proxy to it.
func (to way) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if proxy, ok := to.Proxies[addr]; ok {
		addr = proxy
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// behind is the way through proxies of its own, one a server.
func (b *bed) behind(t *testing.T) (way, []*fault.Proxy) {
	t.Helper()
	to, all := b.way, []*fault.Proxy(nil)
	to.Proxies = map[string]string{}
	addrs := slices.Clone(b.Addrs)
	for _, srv := range b.masters() {
		addrs = append(addrs, srv.Addr())
	}
	for _, addr := range addrs {
		if to.Proxies[addr] == "" {
			p := fault.Start(t, addr)
			to.Proxies[addr], all = p.Addr(), append(all, p)
		}
	}
	return to, all
}

// left are the keys under the prefix, but for those that stay by design.
func (b *bed) left(t *testing.T) (keys []string) {
	t.Helper()
	for _, srv := range b.masters() {
		for _, key := range do(t, srv, "KEYS", b.prefix+":*").([]any) {
			if key := key.(string); !strings.HasSuffix(key, ":clock") && !strings.HasSuffix(key, ":{%quorum}") {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// clean waits until nothing is left of a fault.
func (b *bed) clean(t *testing.T) {
	t.Helper()
	var keys []string
	for late := time.Now().Add(patience); time.Now().Before(late); pause(5 * time.Millisecond) {
		if keys = b.left(t); len(keys) == 0 {
			return
		}
	}
	t.Fatalf("%d keys are left, such as %q", len(keys), keys[0])
}

// key is that of the state of a name.
func (b *bed) key(name string) string {
	if b.Topology == quorum {
		return b.prefix + ":{%quorum}:" + name
	}
	return fmt.Sprintf("%s:{%s}", b.prefix, name)
}

// each does something to all masters.
func (b *bed) each(f func(*redisserver.Server)) {
	for _, srv := range b.masters() {
		f(srv)
	}
}

// wires are proxies to servers, made as a client dials them.
type wires struct {
	t *testing.T

	mu      sync.Mutex
	proxies map[string]*fault.Proxy // nil: closed
}

func (w *wires) dial(ctx context.Context, network, addr string) (net.Conn, error) {
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
func (w *wires) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.proxies = nil
}

// still does something while nothing goes through: a renewal between two steps of it would undo the
// first, where a majority has the rest.
func (w *wires) still(f func()) {
	w.each(func(_ string, p *fault.Proxy) { p.Silence() })
	defer w.each(func(_ string, p *fault.Proxy) { p.Speak() })
	f()
}

// each does something to all of them.
func (w *wires) each(f func(addr string, p *fault.Proxy)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for addr, p := range w.proxies {
		f(addr, p)
	}
}
