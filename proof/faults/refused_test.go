package faults

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/store"
)

// Traps 22, 28, 41 and 45: servers that answer, and refuse. New locks are refused as such, with the
// cause, and nothing of them stays; a holder goes on while that does not last longer than trust; a
// waiter is in when it is over. A release takes no memory, so it works without memory.
func refuseRequests(t *testing.T, b *harness.Deployment) {
	config := func(name string, value any) func(*testing.T, *redisserver.Server) {
		return func(t *testing.T, srv *redisserver.Server) { harness.Must(t, srv, "CONFIG", "SET", name, value) }
	}
	follow := func(host, port string) func(*testing.T, *redisserver.Server) {
		return func(t *testing.T, srv *redisserver.Server) { harness.Must(t, srv, "REPLICAOF", host, port) }
	}
	for _, c := range []struct {
		name          string
		kind          holdfast.StoreKind
		refuse, serve func(*testing.T, *redisserver.Server)
		except        []string
	}{
		{"too few replicas", holdfast.StoreNoReplicas, config("min-replicas-to-write", 9),
			config("min-replicas-to-write", 0), nil},
		{"out of memory", holdfast.StoreOutOfMemory, config("maxmemory", 1), config("maxmemory", 0), nil},
		{"cannot persist", holdfast.StoreMisconfigured, failToSave, saveAgain,
			[]string{harness.Sentinel}}, // its PING is refused as well
		{"read-only", holdfast.StoreReadOnly, follow("127.0.0.1", "1"), follow("NO", "ONE"),
			[]string{harness.Sentinel, harness.Cluster}}, // the servers themselves decide who is
	} {
		if slices.Contains(c.except, b.Topology) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			b := b.Under(t, "no-"+strings.ReplaceAll(c.name, " ", "-"))
			const ttl = 9 * time.Second
			n := 20 * times(t)
			one, two := b.Client(t, holdfast.Config{TTL: ttl}), b.Client(t, holdfast.Config{TTL: ttl})
			var leases []*holdfast.Lease
			var waits []*harness.Claimant
			for _, name := range harness.Names(n) {
				leases = append(leases, harness.Lock(t, one.Mutex(name)))
				waits = append(waits, harness.Claim(t.Context(), two.Mutex(name)))
				awaitWaiter(t, one.Mutex(name))
			}
			if b.Topology == harness.Quorum { // one of three
				c.refuse(t, b.Masters[0])
				for i := range n {
					m := one.Mutex(fmt.Sprint("two of three", i))
					fatal.If(t, harness.Given(tryUntilGranted(t.Context(), m.TryLock)))
				}
				c.serve(t, b.Masters[0])
			}
			first := leases[0].Until() // that trust ends, if no renewal works any more
			for _, lease := range leases {
				fatal.If(t, lease.Err())
				if until := lease.Until(); until.Before(first) {
					first = until
				}
			}
			b.Each(func(srv *redisserver.Server) { c.refuse(t, srv) })
			began := time.Now()
			refused := 0
			for i := range n {
				m := one.Mutex(fmt.Sprint("new", i))
				if err := tryUntilRefused(t, c.kind, m.TryLock); isRefusedAs(err, c.kind) {
					refused++
				} else if refused == i {
					t.Errorf("a new lock: %v", err)
				}
			}
			half := 0
			if c.kind == holdfast.StoreOutOfMemory {
				half = n / 2
				for _, lease := range leases[:half] {
					if err := lease.Release(); err != nil {
						t.Errorf("a release meanwhile: %v", err)
					}
				}
			}
			pause(time.Until(began.Add(ttl / 3))) // a renewal of all fails
			b.Each(func(srv *redisserver.Server) { c.serve(t, srv) })
			lasted := time.Since(began)
			rest := time.Until(first)
			lost := 0
			for _, lease := range leases[half:] {
				if lease.Err() != nil || lease.Release() != nil {
					lost++
				}
			}
			failed := 0
			for _, next := range waits {
				// a lease that was outlasted is in all the same
				if <-next.Done; next.Err != nil {
					failed++
					t.Error(next.Err)
				} else if err := next.Lease.Release(); err != nil && !isOutlasted(err) {
					failed++
					t.Error(err)
				}
			}
			t.Logf("%s: %d of %d new locks refused as such; %d of %d leases lost in %v; of %d who waited %d are in",
				c.name, refused, n,
				lost, n, lasted.Round(time.Millisecond), n, n-failed)
			if refused < n || failed > 0 || lost > 0 && rest > ttl/4 {
				t.Error("not what was promised")
			}
			b.IsClean(t)
		})
	}
}

// A muteStore gives every second flush of the history no answer.
type muteStore struct {
	store.Store
	flushes *atomic.Int64
}

