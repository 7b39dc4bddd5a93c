package observing_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/telemetry"
)

// counts are how many events of each kind there were.
type counts struct {
	mu sync.Mutex
	of map[holdfast.EventKind]float64
}

func (c *counts) Observe(e holdfast.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[e.Kind]++
}

const calls = 3 * 4 * 20

// contend makes calls that are granted, passed on, refused and given up, in several processes, and
// returns how many there were of each.
func contend(t *testing.T, observer holdfast.Observer) map[holdfast.EventKind]float64 {
	t.Helper()
	counter := &counts{of: map[holdfast.EventKind]float64{}}
	server := holdfasttest.Start(t)
	var work sync.WaitGroup
	for p := range 3 {
		client := server.Client(&holdfast.Config{Observer: holdfast.Observers(counter, observer)})
		for w := range 4 {
			work.Go(func() {
				for i := range 20 {
					use(t, client, p+w+i)
				}
			})
		}
	}
	work.Wait()
	synctest.Wait()
	for _, kind := range []holdfast.EventKind{holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRefused,
		holdfast.EventGaveUp} {
		if counter.of[kind] == 0 {
			t.Errorf("no call was %v", kind)
		}
	}
	return counter.of
}

// use locks in one of three ways.
func use(t *testing.T, client *holdfast.Client, way int) {
	lock := client.Mutex("order:42", holdfast.WithWait(10*time.Millisecond))
	acquire := lock.Lock
	if way%3 == 0 {
		acquire = lock.TryLock
	}
	lease, err := acquire(t.Context())
	if err != nil {
		if !errors.Is(err, holdfast.ErrHeld) && !errors.Is(err, holdfast.ErrWaitOver) {
			t.Error(err)
		}
		<-time.After(3 * time.Millisecond)
		return
	}
	<-time.After(2 * time.Millisecond)
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// A figure is one that must be exact.
type figure struct {
	name      string
	got, want float64
}

// exact compares the figures of an observer with the counts. Total sums the series of an
// instrument, and outcome the calls that ended so.
func exact(t *testing.T, want map[holdfast.EventKind]float64, total map[string]float64,
	outcome map[telemetry.Outcome]float64) {
	t.Helper()
	for _, f := range []figure{
		{"granted", outcome[telemetry.OutcomeGranted], want[holdfast.EventGranted]},
		{"passed on", outcome[telemetry.OutcomePassedOn], want[holdfast.EventPassed]},
		{"refused", outcome[telemetry.OutcomeRefused], want[holdfast.EventRefused]},
		{"gave up", outcome[telemetry.OutcomeGaveUp], want[holdfast.EventGaveUp]},
		{"errors", outcome[telemetry.OutcomeError], 0},
		{"all calls", total["acquisitions"], calls},
		{"waits", total["waits"], calls},
		{"holds ended", total["hold times"], want[holdfast.EventGranted] + want[holdfast.EventPassed]},
		{"lost", total["losses"], want[holdfast.EventLost]},
		{"held now", total["holds"], 0},
		{"waiting now", total["waiters"], 0},
	} {
		if f.got != f.want {
			t.Errorf("%s: %v, want %v", f.name, f.got, f.want)
		}
	}
}
