package gocron_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/jonboulle/clockwork"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/gocronholdfast"
	"github.com/holdfast-go/holdfast/holdfasttest"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A skewed clock is ahead of the others by some time.
type skewed struct {
	clockwork.Clock
	by time.Duration
}

func (s skewed) Now() time.Time { return s.Clock.Now().Add(s.by) }

func (s skewed) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// start starts a scheduler with one job, each minute, and returns what ends it.
func start(t *testing.T, ahead time.Duration, job func(ctx context.Context),
	options ...gocron.SchedulerOption) (end func()) {
	t.Helper()
	options = append(options, gocron.WithClock(skewed{clockwork.NewRealClock(), ahead}))
	scheduler, err := gocron.NewScheduler(options...)
	fatal.If(t, err)
	task := gocron.NewTask(func() { job(t.Context()) })
	if _, err := scheduler.NewJob(gocron.CronJob("* * * * *", false), task, gocron.WithName("report")); err != nil {
		t.Fatal(err)
	}
	scheduler.Start()
	return func() {
		fatal.If(t, scheduler.Shutdown())
	}
}

// minutes is how long the hosts run: an hour with HOLDFAST_PROOF=1.
func minutes() int {
	if harness.Thorough {
		return 60
	}
	return 15
}

// ticks counts the runs, by the minute. There are ten hosts whose clocks differ by up to
// 9 s.
func ticks(t *testing.T, minHold time.Duration) map[int]int {
	t.Helper()
	server := holdfasttest.Start(t)
	begin := time.Now()
	var mu sync.Mutex
	runs := map[int]int{}
	var ends []func()
	for host := range 10 {
		ahead := time.Duration(host) * time.Second
		locker := gocronholdfast.NewLocker(server.Client(nil), minHold)
		ends = append(ends, start(t, ahead, func(ctx context.Context) {
			ctx, cancel := locker.Bind(ctx, "report")
			defer cancel()
			if ctx.Err() != nil {
				t.Errorf("the job runs without its lock: %v", context.Cause(ctx))
			}
			mu.Lock()
			defer mu.Unlock()
			runs[int((time.Since(begin)+ahead).Round(time.Minute)/time.Minute)]++
		}, gocron.WithDistributedLocker(locker)))
	}
	<-time.After(time.Duration(minutes())*time.Minute + 30*time.Second)
	for _, end := range ends {
		end()
	}
	mu.Lock()
	defer mu.Unlock()
	return runs
}

// A short job ends before a host whose clock is behind comes to the same tick. The min hold keeps
// that host out, and without it ticks run more than once.
func TestTenHostsRunEachTickOnce(t *testing.T) {
	for _, minHold := range []time.Duration{30 * time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			runs, wrong := ticks(t, minHold), 0
			for minute := 1; minute <= minutes(); minute++ {
				if runs[minute] != 1 {
					wrong++
				}
			}
			if minHold > 0 && wrong > 0 || minHold == 0 && wrong < minutes()/2 {
				t.Errorf("with a min hold of %v, %d of %d ticks did not run once: %v", minHold, wrong, minutes(), runs)
			}
		})
	}
}

// inBubble runs a test with a server and a Locker on a fake clock.
func inBubble(t *testing.T, test func(*testing.T, *holdfasttest.Server, *gocronholdfast.Locker)) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		test(t, server, gocronholdfast.NewLocker(server.Client(nil), 0))
	})
}

func TestJobIsToldOfLoss(t *testing.T) {
	inBubble(t, func(t *testing.T, server *holdfasttest.Server, locker *gocronholdfast.Locker) {
		causes := make(chan error, 1)
		defer start(t, 0, func(ctx context.Context) {
			ctx, cancel := locker.Bind(ctx, "report")
			defer cancel()
			if lease, ok := holdfast.LeaseFrom(ctx); !ok || lease.Token() == 0 {
				t.Error("the job's context has no lease with a token")
			}
			server.Silence()
			<-ctx.Done()
			causes <- context.Cause(ctx)
		}, gocron.WithDistributedLocker(locker))()
		if cause := <-causes; !errors.Is(cause, holdfast.ErrLost) {
			t.Errorf("the job's context ended with %v", cause)
		}
	})
}