func (m muteStore) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	if commands[0][0] != "XADD" || m.flushes.Add(1)%2 == 0 {
		return m.Store.Do(ctx, node, commands)
	}
	<-ctx.Done()
	replies := make([]store.Reply, len(commands))
	for i := range replies {
		replies[i].Err = ctx.Err()
	}
	return replies
}

// The stream of a history is deleted, of another type, refused, silent, and too small for a second,
// again and again. It costs entries, and no lock. Then it is written again.
func refuseHistory(t *testing.T, b *harness.Deployment) {
	var flushes atomic.Int64
	b.On = func(s store.Store) store.Store { return muteStore{s, &flushes} }
	l := &harness.Load{T: t, Names: harness.Names(4), Enough: func() bool { return flushes.Load() >= 20 }}
	key := b.Prefix + ":{%history:}"
	steps, next := [][]any{{"SET", key, "mine"}, {"DEL", key}, {"ACL", "SETUSER", "default", "-xadd"},
		{"ACL", "SETUSER", "default", "+xadd"}}, 0
	troubles := repeat(50*time.Millisecond, func() {
		b.Each(func(srv *redisserver.Server) { _, _ = srv.Do(steps[next%len(steps)]...) }) // MOVED from some
		next++
	})
	clients := b.Clients(t, holdfast.Config{TTL: 6 * time.Second, History: 50})
	l.Run(clients, 4, 0, time.Duration(times(t))*3*time.Second)
	n := troubles()
	for _, c := range clients {
		fatal.If(t, c.Close())
	}
	l.Report(fmt.Sprintf("the history disturbed %d times in %d flushes", n, flushes.Load()))
	if l.IsUndisturbed("no lock depends on the history"); l.Holds < 300 {
		t.Errorf("%d holds: locks wait for the history, which has no answer for a second", l.Holds)
	}
	b.Each(func(srv *redisserver.Server) {
		_, _ = srv.Do("ACL", "SETUSER", "default", "+xadd")
		_, _ = srv.Do("DEL", key)
	})
	c := b.Client(t, holdfast.Config{History: 50})
	harness.Eventually(t, "the history is written again", func() bool {
		_ = c.Mutex("n0").Do(t.Context(), func(context.Context) error { return nil })
		for _, err := range c.History(t.Context(), "n0", time.Time{}) {
			return err == nil
		}
		return false
	})
	fatal.If(t, c.Close())
	b.Each(func(srv *redisserver.Server) { _, _ = srv.Do("DEL", key) })
	b.IsClean(t)
}

// awaitWaiter waits until somebody waits for a mutex that another holds.
func awaitWaiter(t *testing.T, m *holdfast.Mutex) {
	t.Helper()
	harness.Eventually(t, "it waits", func() bool {
		_, err := m.TryLock(t.Context())
		var busy *holdfast.HeldError
		return errors.As(err, &busy) && busy.Waiters > 0
	})
}

// tryUntilRefused returns what a try is told that servers refuse, once they answer.
func tryUntilRefused(t *testing.T, kind holdfast.StoreKind, try try) (err error) {
	t.Helper()
	for late := time.Now().Add(harness.Patience); ; {
		if _, err = try(t.Context()); !isUnanswered(err) || isRefusedAs(err, kind) || time.Now().After(late) {
			return err
		}
	}
}

// isRefusedAs reports whether an error says that servers refuse, as what, and that nothing was
// done.
func isRefusedAs(err error, kind holdfast.StoreKind) bool {
	is := func(err error) bool {
		var failure *holdfast.StoreError
		return errors.As(err, &failure) && failure.Kind == kind && !failure.MayHaveApplied
	}
	var none *holdfast.QuorumError
	if !errors.As(err, &none) {
		return is(err)
	}
	n := 0
	for _, node := range none.Masters {
		if is(node.Err) {
			n++
		}
	}
	return n >= none.Need
}

// failToSave makes a server fail to save, so that it refuses writes. A directory is where its file
// should go.
func failToSave(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	removeSaved(t, srv)
	fatal.If(t, os.MkdirAll(filepath.Join(srv.Dir(), "taken", "x"), 0o755))
	save(t, srv, "3600 1", "err")
}

func saveAgain(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	removeSaved(t, srv)
	save(t, srv, "", "ok")
}

// removeSaved removes what a server saved, or what is in its place.
func removeSaved(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	fatal.If(t, os.RemoveAll(filepath.Join(srv.Dir(), "taken")))
}

// save lets a server save, at some times and now, and waits for what comes of it.
func save(t *testing.T, srv *redisserver.Server, times, status string) {
	t.Helper()
	harness.Must(t, srv, "CONFIG", "SET", "save", times)
	harness.Must(t, srv, "BGSAVE")
	harness.Eventually(t, "saving is "+status, func() bool {
		return strings.Contains(harness.Must(t, srv, "INFO", "persistence").(string), "rdb_last_bgsave_status:"+status)
	})
}

