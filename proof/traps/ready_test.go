package traps_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/store"
)

// readiness is what Ready says, once there is an answer: a machine that stands still for a second
// gives none.
func readiness(t *testing.T, c *holdfast.Client) (err error) {
	t.Helper()
	harness.Eventually(t, "an answer", func() bool {
		err = c.Ready(harness.Within(t, harness.Patience))
		var failure *holdfast.StoreError
		return !errors.As(err, &failure) || failure.Kind != holdfast.StoreNoAnswer
	})
	return err
}

// isKind fails unless err is a StoreError of the kind, applied nowhere. Evictions and refusals are
// not of the kind that waiting cures.
func isKind(t *testing.T, err error, kind holdfast.StoreKind, text string, unavailable bool) {
	t.Helper()
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Kind != kind || failure.MayHaveApplied || failure.Op != "ready" ||
		failure.Node == "" || !strings.Contains(err.Error(), text) || errors.Is(err, holdfast.ErrUnavailable) != unavailable {
		t.Errorf("got %v (%+v), want the kind %q", err, failure, kind)
	}
}

// Trap 42: a server that may evict keys is not ready, whatever the policy is called: holds have an
// expiry.
func TestReadyEviction(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru", "volatile-lfu",
		"volatile-random", "volatile-ttl"} {
		for _, memory := range []string{"0", "100mb"} {
			t.Run(policy+" of "+memory, func(t *testing.T) {
				t.Parallel()
				srv := redisserver.Start(t, "--maxmemory", memory, "--maxmemory-policy", policy)
				harness.Must(t, srv, "ACL", "SETUSER", "small", "on", ">pw", "~*", "&*", "+@all", "-info")
				small := harness.Locker(t, srv.Addr(), nil, func(o *redis.Options) { o.Username, o.Password = "small", "pw" })
				err := readiness(t, harness.Locker(t, srv.Addr(), nil))
				if memory == "0" || policy == "noeviction" {
					if err != nil {
						t.Errorf("got %v", err)
					}
				} else {
					isKind(t, err, holdfast.StoreEvicts, policy, false)
				}
				if err := readiness(t, small); err != nil {
					t.Errorf("without INFO: %v", err)
				}
				if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
					t.Errorf("%v keys were written", v)
				}
			})
		}
	}
}

// Trap 22: each server that cannot serve is named for what it is.
func TestReadyRefusedSaysWhy(t *testing.T) {
	t.Parallel()
	few := func(o *redis.Options) { o.Username, o.Password = "few", "pw" }
	for name, test := range map[string]struct {
		opts        []string
		make        func(*testing.T, *redisserver.Server)
		client      func(*redis.Options)
		kind        holdfast.StoreKind
		text        string
		unavailable bool
	}{
		"down": {make: func(_ *testing.T, srv *redisserver.Server) { srv.Kill() }, kind: holdfast.StoreUnreachable, unavailable: true},
		"wrong password": {make: user("+@all"), client: func(o *redis.Options) { o.Username, o.Password = "few", "guess" },
			kind: holdfast.StoreDenied, text: "WRONGPASS"},
		"no password": {make: func(t *testing.T, srv *redisserver.Server) {
			harness.Must(t, srv, "ACL", "SETUSER", "default", "resetpass", ">pw")
		}, kind: holdfast.StoreDenied, text: "NOAUTH"},
		"nothing":   {make: user("-@all"), client: few, kind: holdfast.StoreDenied, text: "NOPERM"},
		"no EVAL":   {make: user("+@all", "-eval"), client: few, kind: holdfast.StoreDenied, text: "eval"},
		"no digest": {make: user("+@all", "-evalsha"), client: few, kind: holdfast.StoreDenied, text: "evalsha"},
		"no ZADD":   {make: user("+@all", "-zadd"), client: few, kind: holdfast.StoreDenied, text: "ZADD"},
		"no keys":   {make: user("+@all", "resetkeys", "~other*"), client: few, kind: holdfast.StoreDenied},
		"a replica": {make: func(t *testing.T, srv *redisserver.Server) { harness.Must(t, srv, "REPLICAOF", "127.0.0.1", "1") },
			kind: holdfast.StoreReadOnly, unavailable: true},
		"too few replicas": {make: func(t *testing.T, srv *redisserver.Server) {
			harness.Must(t, srv, "CONFIG", "SET", "min-replicas-to-write", 1)
		}, kind: holdfast.StoreNoReplicas, text: "NOREPLICAS", unavailable: true},
		"out of memory":  {make: full, kind: holdfast.StoreOutOfMemory, unavailable: true},
		"cannot persist": {opts: []string{"--dbfilename", "taken"}, make: unsaved, kind: holdfast.StoreMisconfigured, text: "MISCONF", unavailable: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, test.opts...)
			test.make(t, srv)
			var opts []func(*redis.Options)
			if test.client != nil {
				opts = append(opts, test.client)
			}
			c := harness.Locker(t, srv.Addr(), nil, opts...)
			isKind(t, readiness(t, c), test.kind, test.text, test.unavailable)
			isKind(t, readiness(t, c), test.kind, test.text, test.unavailable) // now that the scripts were sent
		})
	}
}

// A server that is silent is given half a second for each of two round trips, and no more than ctx.
func TestReadyIsBounded(t *testing.T) {
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	if err := readiness(t, c); err != nil {
		t.Fatal(err)
	}
	srv.Stop()
	defer srv.Continue()
	began := time.Now()
	err := c.Ready(t.Context())
	isKind(t, err, holdfast.StoreNoAnswer, "", true)
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { asked <- c.Ready(ctx) }()
	cancel()
	if err := <-asked; !errors.Is(err, context.Canceled) || errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
}