func TestLockerBeforeAndAfterRun(t *testing.T) {
	inBubble(t, func(t *testing.T, server *holdfasttest.Server, here *gocronholdfast.Locker) {
		there := gocronholdfast.NewLocker(server.Client(nil), 0)
		lock, err := here.Lock(t.Context(), "report")
		fatal.If(t, err)
		if _, err := there.Lock(t.Context(), "report"); !errors.Is(err, holdfast.ErrHeld) {
			t.Errorf("the other host is answered %v", err)
		}
		fatal.If(t, lock.Unlock(t.Context()))
		ctx, cancel := here.Bind(t.Context(), "report")
		defer cancel()
		if !errors.Is(context.Cause(ctx), holdfast.ErrNotHeld) {
			t.Errorf("after the run the cause is %v", context.Cause(ctx))
		}
		if lock, err = there.Lock(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		fatal.If(t, lock.Unlock(t.Context()))
	})
}

// A run that lost its lock and ends late leaves the lock of the next run of the job where it is.
func TestLateUnlockLeavesNextRun(t *testing.T) {
	inBubble(t, func(t *testing.T, server *holdfasttest.Server, locker *gocronholdfast.Locker) {
		late, err := locker.Lock(t.Context(), "report")
		fatal.If(t, err)
		ctx, cancel := locker.Bind(t.Context(), "report")
		defer cancel()
		lease, _ := holdfast.LeaseFrom(ctx)
		fatal.If(t, server.Client(nil).ForceBreak(t.Context(), "report", lease.Token()))
		<-ctx.Done()
		next, err := locker.Lock(t.Context(), "report")
		fatal.If(t, err)
		_ = late.Unlock(t.Context()) // it says that the lock was lost
		ctx, cancel = locker.Bind(t.Context(), "report")
		defer cancel()
		if ctx.Err() != nil {
			t.Errorf("the next run has no lock: %v", context.Cause(ctx))
		}
		fatal.If(t, next.Unlock(t.Context()))
	})
}

func TestBadArguments(t *testing.T) {
	client := holdfasttest.New(t)
	var bad *holdfast.ArgumentError
	if _, err := gocronholdfast.NewLocker(client, -time.Second).Lock(t.Context(), "report"); !errors.As(err, &bad) {
		t.Errorf("a negative min hold is answered %v", err)
	}
	if _, err := gocronholdfast.NewLocker(nil, 0).Lock(t.Context(), "report"); !errors.As(err, &bad) {
		t.Errorf("a nil client is answered %v", err)
	}
	if err := gocronholdfast.NewElector(client, "").Run(t.Context()); !errors.As(err, &bad) {
		t.Errorf("an empty name is answered %v", err)
	}
}

func TestLeaderIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := holdfasttest.Start(t)
		var mu sync.Mutex
		runs := map[string]int{}
		lead := func(host string) (*gocronholdfast.Elector, context.CancelFunc, <-chan error, func()) {
			elector := gocronholdfast.NewElector(server.Client(nil), "cron")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- elector.Run(ctx) }()
			synctest.Wait()
			return elector, cancel, ended, start(t, 0, func(ctx context.Context) {
				ctx, cancel := elector.Bind(ctx)
				defer cancel()
				if ctx.Err() != nil {
					t.Errorf("the job runs on a host that does not lead: %v", context.Cause(ctx))
				}
				mu.Lock()
				defer mu.Unlock()
				runs[host]++
			}, gocron.WithDistributedElector(elector))
		}
		first, resign, ended, endOne := lead("first")
		second, stop, over, endTwo := lead("second")
		if err := first.IsLeader(t.Context()); err != nil {
			t.Errorf("the first is no leader: %v", err)
		}
		if err := second.IsLeader(t.Context()); !errors.Is(err, gocronholdfast.ErrNotLeader) {
			t.Errorf("the second is answered %v", err)
		}
		<-time.After(10*time.Minute + 30*time.Second)
		endOne()
		resign()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
		if err := first.IsLeader(t.Context()); !errors.Is(err, gocronholdfast.ErrNotLeader) {
			t.Errorf("after it resigned the first is answered %v", err)
		}
		<-time.After(10 * time.Minute)
		endTwo()
		stop()
		<-over
		mu.Lock()
		defer mu.Unlock()
		if runs["first"] != 10 || runs["second"] != 10 {
			t.Errorf("the hosts ran the job %v times, want 10 each", runs)
		}
	})
}

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) {
	harness.Quiet()
	os.Exit(leak.Main(m))
}
