package faults

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

func newClients(t *testing.T, srv *redisserver.Server, ttl time.Duration) []*holdfast.Client {
	d := harness.Deployment{Route: harness.Route{Topology: harness.Single, Addrs: []string{srv.Addr()}}}
	return d.Clients(t, holdfast.Config{TTL: ttl})
}

// joinMany lets n goroutines of some clients wait for a name, each in the server's queue, until all
// stand there. Each must release its lease, whatever else it does with it.
func joinMany(ctx context.Context, t *testing.T, srv *redisserver.Server, clients []*holdfast.Client, name string,
	n int, use func(*holdfast.Lease, error)) *sync.WaitGroup {
	t.Helper()
	var all sync.WaitGroup
	before := harness.Queued(srv, name)
	for i := range n {
		m := clients[i%len(clients)].Mutex(name, holdfast.WithStrictOrder())
		all.Go(func() { use(m.Lock(ctx)) })
	}
	harness.Eventually(t, "all stand in the queue", func() bool { return harness.Queued(srv, name) >= before+int64(n) })
	return &all
}

// Trap 16: 10,000 wait for one name. Joining and a hand-over cost what they cost when ten wait.
func TestTenThousandWaiters(t *testing.T) {
	harness.Long(t)
	srv := redisserver.Start(t)
	clients := newClients(t, srv, time.Minute)
	many := 2000 // with -race, 10,000 cannot even show that they are alive as often as they should
	if times(t) > 1 {
		many = 10_000
	}
	for _, n := range []int{10, many} {
		name := fmt.Sprint("n", n)
		holder := harness.Lock(t, harness.Locker(t, srv.Addr(), &holdfast.Config{}).Mutex(name))
		before, began := harness.Scripts(srv), time.Now()
		var in, first, lost atomic.Int64
		ctx, cancel := context.WithTimeout(t.Context(), 4*harness.Patience)
		defer cancel()
		all := joinMany(ctx, t, srv, clients, name, n, func(lease *holdfast.Lease, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			if in.Add(1) == 10 {
				first.Store(int64(harness.Scripts(srv)))
			}
			if err := lease.Release(); isOutlasted(err) {
				lost.Add(1)
			} else if err != nil {
				t.Error(err)
			}
		})
		joined := time.Since(began)
		commands := harness.Scripts(srv) - before
		start, handing := harness.Scripts(srv), time.Now()
		harness.Release(t, holder)
		all.Wait()
		took := time.Since(handing)
		t.Logf("%d waiters: joined in %v, %.2f commands each; all in after %v, %.0f us and %.2f commands a "+
			"hand-over, %d lost", n, joined.Round(time.Millisecond),
			float64(commands)/float64(n), took.Round(time.Millisecond), float64(took.Microseconds())/float64(n),
			float64(harness.Scripts(srv)-start)/float64(n), lost.Load())
		// Ten hand-overs, and as much again for those who show life meanwhile.
		if ten := int(first.Load()) - start; ten > 10*6+int(time.Since(handing)/time.Second+1)*n/4 {
			t.Errorf("the first ten hand-overs took %d commands", ten)
		}
		if int(in.Load()) != n {
			t.Errorf("%d of %d got in", in.Load(), n)
		}
		// One at a time is trusted for half a second at first; the machine may stand still as long.
		if int(lost.Load()) > 5+n/10 {
			t.Errorf("%d of %d leases lost", lost.Load(), n)
		}
	}
}

// Trap 20: waiters come and are cancelled in storms. The queue is empty after each, and who stays
// is in at once.
func TestCancelStorm(t *testing.T) {
	harness.Long(t)
	srv := redisserver.Start(t)
	clients := newClients(t, srv, time.Minute)
	const storm = 500
	storms, cancelled, won := 5*times(t), atomic.Int64{}, atomic.Int64{}
	var worst time.Duration
	for i := range storms {
		name := fmt.Sprint("n", i)
		holder := harness.Lock(t, clients[0].Mutex(name, holdfast.WithStrictOrder()))
		ctx, cancel := context.WithCancel(t.Context())
		all := joinMany(ctx, t, srv, clients, name, storm, func(lease *holdfast.Lease, err error) {
			if err != nil {
				cancelled.Add(1)
				return
			}
			won.Add(1)
			_ = lease.Release()
		})
		stays := make(chan time.Time, 1)
		last := joinMany(t.Context(), t, srv, clients[1:2], name, 1, func(lease *holdfast.Lease, err error) {
			if err := harness.Given(lease, err); err != nil && !isOutlasted(err) {
				t.Error(err)
			}
			stays <- time.Now()
		})
		cancel()
		harness.Release(t, holder) // while they leave
		released := time.Now()
		all.Wait()
		last.Wait()
		worst = max(worst, (<-stays).Sub(released))
		harness.Eventually(t, "nobody is in the queue", func() bool { return harness.Queued(srv, name) == 0 })
	}
	t.Logf("%d storms of %d: %d cancelled, %d in before; the one who stayed was in after at most %v", storms, storm,
		cancelled.Load(), won.Load(), worst.Round(time.Millisecond))
	limit := harness.Patience // each of those who left would cost a claim
	if harness.Measured() {
		limit = 5 * time.Second
	}
	if worst > limit {
		t.Errorf("more than %v", limit)
	}
}