// Trap 28: a key is of another type, or holds what is not ours. That is told, and it is left as it
// was.
func putForeignKeys(t *testing.T, b *harness.Deployment) {
	c := b.Client(t, holdfast.Config{})
	n, touched, untold := 0, 0, 0
	for what, put := range map[string][]any{
		"string": {"SET", "", "by hand"}, "hash": {"HSET", "", "f", "v"}, "list": {"RPUSH", "", "a"},
		"set":        {"SADD", "", "a"},
		"sorted set": {"ZADD", "", 1, "a"}, "stream": {"XADD", "", "1-1", "f", "v"},
	} {
		for kind, tryOf := range map[string]func(name string) try{
			"mutex":    func(name string) try { return c.Mutex(name).TryLock },
			"rwmutex":  func(name string) try { return c.RWMutex(name).TryRLock },
			"election": func(name string) try { return c.Election(name).TryCampaign },
			"group":    func(name string) try { return c.All([]string{name}).TryLock },
		} {
			name := what + " " + kind
			key := b.Key(name)
			servers := b.Of(key)
			put[1] = key
			var before []any
			for _, srv := range servers {
				harness.Must(t, srv, put...)
				before = append(before, harness.Must(t, srv, "DUMP", key))
			}
			n++
			err := tryUntilRefused(t, holdfast.StoreForeign, tryOf(name))
			if !isRefusedAs(err, holdfast.StoreForeign) {
				untold++
				t.Logf("%s: %v", name, err)
			}
			for i, srv := range servers {
				if harness.Must(t, srv, "DUMP", key) != before[i] {
					touched++
				}
				harness.Must(t, srv, "DEL", key)
			}
			if b.Topology != harness.Quorum {
				continue
			}
			harness.Must(t, servers[0], put...) // at one of three: it does not count
			if err := harness.Given(tryUntilGranted(t.Context(), c.Mutex(name).TryLock)); err != nil {
				t.Errorf("%s, at one of three: %v", name, err)
			}
			harness.Must(t, servers[0], "DEL", key)
		}
	}
	t.Logf("%d locks on keys of others: %d were not told so, %d keys were touched", n, untold, touched)
	if untold > 0 || touched > 0 {
		t.Error("not what was promised")
	}
	b.IsClean(t)
}

// Trap 28: a server that reads its data is loading. A waiter is in when the data is read, and
// nobody is refused for another reason.
func TestLoading(t *testing.T) {
	harness.Long(t)
	// Data that is written before an answer is not lost to kill -9, unless the server holds it back
	// for a slow disk.
	slow := []string{"--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024", "--appendonly",
		"yes", "--appendfsync", "no"}
	if srv, err := redisserver.Run(t.Context(), slow...); err != nil {
		t.Skip("this server cannot be made to load slowly: ", err)
	} else {
		_ = srv.Close()
	}
	srv := redisserver.Start(t, slow...)
	for i := range 1500 {
		harness.Must(t, srv, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 1024))
	}
	await := func(holds func() bool) {
		for end := time.Now().Add(harness.Patience); !holds() && time.Now().Before(end); {
			pause(5 * time.Millisecond)
		}
	}
	rewrite := func() { // so that there is little more to load than what is there
		_, _ = srv.Do("BGREWRITEAOF")
		await(func() bool {
			info, _ := srv.Do("INFO", "persistence")
			return strings.Contains(fmt.Sprint(info), "aof_rewrite_in_progress:0")
		})
	}
	rewrite()
	var loading atomic.Int64
	watch := harness.Locker(t, srv.Addr(), &holdfast.Config{})
	l := &harness.Load{T: t, Names: harness.Names(4), Enough: func() bool { return loading.Load() > 0 }}
	trying := repeat(5*time.Millisecond, func() {
		if _, err := watch.Mutex("tried").TryLock(t.Context()); isRefusedAs(err, holdfast.StoreLoading) {
			loading.Add(1)
		}
	})
	kills := repeat(1500*time.Millisecond, func() {
		rewrite()
		_ = srv.Restart() // which returns when it answers, if only that it is loading
		await(func() bool { _, err := srv.Do("GET", "any"); return err == nil })
	})
	l.Run(newClients(t, srv, 2*time.Second), 4, 0, time.Duration(times(t))*5*time.Second)
	n := kills()
	trying()
	l.Report(fmt.Sprintf("killed %d times, and %d tries while it was loading", n, loading.Load()))
	if loading.Load() == 0 {
		t.Error("nobody saw it loading")
	}
}
