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
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
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
var libraries = map[string]func(tb testing.TB, addr string) (s store.Store, pop func(list string) error){
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
		fatal.If(tb, err)
		tb.Cleanup(rdb.Close)
		return valkeystore.New(rdb), func(list string) error {
			return rdb.Do(context.Background(), rdb.B().Blpop().Key(list).Timeout(0).Build()).Error()
		}
	},
}

func openRueidis(tb testing.TB, opt rueidis.ClientOption) (store.Store, func(string) error) {
	opt.ForceSingleClient = true
	rdb, err := rueidis.NewClient(opt)
	fatal.If(tb, err)
	tb.Cleanup(rdb.Close)
	return rueidisstore.New(rdb), func(list string) error {
		return rdb.Do(context.Background(), rdb.B().Blpop().Key(list).Timeout(0).Build()).Error()
	}
}

// A service has a client of holdfast, and uses the same connections.
type service struct {
	t      *testing.T
	srv    *redisserver.Server
	client *holdfast.Client
	pop    func(list string) error
	all    sync.WaitGroup // its calls of pop
}

// everyLibrary runs a test for a service with a client of each library, whose pool has ten
// connections that rest.
func everyLibrary(t *testing.T, test func(t *testing.T, open func(srv *redisserver.Server, addr string) *service)) {
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, func(srv *redisserver.Server, addr string) *service {
				st, pop := library(t, addr)
				client, err := holdfast.New(st, harness.Brief(10*time.Second))
				fatal.If(t, err)
				t.Cleanup(func() { _ = client.Close() })
				s := &service{t: t, srv: srv, client: client, pop: pop}
				s.occupy(10)
				s.rest(10)
				return s
			})
		})
	}
}

// occupy has n connections of the pool wait for elements.
func (s *service) occupy(n int) {
	s.t.Helper()
	for range n {
		s.all.Go(func() {
			if err := s.pop("elements"); err != nil {
				s.t.Error(err)
			}
		})
	}
	harness.Eventually(s.t, "all wait", func() bool {
		return strings.Contains(harness.Must(s.t, s.srv, "INFO", "clients").(string),
			fmt.Sprintf("blocked_clients:%d", n))
	})
}

// rest has the n connections rest that occupy took.
func (s *service) rest(n int) {
	s.t.Helper()
	for range n {
		harness.Must(s.t, s.srv, "RPUSH", "elements", "x")
	}
	s.all.Wait()
}

// lives fails the test if a lease is lost within d.
func (s *service) lives(lease *holdfast.Lease, d time.Duration) {
	s.t.Helper()
	select {
	case <-lease.Done():
		s.t.Fatal(lease.Err())
	case <-time.After(d):
	}
}

// A master and its replica change their roles, the address leads to the new master, and no
// connection is closed, as with a managed endpoint. The next request goes to the new master: the
// second try of a free name gets it, leases live, and messages come from the new master.
func TestDemotedMaster(t *testing.T) {
	harness.Long(t)
	everyLibrary(t, func(t *testing.T, open func(*redisserver.Server, string) *service) {
		old, replicas := redisserver.StartReplicated(t, 1)
		next := replicas[0]
		p := fault.Start(t, old.Addr())
		s := open(old, p.Addr())
		lease := harness.Lock(t, s.client.Mutex("held"))
		other := harness.Lock(t, harness.Locker(t, p.Addr(), nil).Mutex("queued"))
		waiter := harness.Claim(harness.Within(t, harness.Patience), s.client.Mutex("queued"))
		harness.Waiting(t, old, "queued", 1)
		harness.Must(t, old, "WAIT", 1, 0)

		harness.Must(t, next, "REPLICAOF", "NO", "ONE")
		p.Lead(next.Addr())
		harness.Must(t, old, "REPLICAOF", "127.0.0.1", next.Port())
		swapped := time.Now()
		tries := 0
		harness.Eventually(t, "back", func() bool {
			tries++
			err := harness.Given(s.client.Mutex("free").TryLock(t.Context()))
			if err != nil && !strings.Contains(err.Error(), "the connection led to a replica") {
				t.Errorf("the error does not say it: %v", err)
			}
			return err == nil
		})
		t.Logf("back after %v, at try %d", time.Since(swapped), tries)
		if harness.Measured() && tries > 2 {
			t.Errorf("back at try %d", tries)
		}
		harness.Eventually(t, "it listens to the new master", func() bool { return harness.Listening(t, next) > 0 })
		if err := other.Release(); err != nil && !errors.Is(err, holdfast.ErrUnavailable) {
			t.Error(err)
		}
		harness.HandBack(t, waiter.Got(t))
		s.lives(lease, 12*time.Second) // longer than its TTL
		harness.Release(t, lease)
	})
}

