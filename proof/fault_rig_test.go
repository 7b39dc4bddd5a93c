package proof

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/redisstore"
	"github.com/holdfast-go/holdfast/storetest/redisserver"
)

// The tests named TestFault* do one thing to one server while many lock, and print what it cost. HOLDFAST_FAULTS=20 makes
// them twenty times as long.

const patience = 30 * time.Second

// times is how much of everything is wanted.
func times(t *testing.T) int { return max(1, int(number(t, "HOLDFAST_FAULTS", 1))) }

// client is a client on connections of its own, on a store that may be changed.
func client(t *testing.T, addr string, config *holdfast.Config, on func(holdfast.Store) holdfast.Store) *holdfast.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	store := redisstore.New(rdb)
	if on != nil {
		store = on(store)
	}
	c, err := holdfast.New(store, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func do(t *testing.T, srv *redisserver.Server, args ...any) any {
	t.Helper()
	v, err := srv.Do(args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return v
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	late := time.After(patience)
	for !holds() {
		select {
		case <-late:
			t.Fatalf("never: %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func pause(d time.Duration) { <-time.After(d) }

// inLine is how many wait for a name at the server.
func inLine(srv *redisserver.Server, name string) int64 {
	v, _ := srv.Do("ZCOUNT", "holdfast:{"+name+"}:line", "1000000000000000", "+inf")
	n, _ := v.(int64)
	return n
}

// A load is many goroutines of several clients that lock a few names, and what came of it.
type load struct {
	t     *testing.T
	names int

	mu       sync.Mutex
	holders  map[string]*holdfast.Lease
	tokens   map[string]int64
	holds    int
	overlaps int
	smaller  int // tokens
	stuck    int // waits that took too long
	lost     int // leases, before their release
	unsure   int // releases
	other    []error
	longest  time.Duration // a wait
}

// run lets them lock until a time is over, or until each goroutine did its rounds when they are given.
func (l *load) run(clients []*holdfast.Client, goroutines, rounds int, long time.Duration) {
	l.holders, l.tokens = map[string]*holdfast.Lease{}, map[string]int64{}
	end := time.Now().Add(long)
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range goroutines {
			all.Go(func() {
				for n := 0; rounds > 0 && n < rounds || rounds == 0 && time.Now().Before(end); n++ {
					l.once(c, fmt.Sprint("n", (i*goroutines+j+n)%l.names))
				}
			})
		}
	}
	all.Wait()
}

func (l *load) once(c *holdfast.Client, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := time.Now()
	lease, err := c.Mutex(name).Lock(ctx)
	took := time.Since(began)
	l.mu.Lock()
	l.longest = max(l.longest, took)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		l.stuck++
	case err != nil:
		l.other = append(l.other, err)
	case lease.Err() == nil:
		l.holds++
		if before := l.holders[name]; before != nil && before.Err() == nil && lease.Err() == nil {
			l.overlaps++
		}
		if lease.Token() <= l.tokens[name] && lease.Err() == nil {
			l.smaller++
		}
		l.holders[name], l.tokens[name] = lease, max(l.tokens[name], lease.Token())
	}
	l.mu.Unlock()
	if err != nil {
		return
	}
	pause(time.Duration(rand.IntN(2000)) * time.Microsecond)
	l.mu.Lock()
	if l.holders[name] == lease {
		delete(l.holders, name)
	}
	l.mu.Unlock()
	err = lease.Release(context.Background())
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrLost):
		l.lost++
	case errors.Is(err, holdfast.ErrUncertain):
		l.unsure++
	default:
		l.other = append(l.other, err)
	}
}

// judge prints what came of it, and fails when anything was done wrong that no fault excuses.
func (l *load) judge(what string) {
	l.t.Helper()
	l.t.Logf("%s: %d holds, %d overlaps, %d tokens not larger, %d stuck, %d lost, %d releases uncertain, the longest wait %v", what, l.holds, l.overlaps,
		l.smaller, l.stuck, l.lost, l.unsure, l.longest.Round(time.Millisecond))
	if l.overlaps > 0 || l.smaller > 0 || l.stuck > 0 {
		l.t.Error("not what was promised")
	}
	for i, err := range l.other {
		if i == 5 {
			break
		}
		l.t.Errorf("%d other errors: %v", len(l.other), err)
	}
	if l.holds < 50 {
		l.t.Errorf("%d holds show nothing", l.holds)
	}
}

// every does something again and again until it is stopped, and says how often.
func every(d time.Duration, f func()) (stop func() int) {
	over, done, n := make(chan struct{}), make(chan struct{}), 0
	go func() {
		defer close(done)
		ticker := time.NewTicker(d)
		defer ticker.Stop()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
				f()
				n++
			}
		}
	}()
	return func() int { close(over); <-done; return n }
}
