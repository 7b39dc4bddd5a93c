package faults

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 40: the server's clock is an hour off, and steps by an hour, to and fro, under those who
// lock. A step forward ends all holds, as nobody can tell it from time that passed: then another
// may be in before the holder's process is told, which goes on with smaller tokens meanwhile; both
// are counted. Tokens of new holds grow through every step, so the storage loses no update; nobody
// is stuck.
func TestServerClock(t *testing.T) {
	harness.Long(t)
	clock := redisserver.NewClock(t)
	clock.Ahead(time.Hour)
	srv := clock.Start(t)
	l := &harness.Load{T: t, Names: harness.Names(4)}
	steps := []time.Duration{0, -time.Hour, time.Hour, 0, time.Hour, -time.Hour}
	n := 0
	stop := repeat(200*time.Millisecond, func() { clock.Ahead(steps[n%len(steps)]); n++ })
	l.Run(newClients(t, srv, time.Second), 4, 0, time.Duration(times(t))*4*time.Second)
	stepped := stop()
	t.Logf("%d holds began while another was trusted, %d with a smaller token than one before", l.Overlaps, l.Smaller)
	if l.Smaller > l.Holds/10 {
		t.Error("tokens follow the clock")
	}
	l.Overlaps, l.Smaller = 0, 0
	l.Report(fmt.Sprintf("the server's clock was an hour off and stepped %d times", stepped))
}

// Trap 44: the server is started anew with a clock of another time, and reads what it wrote down. A
// clock that was set back ends nothing; one that was set forward ends all, as if it was time that
// passed.
func TestServerRestartedAtAnyTime(t *testing.T) {
	harness.Long(t)
	clock := redisserver.NewClock(t)
	srv := clock.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	m := newClient(t, srv.Addr(), holdfast.Config{}).Mutex("n", holdfast.WithTTL(time.Minute))
	restart := func(show time.Time) {
		t.Helper()
		srv.Kill()
		clock.Show(show)
		if err := srv.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	first := harness.Lock(t, m)
	next := harness.Claim(t.Context(), newClient(t, srv.Addr(), holdfast.Config{}).Mutex("n"))
	harness.Waiting(t, srv, "n", 1)
	restart(time.Unix(1, 0))
	if err := harness.Checked(t, first); err != nil {
		t.Fatal(err)
	}
	harness.Release(t, first)
	second := next.Got(t)
	restart(time.Now())
	if err := harness.Checked(t, second); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("a hold of 1970 was answered %v today", err)
	}
	third := harness.Lock(t, m)
	harness.Release(t, third)
	restart(time.Unix(1, 0))
	fourth := harness.Lock(t, m)
	harness.Release(t, fourth)
	if tokens := []int64{first.Token(), second.Token(), third.Token(), fourth.Token()}; !slices.IsSorted(tokens) {
		t.Errorf("tokens %d", tokens)
	}
}