// All connections of a pool fall silent, and none is closed, as when a NAT forgets its table. A
// lease lives and a wait ends, as new connections work.
func TestSilentPool(t *testing.T) {
	harness.Long(t)
	for name, test := range map[string]func(t *testing.T, s *service, p *fault.Proxy){
		"lease": func(t *testing.T, s *service, p *fault.Proxy) {
			lease := harness.Lock(t, s.client.Mutex("held"))
			for range 2 { // the connections that have come since fall silent as well
				p.Strand()
				s.lives(lease, 12*time.Second) // longer than its TTL
			}
			harness.Release(t, lease)
		},
		"wait": func(t *testing.T, s *service, p *fault.Proxy) {
			p.Strand()
			began, most := time.Now(), harness.Patience
			if harness.Measured() {
				most = 5 * time.Second
			}
			fatal.If(t, harness.Given(s.client.Mutex("free").Lock(harness.Within(t, most))))
			t.Logf("took %v", time.Since(began))
		},
		"queue": func(t *testing.T, s *service, p *fault.Proxy) {
			holder := harness.Lock(t, harness.Locker(t, s.srv.Addr(), nil).Mutex("held"))
			waiter := harness.Claim(harness.Within(t, harness.Patience), s.client.Mutex("held"))
			harness.Waiting(t, s.srv, "held", 1)
			p.Strand() // also the connection for messages
			harness.Release(t, holder)
			began := time.Now()
			harness.HandBack(t, waiter.Got(t))
			t.Logf("took %v", time.Since(began))
		},
	} {
		t.Run(name, func(t *testing.T) {
			everyLibrary(t, func(t *testing.T, open func(*redisserver.Server, string) *service) {
				srv, p := harness.Proxied(t)
				test(t, open(srv, p.Addr()), p)
			})
		})
	}
}

// The service itself keeps all connections of its pool busy. A lease that is lost for that says so,
// and so does a request, instead of blaming the server. A client of rueidis makes one more
// connection once a request has waited in vain.
func TestBusyPool(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	srv, p := harness.Proxied(t)
	rdb := harness.Client(t, p.Addr(), func(o *redis.Options) { o.PoolSize = 4 })
	client := harness.Open(t, rdb, harness.Brief(time.Second))
	defer client.Close()
	s := &service{t: t, srv: srv, client: client,
		pop: func(list string) error { return rdb.BLPop(t.Context(), 0, list).Err() }}
	lease := harness.Lock(t, client.Mutex("held"))
	s.occupy(4)
	harness.Signalled(t, "lost", lease.Done())
	_, tried := client.Mutex("free").TryLock(t.Context())
	for _, err := range []error{lease.Err(), tried} {
		var failed *holdfast.StoreError
		if !errors.As(err, &failed) || failed.Kind != holdfast.StoreNotSent || failed.Node != "" ||
			failed.MayHaveApplied || !errors.Is(err, holdfast.ErrUnavailable) {
			t.Errorf("got %+v", err)
		}
		if !strings.Contains(err.Error(), "no free connection in the client's pool: 4 of 4 in use") {
			t.Errorf("the place is not named: %v", err)
		}
	}
	s.rest(4)
}

// The server closes all connections to free the memory of its clients (maxmemory-clients). A lease
// lives, and who waits is woken.
func TestEvictedClients(t *testing.T) {
	harness.Long(t)
	everyLibrary(t, func(t *testing.T, open func(*redisserver.Server, string) *service) {
		srv := redisserver.Start(t)
		if v := harness.Must(t, srv, "CONFIG", "GET", "maxmemory-clients"); len(v.([]any)) == 0 {
			t.Skip("the server has no maxmemory-clients, which is of Redis 7.0")
		}
		s := open(srv, srv.Addr())
		lease := harness.Lock(t, s.client.Mutex("held"))
		other := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("queued"))
		waiter := harness.Claim(harness.Within(t, harness.Patience), s.client.Mutex("queued"))
		harness.Waiting(t, srv, "queued", 1)
		operator := harness.Client(t, srv.Addr(), func(o *redis.Options) { o.PoolSize = 1 }).Conn()
		defer operator.Close()
		for range 3 {
			for _, command := range [][]any{{"CLIENT", "NO-EVICT", "on"}, {"CONFIG", "SET", "maxmemory-clients", 1},
				{"PING"}, {"CONFIG", "SET", "maxmemory-clients", 0}} {
				fatal.If(t, operator.Do(t.Context(), command...).Err())
			}
			s.lives(lease, 4*time.Second) // a renewal goes over a new connection
		}
		if info := operator.Info(t.Context(), "stats").Val(); !strings.Contains(info, "evicted_clients:") ||
			strings.Contains(info, "evicted_clients:0") {
			t.Error("no client was evicted")
		}
		harness.Release(t, other)
		harness.HandBack(t, waiter.Got(t))
		harness.Release(t, lease)
	})
}
