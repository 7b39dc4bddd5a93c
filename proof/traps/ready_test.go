package traps_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
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

// The server keeps from eviction what Config.NoEvict names, in every way in which it is written.
// The server of this test gives BLESS to another command, which notes the keys that it was given.
func TestReadyNoEvict(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	srv := redisserver.Start(t, "--rename-command", "HSETNX", "BLESS", "--maxmemory", "100mb",
		"--maxmemory-policy", "allkeys-lru")
	var log bytes.Buffer
	c := harness.Locker(t, srv.Addr(), &holdfast.Config{NoEvict: true,
		Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := askReady(t, c); err != nil {
		t.Errorf("got %v", err)
	}
	var lease *holdfast.Lease
	var err error
	step := func(what string, want []string, do func() error) {
		t.Helper()
		harness.Must(t, srv, "DEL", "SET")
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		var kept []string
		for _, key := range harness.Must(t, srv, "HKEYS", "SET").([]any) {
			switch key := strings.TrimPrefix(key.(string), "holdfast:"); {
			case strings.HasSuffix(key, ":ready"):
			case strings.HasSuffix(key, ":clock"):
				kept = append(kept, "clock")
			default:
				kept = append(kept, key)
			}
		}
		slices.Sort(kept)
		if kept = slices.Compact(kept); !slices.Equal(kept, want) {
			t.Errorf("%s: kept %q, want %q", what, kept, want)
		}
	}
	locked := func(name string, lock func(context.Context) (*holdfast.Lease, error)) {
		t.Helper()
		step(name, []string{"clock", "{" + name + "}"}, func() error { lease, err = lock(t.Context()); return err })
	}
	locked("m", c.Mutex("m", holdfast.WithoutRenewal()).Lock)
	step("a renewal", []string{"{m}"}, func() error { return lease.Extend(t.Context()) })
	other := harness.Locker(t, srv.Addr(), &holdfast.Config{NoEvict: true})
	handOver := func(what, name string) int64 {
		t.Helper()
		waiter := harness.Claim(t.Context(), other.Mutex(name))
		harness.Waiting(t, srv, name, 1)
		step(what, []string{"clock", "{" + name + "}"}, func() error { return lease.Release() })
		return waiter.Got(t).Token()
	}
	token := handOver("a hand-over of a fixed lease", "m")
	step("a break", []string{"{m}"}, func() error { return c.Break(t.Context(), "m", token) })
	locked("short", c.Mutex("short").Lock)
	handOver("a hand-over", "short")
	locked("rw", c.RWMutex("rw", holdfast.WithoutRenewal()).RLock)
	step("a renewal of a reader", []string{"{rw}"}, func() error { return lease.Extend(t.Context()) })
	harness.Must(t, srv, "EVAL", "for _, key in ipairs(redis.call('KEYS', '*clock')) do redis.call('SET', key, '5000000000000000') end", 0)
	locked("rw", c.RWMutex("rw").RLock)
	step("a latch", []string{"{l}"}, func() error { return c.Latch("l").Set(t.Context(), 1) })
	step("a group", []string{"clock", "{a}", "{b}"}, func() error {
		lease, err = c.All([]string{"a", "b"}).Lock(t.Context())
		return err
	})
	if strings.Contains(log.String(), "maxmemory-policy") {
		t.Errorf("the logger was told: %s", log.String())
	}
}

// A server without the command, or a user that may not send it, refuses Config.NoEvict, and nothing
// is written.
func TestReadyNoEvictRefused(t *testing.T) {
	harness.Long(t)
	for name, c := range map[string]struct {
		opts []string
		kind holdfast.StoreKind
		text string
	}{
		"without the command":    {nil, holdfast.StoreUnsupported, "the server cannot keep keys from eviction, as Redis can from 8.12 on"},
		"without the permission": {[]string{"--rename-command", "HSETNX", "BLESS"}, holdfast.StoreDenied, "NOPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redisserver.Start(t, c.opts...)
			harness.Must(t, srv, "ACL", "SETUSER", "small", "on", ">pw", "~*", "&*", "+@all", "-hsetnx")
			small := harness.Locker(t, srv.Addr(), &holdfast.Config{NoEvict: true}, func(o *redis.Options) {
				o.Username, o.Password = "small", "pw"
			})
			checkKind(t, askReady(t, small), c.kind, c.text, false)
			_, err := small.Mutex("n").TryLock(t.Context())
			var failure *holdfast.StoreError
			if !errors.As(err, &failure) || failure.Kind != c.kind || failure.MayHaveApplied ||
				!strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v", err)
			}
			if v := harness.Must(t, srv, "DBSIZE"); v != int64(0) {
				t.Errorf("%v keys were written", v)
			}
		})
	}
}
