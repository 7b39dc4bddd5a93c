package faults

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Traps 5, 41 and 42: the data is taken away under those who hold. Each is told at its next
// renewal, at most a third of the TTL later, with the cause, and nothing is made again. One master
// of three may forget without anybody being told: a renewal sets its hold again there. If the
// others forget after that, it is given back when the holder is told.
func loseData(t *testing.T, b *harness.Deployment) {
	for _, c := range []struct {
		name string
		lose func(*testing.T, *harness.Deployment, *harness.Proxies, []string)
		kept bool // at a majority; such, and told, are of a harness.Quorum alone
		told bool // again
	}{
		{"FLUSHALL", func(t *testing.T, b *harness.Deployment, w *harness.Proxies, _ []string) {
			w.Silenced(func() { b.Each(func(srv *redisserver.Server) { harness.Must(t, srv, "FLUSHALL") }) })
		}, false, false},
		{"FLUSHALL at one of three", func(t *testing.T, b *harness.Deployment, _ *harness.Proxies, _ []string) {
			harness.Must(t, b.Masters[0], "FLUSHALL")
		}, true, false},
		{"an operator's DEL", func(t *testing.T, b *harness.Deployment, w *harness.Proxies, names []string) {
			w.Silenced(func() { deleteNames(t, b, names, b.Masters...) })
		}, false, false},
		{"an operator's DEL at one of three, and later at the others",
			func(t *testing.T, b *harness.Deployment, w *harness.Proxies, names []string) {
				deleteNames(t, b, names, b.Masters[0])
				harness.Eventually(t, "it was told again",
					func() bool { return len(b.Left(t)) == len(names)*len(b.Masters) })
				w.Silenced(func() { deleteNames(t, b, names, b.Masters[1:]...) })
			}, false, true},
		{"eviction", func(t *testing.T, b *harness.Deployment, w *harness.Proxies, _ []string) {
			w.Silenced(func() { b.Each(func(srv *redisserver.Server) { evictKeys(t, srv, b.Prefix) }) })
		}, false, false},
	} {
		if (c.kept || c.told) && b.Topology != harness.Quorum {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			takeDataAway(t, b.Under(t, "gone-"+strings.NewReplacer(" ", "-", "'", "", ",", "").Replace(c.name)), c.lose,
				c.kept)
		})
	}
}

// takeDataAway lets many hold, takes their data, and looks at what they are told.
func takeDataAway(t *testing.T, b *harness.Deployment,
	lose func(*testing.T, *harness.Deployment, *harness.Proxies, []string), kept bool) {
	const ttl = 6 * time.Second
	holders := 100 * times(t)
	clients, w := b.Proxied(t, 1, holdfast.Config{TTL: ttl})
	var leases []*holdfast.Lease
	names := harness.Names(holders)
	for _, name := range names {
		leases = append(leases, harness.Lock(t, clients[0].Mutex(name)))
	}
	harness.Eventually(t, "all masters have all",
		func() bool { return len(b.Left(t)) == holders*len(b.Of(b.Key(names[0]))) })
	began := time.Now()
	lose(t, b, w, names)
	lost := time.Now()
	if kept {
		pause(ttl + ttl/3)
		told := 0
		for _, lease := range leases {
			if lease.Err() != nil || lease.Release() != nil {
				told++
			}
		}
		t.Logf("%d of %d holders lost anything", told, holders)
		if told > 0 {
			t.Error("a minority forgot, and a holder lost its lease")
		}
		b.IsClean(t)
		return
	}
	var worst time.Duration
	told := 0
	for i, lease := range leases {
		// A hold whose renewal was confirmed after the loss is never told of it.
		harness.Eventually(t, "a holder is told",
			func() bool { return lease.Err() != nil || lease.Until().After(lost.Add(ttl)) })
		var why *holdfast.LostError
		if err := lease.Err(); !errors.As(err, &why) || why.Reason != holdfast.LossGone {
			t.Errorf("holder %d: %v", i, err)
			continue
		}
		told++
		worst = max(worst, time.Since(began))
	}
	left := b.Left(t)
	if b.Topology == harness.Quorum && told == holders {
		left = listStaying(t, b)
	}
	t.Logf("%d of %d holders told, the last after %v (TTL %v), %d keys made again", told, holders,
		worst.Round(time.Millisecond), ttl, len(left))
	if len(left) > 0 || harness.Measured() && worst > ttl {
		t.Errorf("not what was promised: %q", left)
	}
}

// listStaying returns what nobody gives back. A hold that a renewal set again at a minority, before
// the others lost it, is given back behind its holder, who was told. Its expiry is taken away
// meanwhile: it would end by itself what was made again for good.
func listStaying(t *testing.T, b *harness.Deployment) (left []string) {
	t.Helper()
	for late := time.Now().Add(harness.Patience); ; pause(5 * time.Millisecond) {
		if left = b.Left(t); len(left) == 0 || time.Now().After(late) {
			return left
		}
		for _, key := range left {
			b.Each(func(srv *redisserver.Server) { harness.Must(t, srv, "PERSIST", key) })
		}
	}
}

// deleteNames deletes what those of some servers have of names that serve them.
func deleteNames(t *testing.T, b *harness.Deployment, names []string, from ...*redisserver.Server) {
	t.Helper()
	for _, name := range names {
		for _, srv := range b.Of(b.Key(name)) {
			if slices.Contains(from, srv) {
				harness.Must(t, srv, "DEL", b.Key(name))
			}
		}
	}
}

// evictKeys makes the server throw away what has a TTL.
func evictKeys(t *testing.T, srv *redisserver.Server, prefix string) {
	t.Helper()
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory", "1")
	// Every write evicts first.
	harness.Eventually(t, "all is evicted", func() bool {
		_, _ = srv.Do("EVAL", "return redis.call('SET', KEYS[1], ARGV[1])", "1", "filler", strings.Repeat("x", 1<<10))
		for _, key := range harness.Must(t, srv, "KEYS", prefix+":*").([]any) {
			// these have no TTL
			if key := key.(string); !strings.HasSuffix(key, ":clock") && !strings.HasSuffix(key, ":{%quorum}") {
				return false
			}
		}
		return true
	})
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory", "0")
	harness.Must(t, srv, "CONFIG", "SET", "maxmemory-policy", "noeviction")
}
