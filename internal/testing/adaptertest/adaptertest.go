// Package adaptertest runs what every adapter passes, on servers of each kind. A test that needs
// several servers, a real second, or a server that is killed runs with HOLDFAST_PROOF=1 alone.
package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/permissions"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/storetest"
)

// An Adapter makes a store on a client of its own, which the end of the test closes.
type Adapter func(tb testing.TB, client Client) (store.Store, error)

// A Client says what a client is made for.
type Client struct {
	Addresses      []string // of the server, of nodes of the cluster, or of the sentinels
	Cluster        bool
	Master         string // as the sentinels call it; empty: there are none
	User, Password string // empty: everybody
}

// Patience bounds what must happen, on a machine that has much else to do.
const Patience = 30 * time.Second

// NeedProof skips a test unless HOLDFAST_PROOF=1 is set.
func NeedProof(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_PROOF") != "1" {
		t.Skip("several servers, or some seconds: HOLDFAST_PROOF=1 runs it")
	}
}

// Open makes a store, and ends the test if it cannot.
func (a Adapter) Open(tb testing.TB, client Client) store.Store {
	tb.Helper()
	st, err := a(tb, client)
	fatal.If(tb, err)
	return st
}

// Eventually waits until a condition holds.
func Eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually.Must(t, Patience, what, holds)
}

// Within returns a context that ends with the test, or after d.
func Within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

type topology struct {
	client  Client
	masters func() []*redisserver.Server
}

func single(srv *redisserver.Server) topology {
	return topology{Client{Addresses: []string{srv.Addr()}}, func() []*redisserver.Server {
		return []*redisserver.Server{srv}
	}}
}

// sentinel returns a master that is not replaced because it stood still for a moment.
func sentinel(t *testing.T) topology {
	NeedProof(t)
	rig := redisserver.StartSentinel(t)
	rig.Patient()
	return topology{Client{Addresses: rig.Addrs(), Master: rig.Name()}, func() []*redisserver.Server {
		return []*redisserver.Server{rig.Master()}
	}}
}

// cluster returns a cluster whose nodes are not replaced because they stood still for a moment.
func cluster(t *testing.T) (topology, *redisserver.Cluster) {
	NeedProof(t)
	rig := redisserver.StartCluster(t)
	rig.Patient()
	return topology{Client{Addresses: rig.Addrs(), Cluster: true}, rig.Masters}, rig
}

// EachKind runs a test on one server, behind sentinels and on a cluster.
func EachKind(t *testing.T, run func(t *testing.T, client Client, masters func() []*redisserver.Server)) {
	for name, start := range map[string]func(*testing.T) topology{
		"single":   func(t *testing.T) topology { return single(redisserver.Start(t)) },
		"sentinel": sentinel,
		"cluster":  func(t *testing.T) topology { top, _ := cluster(t); return top },
	} {
		t.Run(name, func(t *testing.T) {
			top := start(t)
			run(t, top.client, top.masters)
		})
	}
}

// Conformance runs storetest.Run on one server.
func Conformance(t *testing.T, adapter Adapter) { conform(t, adapter, single(redisserver.Start(t))) }

// SentinelConformance runs storetest.Run on the master that sentinels name.
func SentinelConformance(t *testing.T, adapter Adapter) { conform(t, adapter, sentinel(t)) }

// ClusterConformance runs storetest.Run on a cluster.
func ClusterConformance(t *testing.T, adapter Adapter) {
	top, _ := cluster(t)
	conform(t, adapter, top)
}

func conform(t *testing.T, adapter Adapter, top topology) {
	storetest.Run(t, storetest.Backend{
		Parallel: 8,
		Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
			tb.Helper()
			client, err := holdfast.New(adapter.Open(tb, top.client), config)
			fatal.If(tb, err)
			return client
		},
		Left: func(tb testing.TB, prefix string) []string { return keys(tb, prefix, top.masters()) },
	})
}