// Trap 28: a server that reads its data is not ready, and says so.
func TestReadyLoading(t *testing.T) {
	t.Parallel()
	slow := []string{"--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"}
	if srv, err := redisserver.Run(t.Context(), slow...); err != nil {
		t.Skip("this server cannot be made to load slowly: ", err)
	} else {
		_ = srv.Close()
	}
	srv := redisserver.Start(t, slow...)
	for i := range 1500 {
		harness.Must(t, srv, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 1024))
	}
	harness.Must(t, srv, "SAVE")
	c := harness.Locker(t, srv.Addr(), nil)
	srv.Kill()
	restarted := make(chan error, 1)
	go func() { restarted <- srv.Restart() }()
	seen := false
	harness.Eventually(t, "ready", func() bool {
		err := c.Ready(harness.Within(t, harness.Patience))
		var failure *holdfast.StoreError
		seen = seen || errors.As(err, &failure) && failure.Kind == holdfast.StoreLoading
		return err == nil
	})
	if err := <-restarted; err != nil {
		t.Fatal(err)
	}
	if !seen {
		t.Skip("it was loaded too quickly to be seen")
	}
}

// A quorum is ready with a majority. One master that may evict keys spoils it, as it counts.
func TestReadyQuorum(t *testing.T) {
	t.Parallel()
	var servers []*redisserver.Server
	var stores []store.Store
	for range 3 {
		srv := redisserver.Start(t)
		servers = append(servers, srv)
		stores = append(stores, redisstore.New(harness.Client(t, srv)))
	}
	open := func(trust bool) *holdfast.Client {
		c, err := holdfast.NewQuorum(stores, &holdfast.Config{TrustNewNodes: trust})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	c := open(true)
	var none *holdfast.QuorumError
	ready := func(what string, c *holdfast.Client, want func(error) bool) {
		t.Helper()
		var err error
		harness.Eventually(t, what, func() bool { // the answer of a machine that stands still is another
			err = c.Ready(harness.Within(t, harness.Patience))
			return want(err)
		})
	}
	ready("new masters do not count", open(false), func(err error) bool { return errors.As(err, &none) && strings.Contains(err.Error(), "does not count") })
	ready("all are ready", c, func(err error) bool { return err == nil })
	harness.Must(t, servers[0], "CONFIG", "SET", "maxmemory-policy", "volatile-ttl")
	harness.Must(t, servers[0], "CONFIG", "SET", "maxmemory", "100mb")
	var evicts *holdfast.StoreError
	ready("one evicts", c, func(err error) bool {
		return errors.As(err, &evicts) && evicts.Kind == holdfast.StoreEvicts && evicts.Node == "node 1"
	})
	harness.Must(t, servers[0], "CONFIG", "SET", "maxmemory", "0")
	servers[1].Kill()
	ready("two are a majority", c, func(err error) bool { return err == nil })
	harness.Must(t, servers[2], "REPLICAOF", "127.0.0.1", "1")
	ready("one is none", c, func(err error) bool {
		return errors.As(err, &none) && errors.Is(err, holdfast.ErrUnavailable) && none.Op == "ready" && none.Need == 2 &&
			!strings.Contains(err.Error(), `""`)
	})
}

// Trap 47: the smallest user of a quorum, as docs/quorum.md has it, can ask. The table of
// SECURITY.md has the same for one server and a cluster.
func TestReadyQuorumSmallestUser(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/quorum.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := []any{"ACL", "SETUSER", "small"}
	_, text, _ := strings.Cut(string(page), "reset on >PASSWORD")
	text, _, _ = strings.Cut(text, "```")
	for _, rule := range strings.Fields("reset on >pw " + text) {
		rules = append(rules, rule)
	}
	if len(rules) < 20 {
		t.Fatalf("docs/quorum.md has %v", rules)
	}
	var stores []store.Store
	for range 3 {
		srv := redisserver.Start(t)
		harness.Must(t, srv, rules...)
		stores = append(stores, redisstore.New(harness.Client(t, srv, func(o *redis.Options) { o.Username, o.Password = "small", "pw" })))
	}
	c, err := holdfast.NewQuorum(stores, &holdfast.Config{TrustNewNodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := harness.Answered(t, func() error { return c.Ready(harness.Within(t, harness.Patience)) }); err != nil {
		t.Error(err)
	}
}

// Every master of a cluster is asked.
func TestReadyCluster(t *testing.T) {
	t.Parallel()
	servers, _ := redisserver.StartTwoMasters(t)
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{servers[0].Addr()}, DialerRetries: 1})
	t.Cleanup(func() { _ = rdb.Close() })
	c := harness.Open(t, rdb, nil)
	t.Cleanup(func() { _ = c.Close() })
	harness.Eventually(t, "ready", func() bool { return c.Ready(harness.Within(t, harness.Patience)) == nil })
	for _, srv := range servers {
		harness.Must(t, srv, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		harness.Must(t, srv, "CONFIG", "SET", "maxmemory", "100mb")
		err := readiness(t, c)
		if isKind(t, err, holdfast.StoreEvicts, "volatile-lru", false); err != nil && !strings.Contains(err.Error(), srv.Addr()) {
			t.Errorf("got %v, want that %s may evict", err, srv.Addr())
		}
		harness.Must(t, srv, "CONFIG", "SET", "maxmemory", 0)
	}
	servers[1].Stop()
	err := c.Ready(t.Context())
	servers[1].Continue()
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Node != servers[1].Addr() || !errors.Is(err, holdfast.ErrUnavailable) {
		t.Errorf("one stands still: got %v", err)
	}
	for _, srv := range servers {
		if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
			t.Errorf("%v keys were written", v)
		}
	}
}
