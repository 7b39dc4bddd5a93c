package observing_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/profholdfast"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/store"
)

// An instant store is a server in memory that answers each request of a pair at once: nobody else
// wants the lock.
type instant struct{ store.Store }

func (instant) Do(_ context.Context, _ string, commands []store.Command) []store.Reply {
	replies := make([]store.Reply, len(commands))
	for i, command := range commands {
		switch {
		case len(command) == 1: // TIME
			replies[i].Value = []any{"1795231125", "887127"}
		case len(command) == 11: // a release
			replies[i].Value = int64(1)
		default:
			replies[i].Value = "H17952311258871271|1795231125887127"
		}
	}
	return replies
}

func (instant) Nodes(context.Context) (store.Nodes, error) { return store.Nodes{}, nil }

func (instant) Listen(context.Context, string, bool, store.Events) (store.Listener, error) {
	return nil, errors.New("NOPERM it has no channels")
}

// A locker makes uncontended pairs of Lock and Release.
type locker struct{ mutex *holdfast.Mutex }

func newLocker(tb testing.TB, config holdfast.Config) locker {
	tb.Helper()
	client, err := holdfast.New(instant{}, &config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return locker{client.Mutex("order:42")}
}

func (l locker) pair(tb testing.TB) {
	if err := harness.Given(l.mutex.Lock(context.Background())); err != nil {
		tb.Fatal(err)
	}
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