// Trap 18: those at the head of the queue are dead, some crashed, some half-open. The next is in
// within the claims of the half-open.
func TestDeadHead(t *testing.T) {
	harness.Long(t)
	t.Parallel()
	srv := redisserver.Start(t)
	for _, c := range []struct {
		name string
		die  func(*fault.Proxy)
	}{{"crashed", func(p *fault.Proxy) { p.Silence(); p.Cut() }}, {"half-open", (*fault.Proxy).Silence}} {
		const dead = 5
		holder := harness.Lock(t, harness.Locker(t, srv.Addr(), &holdfast.Config{}).Mutex(c.name))
		ctx, cancel := context.WithCancel(t.Context())
		var proxies []*fault.Proxy
		var heads []*sync.WaitGroup
		for range dead {
			p := fault.Start(t, srv.Addr())
			proxies = append(proxies, p)
			it := harness.Locker(t, p.Addr(), &holdfast.Config{ReleaseTimeout: time.Millisecond})
			heads = append(heads, joinMany(ctx, t, srv, []*holdfast.Client{it}, c.name, 1,
				func(*holdfast.Lease, error) {}))
		}
		in := make(chan time.Time, 1)
		live := []*holdfast.Client{harness.Locker(t, srv.Addr(), &holdfast.Config{})}
		next := joinMany(t.Context(), t, srv, live, c.name, 1,
			func(lease *holdfast.Lease, err error) {
				in <- time.Now()
				if err := harness.Given(lease, err); err != nil && !isOutlasted(err) {
					t.Error(err)
				}
			})
		for _, p := range proxies {
			c.die(p)
		}
		if c.name == "crashed" {
			harness.Eventually(t, "the server knows",
				func() bool { return harness.Listening(t, srv) == 1 })
		}
		harness.Release(t, holder)
		released := time.Now()
		next.Wait()
		took := (<-in).Sub(released)
		t.Logf("%d waiters before it %s: in after %v", dead, c.name, took.Round(time.Millisecond))
		limit := 12 * time.Second // long before they count as dead, 18 s after they joined
		if harness.Measured() {
			const room = 2 * time.Second // for a machine that stands still
			limit = room                 // nobody waits for a waiter whose connection is known to be gone
			if c.name == "half-open" {
				// The live waiter asks for the first time after up to 6 s, and finds a claim that
				// is over. For each dead waiter it then waits for one claim more, and for 20 ms for
				// each place before its own (package engine).
				const asks, claim, place = 6 * time.Second, 500 * time.Millisecond, 20 * time.Millisecond
				limit += asks + dead*(claim+dead*place)
			}
		}
		if took > limit {
			t.Errorf("more than %v", limit)
		}
		cancel()
		for _, head := range heads {
			head.Wait()
		}
	}
}

// Among many keys of others, List tells all locks in constant memory, and no command of it holds up
// the locks of others.
func TestListAmongManyKeys(t *testing.T) {
	harness.Long(t)
	const locks, others, batch = 100_000, 1_000_000, 10_000
	const longest, most = 10 * time.Millisecond, 16 << 20
	b := harness.Deploy(t, harness.Single).Under(t, "listed")
	srv := b.Masters[0]
	one := harness.Lock(t, b.Client(t, holdfast.Config{}).Mutex("template", holdfast.WithTTL(5*time.Minute),
		holdfast.WithoutRenewal()))
	fill := func(text string, n int, args ...any) {
		for from := 0; from < n; from += batch {
			harness.Must(t, srv, append([]any{"EVAL", text, 0, from, from + batch - 1}, args...)...)
		}
	}
	fill("for i = ARGV[1], ARGV[2] do redis.call('SET', 'other:' .. i, 'x') end return 1", others)
	fill("for i = ARGV[1], ARGV[2] do redis.call('SET', 'listed:{lock ' .. string.format('%.0f', i) .. '}', ARGV[3], "+
		"'PX', 300000) end return 1", locks,
		harness.Must(t, srv, "GET", "listed:{template}"))
	harness.Must(t, srv, "CONFIG", "SET", "slowlog-log-slower-than", 500)
	harness.Must(t, srv, "CONFIG", "SET", "slowlog-max-len", 10_000)
	harness.Must(t, srv, "SLOWLOG", "RESET")
	client := b.Client(t, holdfast.Config{})

	missed, told, began := map[string]bool{}, 0, time.Now()
	for i := range locks {
		missed[fmt.Sprint("lock ", i)] = true
	}
	least, peak := heapInUse(), uint64(0)
	for info, err := range client.List(t.Context(), holdfast.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if told++; told%batch == 0 {
			peak = max(peak, heapInUse())
		}
		if info.State() != lockinfo.StateHeld || info.Holds[0].Token != one.Token() {
			t.Fatalf("got %+v", info)
		}
		delete(missed, info.Name)
	}
	if len(missed) > 0 {
		t.Errorf("%d of %d locks are not told", len(missed), locks)
	}
	grown := max(peak, least) - least
	slowest, which := time.Duration(0), ""
	for _, entry := range harness.Must(t, srv, "SLOWLOG", "GET", -1).([]any) {
		fields := entry.([]any)
		if us := time.Duration(fields[2].(int64)) * time.Microsecond; us > slowest {
			slowest, which = us, fmt.Sprint(fields[3])
		}
	}
	t.Logf("%d locks among %d other keys: %d told in %v; the heap grew by %d KiB; the longest command took %v: %.60s",
		locks, others, told, time.Since(began).Round(time.Millisecond), grown>>10, slowest, which)
	if grown > most {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	if slowest > longest && harness.Measured() {
		t.Errorf("a command took %v: %s", slowest, which)
	}
}

// heapInUse returns how much memory is in use.
func heapInUse() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
