package faults

import (
	"fmt"
	"testing"
	"time"

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
