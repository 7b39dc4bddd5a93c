package proof

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// Traps 5, 41 and 42: the data is taken away under those who hold. Each is told at its next renewal, at most a third of the TTL later,
// with the cause, and nothing is made again.
func TestFaultDataLost(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	holders := 100 * times(t)
	for _, c := range []struct {
		name string
		lose func(*testing.T, *redisserver.Server)
	}{
		{"FLUSHALL", func(t *testing.T, srv *redisserver.Server) { do(t, srv, "FLUSHALL") }},
		{"an operator's DEL", func(t *testing.T, srv *redisserver.Server) {
			for i := range holders {
				do(t, srv, "DEL", fmt.Sprintf("holdfast:{n%d}", i))
			}
		}},
		{"eviction", evict},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := redisserver.Start(t)
			locker := client(t, srv.Addr(), &holdfast.Config{TTL: ttl}, nil)
			var leases []*holdfast.Lease
			for i := range holders {
				lease, err := locker.Mutex(fmt.Sprint("n", i)).Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leases = append(leases, lease)
			}
			began := time.Now()
			c.lose(t, srv)
			lost := time.Now()
			var worst time.Duration
			told := 0
			for i, lease := range leases {
				select {
				case <-lease.Done():
				case <-time.After(time.Until(lost.Add(ttl + patience))):
				}
				var why *holdfast.LostError
				if err := lease.Err(); !errors.As(err, &why) || why.Reason != holdfast.LossGone {
					t.Errorf("holder %d: %v", i, err)
					continue
				}
				told++
				worst = max(worst, time.Since(began))
			}
			back := 0
			for i := range holders {
				if do(t, srv, "EXISTS", fmt.Sprintf("holdfast:{n%d}", i)) != int64(0) {
					back++
				}
			}
			t.Logf("%s: %d of %d holders told, the last after %v (TTL %v), %d keys made again", c.name, told, holders, worst.Round(time.Millisecond), ttl, back)
			if back > 0 || worst > ttl+time.Second {
				t.Error("not what was promised")
			}
		})
	}
}

// evict makes the server throw away what has a TTL.
func evict(t *testing.T, srv *redisserver.Server) {
	t.Helper()
	do(t, srv, "CONFIG", "SET", "maxmemory-policy", "volatile-lru")
	do(t, srv, "SET", "filler", strings.Repeat("x", 1<<20))
	do(t, srv, "CONFIG", "SET", "maxmemory", "1")
	_, _ = srv.Do("SET", "more", "x") // every write evicts first
	eventually(t, "all is evicted", func() bool {
		_, _ = srv.Do("SET", "more", "x")
		for _, key := range do(t, srv, "KEYS", "holdfast:*").([]any) {
			if !strings.HasSuffix(key.(string), ":clock") { // these have no TTL
				return false
			}
		}
		return true
	})
	do(t, srv, "CONFIG", "SET", "maxmemory", "0")
}

// Trap 41: memory is used up while many hold and wait. All releases work, those that hand on too; new locks are refused for what it is.
func TestFaultOutOfMemory(t *testing.T) {
	srv := redisserver.Start(t)
	one, other := client(t, srv.Addr(), &holdfast.Config{TTL: time.Minute}, nil), client(t, srv.Addr(), &holdfast.Config{TTL: time.Minute}, nil)
	n := 100 * times(t)
	var leases []*holdfast.Lease
	next := make(chan error, n)
	for i := range n {
		lease, err := one.Mutex(fmt.Sprint("n", i)).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		leases = append(leases, lease)
		if i%2 == 0 {
			go func() {
				lease, err := other.Mutex(fmt.Sprint("n", i)).Lock(t.Context())
				if err == nil {
					err = lease.Release(t.Context())
				}
				next <- err
			}()
			eventually(t, "it is in line", func() bool { return inLine(srv, fmt.Sprint("n", i)) == 1 })
		}
	}
	do(t, srv, "CONFIG", "SET", "maxmemory-policy", "noeviction")
	do(t, srv, "CONFIG", "SET", "maxmemory", "1")
	refused := 0
	for i, lease := range leases {
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("release %d: %v", i, err)
		}
		var failure *holdfast.StoreError
		_, err := one.Mutex(fmt.Sprint("new", i)).TryLock(t.Context())
		if errors.As(err, &failure) && failure.Kind == holdfast.StoreOutOfMemory && failure.Applied == holdfast.NotApplied {
			refused++
		}
	}
	for range n / 2 {
		if err := <-next; err != nil {
			t.Error(err)
		}
	}
	t.Logf("out of memory: %d releases worked, %d of them handed on; %d of %d new locks refused as such", n, n/2, refused, n)
	if refused != n {
		t.Error("not all were refused")
	}
}
