package faults

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

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
