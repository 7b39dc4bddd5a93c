package topology_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/valkey-io/valkey-go"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/rueidisstore"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/valkeystore"
)

// libraries open a client of each library, and a store on it. The function pops an element of a
// list and waits for one, as a service does that shares its client with its locks.
var libraries = map[string]func(testing.TB, string) (s store.Store, pop func(list string) error){
	"go-redis": func(tb testing.TB, addr string) (store.Store, func(string) error) {
		rdb := redis.NewClient(&redis.Options{Addr: addr, PoolSize: 20})
		tb.Cleanup(func() { _ = rdb.Close() })
		return redisstore.New(rdb), func(list string) error { return rdb.BLPop(context.Background(), 0, list).Err() }
	},
	"rueidis": func(tb testing.TB, addr string) (store.Store, func(string) error) {
		return openRueidis(tb, rueidis.ClientOption{InitAddress: []string{addr}})
	},
	"rueidis, pipelining": func(tb testing.TB, addr string) (store.Store, func(string) error) {
		return openRueidis(tb, rueidis.ClientOption{InitAddress: []string{addr}, AlwaysPipelining: true})
	},
	"valkey-go": func(tb testing.TB, addr string) (store.Store, func(string) error) {
		rdb, err := valkey.NewClient(valkey.ClientOption{InitAddress: []string{addr}, ForceSingleClient: true})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(rdb.Close)
		return valkeystore.New(rdb), func(list string) error {
			return rdb.Do(context.Background(), rdb.B().Blpop().Key(list).Timeout(0).Build()).Error()
		}
	},
}

func openRueidis(tb testing.TB, opt rueidis.ClientOption) (store.Store, func(string) error) {
	opt.ForceSingleClient = true
	rdb, err := rueidis.NewClient(opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(rdb.Close)
	return rueidisstore.New(rdb), func(list string) error {
		return rdb.Do(context.Background(), rdb.B().Blpop().Key(list).Timeout(0).Build()).Error()
	}
}

// everyLibrary runs a test with a client of each library. Its pool has ten connections that rest.
func everyLibrary(t *testing.T, test func(t *testing.T, open func(*testing.T, *redisserver.Server, *fault.Proxy) *holdfast.Client)) {
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(t *testing.T, srv *redisserver.Server, p *fault.Proxy) *holdfast.Client {
				s, pop := library(t, p.Addr())
				client, err := holdfast.New(s, harness.Brief(6*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = client.Close() })
				rest(t, srv, pop, 10)
				return client
			})
		})
	}
}

// rest has n connections of a client's pool used at one time, so that as many rest afterwards.
func rest(t *testing.T, srv *redisserver.Server, pop func(list string) error, n int) {
	t.Helper()
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := pop("elements"); err != nil {
				t.Error(err)
			}
		})
	}
	blocked := fmt.Sprintf("blocked_clients:%d", n)
	harness.Eventually(t, "all wait", func() bool {
		return strings.Contains(harness.Must(t, srv, "INFO", "clients").(string), blocked)
	})
	for range n {
		harness.Must(t, srv, "RPUSH", "elements", "x")
	}
	all.Wait()
}

// A master and its replica change their roles, the address leads to the new master, and no
// connection is closed, as with a managed endpoint. The next request goes to the new master: of two
// tries of a free name the second gets it, leases live, and messages come from the new master.
func TestDemotedMaster(t *testing.T) {
	harness.Long(t)
	everyLibrary(t, func(t *testing.T, open func(*testing.T, *redisserver.Server, *fault.Proxy) *holdfast.Client) {
		old, replicas := redisserver.StartReplicated(t, 1)
		next := replicas[0]
		p := fault.Start(t, old.Addr())
		client := open(t, old, p)
		lease := harness.Lock(t, client.Mutex("held"))
		other := harness.Lock(t, harness.Locker(t, p.Addr(), nil).Mutex("queued"))
		waiter := harness.Claim(harness.Within(t, harness.Patience), client.Mutex("queued"))
		harness.Waiting(t, old, "queued", 1)
		harness.Must(t, old, "WAIT", 1, 0)

		harness.Must(t, next, "REPLICAOF", "NO", "ONE")
		p.Lead(next.Addr())
		harness.Must(t, old, "REPLICAOF", "127.0.0.1", next.Port())
		swapped := time.Now()

		first := harness.Given(client.Mutex("free").TryLock(t.Context()))
		t.Log("the first: ", first)
		if !strings.Contains(first.Error(), "the connection led to a replica") {
			t.Errorf("the error does not say it: %v", first)
		}
		if err := harness.Given(client.Mutex("free").TryLock(t.Context())); err != nil {
			t.Errorf("the second: %v", err)
		}
		t.Logf("back after %v", time.Since(swapped))
		harness.Eventually(t, "it listens to the new master", func() bool { return harness.Listening(t, next) > 0 })
		if err := other.Release(t.Context()); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err)
		}
		harness.HandBack(t, waiter.Got(t))
		select {
		case <-lease.Done():
			t.Error(lease.Err())
		case <-time.After(time.Until(swapped.Add(8 * time.Second))): // longer than its TTL
		}
		harness.Release(t, lease)
	})
}

// All connections of a pool fall silent, and none is closed, as when a NAT forgets its table. A
// lease lives and a wait ends, as new connections work.
func TestSilentPool(t *testing.T) {
	harness.Long(t)
	t.Run("lease", func(t *testing.T) {
		everyLibrary(t, func(t *testing.T, open func(*testing.T, *redisserver.Server, *fault.Proxy) *holdfast.Client) {
			srv, p := harness.Proxied(t)
			client := open(t, srv, p)
			lease := harness.Lock(t, client.Mutex("held"))
			for range 3 { // the connections that have come since fall silent as well
				p.Strand()
				select {
				case <-lease.Done():
					t.Fatal(lease.Err())
				case <-time.After(8 * time.Second): // longer than its TTL
				}
			}
			harness.Release(t, lease)
		})
	})
	t.Run("wait", func(t *testing.T) {
		everyLibrary(t, func(t *testing.T, open func(*testing.T, *redisserver.Server, *fault.Proxy) *holdfast.Client) {
			srv, p := harness.Proxied(t)
			client := open(t, srv, p)
			p.Strand()
			began := time.Now()
			if err := harness.Given(client.Mutex("free").Lock(harness.Within(t, 5*time.Second))); err != nil {
				t.Error(err)
			}
			t.Logf("took %v", time.Since(began))
		})
	})
	t.Run("queue", func(t *testing.T) {
		everyLibrary(t, func(t *testing.T, open func(*testing.T, *redisserver.Server, *fault.Proxy) *holdfast.Client) {
			srv, p := harness.Proxied(t)
			client := open(t, srv, p)
			holder := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("held"))
			waiter := harness.Claim(harness.Within(t, harness.Patience), client.Mutex("held"))
			harness.Waiting(t, srv, "held", 1)
			p.Strand() // also the connection for messages
			harness.Release(t, holder)
			began := time.Now()
			harness.HandBack(t, waiter.Got(t))
			t.Logf("took %v", time.Since(began))
		})
	})
}
