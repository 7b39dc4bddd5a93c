package observing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/instant"
	"github.com/holdfast-go/holdfast/profholdfast"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A locker makes uncontended pairs of Lock and Release.
type locker struct{ mutex *holdfast.Mutex }

func newLocker(tb testing.TB, config holdfast.Config) locker {
	tb.Helper()
	client, err := holdfast.New(instant.Store{}, &config)
	fatal.If(tb, err)
	tb.Cleanup(func() { _ = client.Close() })
	return locker{client.Mutex("order:42")}
}

func (l locker) pair(tb testing.TB) {
	fatal.If(tb, harness.Given(l.mutex.Lock(context.Background())))
}

func costs(tb testing.TB) map[string]holdfast.Config {
	return map[string]holdfast.Config{
		"opentelemetry": {Observer: newRig(tb).observer},
		"prometheus":    {Observer: promholdfast.NewObserver()},
		"profile":       {Observer: profholdfast.New()},
		"several":       {Observer: holdfast.Observers(promholdfast.NewObserver(), profholdfast.New())},
		"remote":        {Remote: true},
		"slow reports":  {SlowHold: time.Minute, SlowWait: time.Minute},
	}
}

// Nothing adds an allocation to a pair that is not traced. A profile is of waits alone.
func TestPairAllocations(t *testing.T) {
	allocations := func(config holdfast.Config) float64 {
		l := newLocker(t, config)
		return testing.AllocsPerRun(200, func() { l.pair(t) })
	}
	nothing := allocations(holdfast.Config{})
	for name, config := range costs(t) {
		if got := allocations(config) - nothing; got > 0 {
			t.Errorf("%s: a pair makes %v allocations more, want none", name, got)
		}
	}
}

// Many names make as many series as one. If each name is a class, 1,000 of them are told apart.
func TestManyNamesMakeFewSeries(t *testing.T) {
	const classes = 1000
	names := 1200
	if harness.Thorough {
		names = 10_000
	}
	series := func(observer holdfast.Observer, names int, class func(string) string) {
		client, err := holdfast.New(instant.Store{}, &holdfast.Config{Observer: observer, Class: class})
		fatal.If(t, err)
		defer client.Close()
		for i := range names {
			locker{client.Mutex(fmt.Sprintf("order:%d", i))}.pair(t)
		}
	}
	inPrometheus := func(names int, class func(string) string) (n int) {
		observer := promholdfast.NewObserver()
		series(observer, names, class)
		for _, family := range gather(t, observer) {
			n += len(family.GetMetric())
		}
		return n
	}
	inOpenTelemetry := func(names int, class func(string) string) int {
		r := newRig(t)
		series(r.observer, names, class)
		return len(r.figures())
	}
	for where, count := range map[string]func(int, func(string) string) int{"Prometheus": inPrometheus,
		"OpenTelemetry": inOpenTelemetry} {
		one := count(1, nil)
		if got := count(names, nil); got != one {
			t.Errorf("%s: one name makes %d series, and %d names %d", where, one, names, got)
		}
		if got := count(names, func(name string) string { return name }); got < classes || got > (classes+1)*one {
			t.Errorf("%s: %d names that are classes make %d series, want those of %d classes and of all others", where,
				names, got, classes)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	r := newRig(t)
	l := newLocker(t, holdfast.Config{Observer: r.observer})
	for range 3 {
		l.pair(t)
	}
	figures := r.figures()
	for series, want := range map[string]int64{"lock.server.requests lock answered": 3,
		"lock.server.requests release answered": 3} {
		if figures[series] != want {
			t.Errorf("%s is %d, want %d, of %v", series, figures[series], want, figures)
		}
	}
}