// QuorumConformance runs storetest.Run on three and on five masters.
func QuorumConformance(t *testing.T, adapter Adapter) {
	NeedProof(t)
	for name, n := range map[string]int{"three masters": 3, "five masters": 5} {
		t.Run(name, func(t *testing.T) {
			masters := make([]*redisserver.Server, n)
			for i := range masters {
				masters[i] = redisserver.Start(t)
			}
			storetest.Run(t, storetest.Backend{
				Parallel: 4,
				Open: func(tb testing.TB, config *holdfast.Config) *holdfast.Client {
					tb.Helper()
					stores := make([]store.Store, n)
					for i, srv := range masters {
						stores[i] = adapter.Open(tb, single(srv).client)
					}
					config.TrustNewNodes = true
					client, err := holdfast.NewQuorum(stores, config)
					fatal.If(tb, err)
					return client
				},
				Left:    func(tb testing.TB, prefix string) []string { return keys(tb, prefix, masters) },
				NoQueue: true, NoSemaphores: true, NoLatches: true,
			})
		})
	}
}

// keys returns the keys under a prefix that locks left: not the clock of a slot, nor what a master
// of a quorum knows of itself.
func keys(tb testing.TB, prefix string, servers []*redisserver.Server) (left []string) {
	tb.Helper()
	for _, srv := range servers {
		answer, err := srv.Do("KEYS", prefix+"*")
		fatal.If(tb, err)
		for _, key := range answer.([]any) {
			if key := key.(string); !strings.HasSuffix(key, "}:clock") && !strings.HasSuffix(key, ":{%quorum}") {
				left = append(left, key)
			}
		}
	}
	return left
}

// Seam runs storetest.Seam on one server.
func Seam(t *testing.T, adapter Adapter) {
	srv := redisserver.Start(t)
	backend := seam(adapter, single(srv).client)
	backend.Address = srv.Addr()
	backend.At = func(tb testing.TB, address string) store.Store {
		return adapter.Open(tb, Client{Addresses: []string{address}})
	}
	storetest.Seam(t, backend)
}

// SentinelSeam runs storetest.Seam on the master that sentinels name.
func SentinelSeam(t *testing.T, adapter Adapter) {
	storetest.Seam(t, seam(adapter, sentinel(t).client))
}

// ClusterSeam runs storetest.Seam on a cluster.
func ClusterSeam(t *testing.T, adapter Adapter) {
	top, _ := cluster(t)
	storetest.Seam(t, seam(adapter, top.client))
}

func seam(adapter Adapter, client Client) storetest.SeamBackend {
	return storetest.SeamBackend{Open: func(tb testing.TB, user, password string) store.Store {
		client := client
		client.User, client.Password = user, password
		return adapter.Open(tb, client)
	}}
}

// Permissions tests the smallest user on one server, command by command (trap 47).
func Permissions(t *testing.T, adapter Adapter) {
	NeedProof(t)
	permissions.Run(t, "refused without it", true, func(t *testing.T) permissions.Realm {
		return realm(adapter, single(redisserver.Start(t)))
	})
}

// ClusterPermissions tests the smallest user on a cluster. Without the commands in needed the
// client cannot be made, or takes a node for a server that is alone.
func ClusterPermissions(t *testing.T, adapter Adapter, needed ...string) {
	top, rig := cluster(t)
	r := realm(adapter, top)
	for _, srv := range rig.Replicas() {
		r.Replicas = append(r.Replicas, srv.Do)
	}
	permissions.Run(t, "on a cluster", false, func(*testing.T) permissions.Realm { return r }, needed...)
	permissions.Sometimes(t, r, rig.Send)
}

func realm(adapter Adapter, top topology) (r permissions.Realm) {
	for _, srv := range top.masters() {
		r.Servers = append(r.Servers, srv.Do)
	}
	r.Store = func(tb testing.TB, user, password string) (store.Store, error) {
		client := top.client
		client.User, client.Password = user, password
		return adapter(tb, client)
	}
	return r
}

// FIPS takes a lock in a process where SHA-1 is refused (trap 30): the test binary, with the test
// that calls it.
func FIPS(t *testing.T, adapter Adapter) {
	const address = "HOLDFAST_FIPS_ADDRESS"
	if os.Getenv(address) == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		child.Env = append(os.Environ(), "GODEBUG=fips140=only", address+"="+redisserver.Start(t).Addr())
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "locked and released") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	client, err := holdfast.New(adapter.Open(t, Client{Addresses: []string{os.Getenv(address)}}), nil)
	fatal.If(t, err)
	lease, err := client.Mutex("n").Lock(Within(t, Patience))
	fatal.If(t, err)
	fatal.If(t, errors.Join(lease.Release(), client.Close()))
	fmt.Println("locked and released")
}
