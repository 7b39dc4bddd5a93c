package observing_test

import (
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/promholdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/telemetry"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
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
	release(t, lease)
}

// All calls of a run with contention, in several processes, are counted exactly by both observers,
// and nothing is held or waits at the end.
func TestFiguresAreExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processes, workers, each = 3, 4, 20
		r, prom, events := newRig(t), promholdfast.NewObserver(), &harness.Events{}
		server := holdfasttest.Start(t)
		var work sync.WaitGroup
		for p := range processes {
			client := server.Client(&holdfast.Config{Observer: holdfast.Observers(events, r.observer, prom)})
			for w := range workers {
				work.Go(func() {
					for i := range each {
						use(t, client, p+w+i)
					}
				})
			}
		}
		work.Wait()
		synctest.Wait()
		granted, passed := events.Count(holdfast.EventGranted), events.Count(holdfast.EventPassed)
		refused, gaveUp := events.Count(holdfast.EventRefused), events.Count(holdfast.EventGaveUp)
		if granted == 0 || passed == 0 || refused == 0 || gaveUp == 0 {
			t.Errorf("%d calls were granted, %d passed on, %d refused, and %d gave up", granted, passed, refused, gaveUp)
		}
		figures, families := r.figures(), gather(t, prom)
		for _, f := range []struct {
			otel, prom string
			outcome    telemetry.Outcome // empty: all series
			want       int
		}{
			{"lock.acquisitions", "holdfast_acquisitions_total", telemetry.OutcomeGranted, granted},
			{"lock.acquisitions", "holdfast_acquisitions_total", telemetry.OutcomePassedOn, passed},
			{"lock.acquisitions", "holdfast_acquisitions_total", telemetry.OutcomeRefused, refused},
			{"lock.acquisitions", "holdfast_acquisitions_total", telemetry.OutcomeGaveUp, gaveUp},
			{"lock.acquisitions", "holdfast_acquisitions_total", "", processes * workers * each},
			{"lock.wait_time", "holdfast_wait_seconds", "", processes * workers * each},
			{"lock.hold_time", "holdfast_hold_seconds", "", granted + passed},
			{"lock.losses", "holdfast_losses_total", "", events.Count(holdfast.EventLost)},
			{"lock.holds", "holdfast_holds", "", 0},
			{"lock.waiters", "holdfast_waiters", "", 0},
		} {
			if got := total(figures, f.otel, string(f.outcome)); got != f.want {
				t.Errorf("%s %s is %d, want %d", f.otel, f.outcome, got, f.want)
			}
			if got := sum(families[f.prom], string(f.outcome)); got != float64(f.want) {
				t.Errorf("%s %s is %v, want %d", f.prom, f.outcome, got, f.want)
			}
		}
	})
}
