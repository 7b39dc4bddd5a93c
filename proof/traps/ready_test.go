package traps_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// askReady returns what Ready says, once the server answers.
func askReady(t *testing.T, c *holdfast.Client) error {
	t.Helper()
	return harness.Answered(t, func() error { return c.Ready(harness.Within(t, harness.Patience)) })
}

// checkKind fails unless err is a StoreError of the kind, applied nowhere. Evictions and refusals
// are not of the kind that waiting cures.
func checkKind(t *testing.T, err error, kind holdfast.StoreKind, text string, unavailable bool) {
	t.Helper()
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Kind != kind || failure.MayHaveApplied || failure.Op != "ready" ||
		failure.Node == "" || !strings.Contains(err.Error(), text) ||
		errors.Is(err, holdfast.ErrUnavailable) != unavailable {
		t.Errorf("got %v (%+v), want the kind %q", err, failure, kind)
	}
}

// Trap 42: a server that may evict keys is not ready, whatever the policy is called: holds have an
// expiry. The logger hears of it once. A server that may not be asked, or has no limit, is used
// without a word.
func TestReadyEviction(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	for _, policy := range []string{"noeviction", "allkeys-lru", "allkeys-lfu", "allkeys-random", "volatile-lru",
		"volatile-lfu",
		"volatile-random", "volatile-ttl"} {
		for _, memory := range []string{"0", "100mb"} {
			t.Run(policy+" of "+memory, func(t *testing.T) {
				t.Parallel()
				srv := redisserver.Start(t, "--maxmemory", memory, "--maxmemory-policy", policy)
				harness.Must(t, srv, "ACL", "SETUSER", "small", "on", ">pw", "~*", "&*", "+@all", "-info")
				small := func(o *redis.Options) { o.Username, o.Password = "small", "pw" }
				evicts := memory != "0" && policy != "noeviction"
				if err := askReady(t, harness.Locker(t, srv.Addr(), nil)); evicts {
					checkKind(t, err, holdfast.StoreEvicts, policy, false)
				} else if err != nil {
					t.Errorf("got %v", err)
				}
				if err := askReady(t, harness.Locker(t, srv.Addr(), nil, small)); err != nil {
					t.Errorf("without INFO: %v", err)
				}
				if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
					t.Errorf("%v keys were written", v)
				}
				checkWarning(t, evicts, policy, srv.Addr())
				checkWarning(t, false, policy, srv.Addr(), small)
			})
		}
	}
}

// checkWarning checks how often a logger hears of the policy from a client that locks three times.
func checkWarning(t *testing.T, warned bool, policy, addr string, opts ...func(*redis.Options)) {
	t.Helper()
	var log bytes.Buffer // the handler writes one record at a time
	c := harness.Locker(t, addr, &holdfast.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))}, opts...)
	for range 3 {
		harness.Release(t, harness.Lock(t, c.Mutex("n")))
	}
	if err := c.Close(); err != nil { // the log is written in the background until then
		t.Error(err)
	}
	if n := strings.Count(log.String(), "maxmemory-policy"); n > 1 || (n == 1) != warned {
		t.Errorf("warned of %s %d times: %s", policy, n, log.String())
	}
}

// A quorum is ready with a majority. One master that may evict keys spoils it, as it counts.
func TestReadyQuorum(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	d := harness.Deploy(t, harness.Quorum)
	servers, c := d.Masters, d.Client(t, holdfast.Config{TrustNewNodes: true})
	var none *holdfast.QuorumError
	ready := func(what string, c *holdfast.Client, want func(error) bool) {
		t.Helper()
		var err error
		harness.Eventually(t, what, func() bool { // the answer of a machine that stands still is another
			err = c.Ready(harness.Within(t, harness.Patience))
			return want(err)
		})
	}
	ready("new masters do not count", d.Client(t, holdfast.Config{}),
		func(err error) bool { return errors.As(err, &none) && strings.Contains(err.Error(), "does not count") })
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
		return errors.As(err, &none) && errors.Is(err, holdfast.ErrUnavailable) && none.Op == "ready" &&
			none.Need == 2 &&
			!strings.Contains(err.Error(), `""`)
	})
}

// Every master of a cluster is asked, and none is waited for that is silent.
func TestReadyCluster(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	servers := redisserver.StartTwoMasters(t)
	c := harness.Route{Topology: harness.Cluster, Addrs: []string{servers[0].Addr()}}.Client(t, holdfast.Config{})
	harness.Eventually(t, "ready", func() bool { return c.Ready(harness.Within(t, harness.Patience)) == nil })
	for _, srv := range servers {
		harness.Must(t, srv, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
		harness.Must(t, srv, "CONFIG", "SET", "maxmemory", "100mb")
		err := askReady(t, c)
		if checkKind(t, err, holdfast.StoreEvicts, "volatile-lru", false); err != nil &&
			!strings.Contains(err.Error(), srv.Addr()) {
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

// A server without a script engine is not ready, and the error says it in words. From 9.1 on, the
// engine of Valkey is a module.
func TestReadyScriptless(t *testing.T) {
	harness.Long(t)
	for name, start := range map[string]func(t *testing.T) *redisserver.Server{
		"command renamed": func(t *testing.T) *redisserver.Server {
			return redisserver.Start(t, "--rename-command", "EVAL", "", "--rename-command", "EVALSHA", "")
		},
		"module unloaded": func(t *testing.T) *redisserver.Server {
			if engines := harness.Must(t, redisserver.Start(t), "INFO", "scriptingengines"); engines == "" {
				t.Skip("the engine is no module of this server")
			}
			srv := redisserver.Start(t, "--enable-module-command", "yes")
			harness.Must(t, srv, "MODULE", "UNLOAD", "lua")
			return srv
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := harness.Locker(t, start(t).Addr(), nil)
			checkKind(t, askReady(t, c), holdfast.StoreUnsupported, "the server has no script engine", false)
			_, err := c.Mutex("n").TryLock(t.Context())
			var failure *holdfast.StoreError
			if !errors.As(err, &failure) || failure.Kind != holdfast.StoreUnsupported || failure.MayHaveApplied {
				t.Errorf("got %v", err)
			}
		})
	}
}
