package clock_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// A liveTTL is a row of the table in docs/topologies.md.
type liveTTL struct{ outage, ttl, run time.Duration }

// liveTTLs reads the table.
func liveTTLs(t *testing.T) (rows []liveTTL) {
	t.Helper()
	page, err := os.ReadFile("../../docs/topologies.md")
	if err != nil {
		t.Fatal(err)
	}
	rowOf := regexp.MustCompile(`(?m)^\| (\d+) s \| (\d+) s \| (\d+) s \|$`)
	for _, row := range rowOf.FindAllStringSubmatch(string(page), -1) {
		var times [3]time.Duration
		for i, cell := range row[1:] {
			n, _ := strconv.Atoi(cell)
			times[i] = time.Duration(n) * time.Second
		}
		rows = append(rows, liveTTL{times[0], times[1], times[2]})
	}
	if len(rows) < 5 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	return rows
}

// breakdowns are the ways in which nobody answers for a while.
var breakdowns = map[string]struct{ begin, end func(*actor) }{
	"refused":                 {(*actor).Kill, (*actor).Resume},
	"silent":                  {(*actor).Pause, (*actor).Resume},
	"silent, on to a new one": {(*actor).Pause, func(a *actor) { a.Disconnect(); a.Resume() }},
}

// outlive takes a lease with a TTL, lets nobody answer for a while that begins so long after the
// grant, and returns the least trust that was left, 0 if the lease was lost.
func outlive(t *testing.T, how string, ttl, begin, outage time.Duration) (least time.Duration) {
	play(t, func(t *testing.T, s *scene) {
		a := s.actor("a", func(c *holdfast.Config) { c.TTL = ttl })
		lease, granted := s.lock(a, "n"), time.Now()
		sleepUntil(granted.Add(begin))
		breakdowns[how].begin(a)
		sleepUntil(granted.Add(begin + outage))
		breakdowns[how].end(a)
		least = time.Until(lease.Until())
		for lease.Err() == nil && time.Until(lease.Until()) < ttl*9/10 { // not renewed yet
			sleep(time.Millisecond)
			if left := time.Until(lease.Until()); left < least {
				least = left
			}
		}
		if lease.Err() != nil {
			least = 0
		}
	})
	return max(least, 0)
}

// A lease with the TTL of the table lives through the outage, however and whenever it begins. Under
// holdfast run, more than --grace is left all the time. A TTL of one and a half times the outage is
// lost at the worst moment: just before a renewal.
func TestOutageIsOutlivedWithTheTTLOfTheTable(t *testing.T) {
	const grace = 5 * time.Second // of holdfast run, a third of the TTL at most
	for _, row := range liveTTLs(t) {
		for how := range breakdowns {
			t.Run(fmt.Sprint(row.outage, " ", how), func(t *testing.T) {
				for _, before := range []time.Duration{1, 100 * time.Millisecond, 400 * time.Millisecond,
					900 * time.Millisecond} {
					if outlive(t, how, row.ttl, row.ttl/3-before, row.outage) == 0 {
						t.Errorf("a lease of %v is lost by an outage %v before its renewal", row.ttl, before)
					}
					early := min(grace, row.run/3)
					if left := outlive(t, how, row.run, row.run/3-before, row.outage); left <= early {
						t.Errorf("a lease of %v has %v left of an outage %v before its renewal: less than %v", row.run,
							left, before, early)
					}
				}
				if outlive(t, how, row.ttl, row.ttl/2-1, row.outage) == 0 {
					t.Errorf("a lease of %v is lost by an outage half of it after its grant", row.ttl)
				}
				if left := outlive(t, how, row.outage*3/2, row.outage/2-1, row.outage); left > 0 {
					t.Errorf("a lease of %v has %v left: the table asks for too much", row.outage*3/2, left)
				}
			})
		}
	}
}
