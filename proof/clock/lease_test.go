package clock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/network"
)

// Trap 5 and 7: a holder is told at its next renewal that its key is gone or another's. The key is
// left as it is, and nothing more is sent about it.
func TestLeaseKeyTakenIsLost(t *testing.T) {
	const stranger = "3mx:abcdefghijklmnopqrstuv10097568000000000500:1:15000:0:0:0:"
	for name, test := range map[string]struct {
		command []any // empty: DEL
		reason  holdfast.Reason
		waiting bool
	}{
		"deleted":                     {nil, holdfast.LossGone, false},
		"deleted while others wait":   {nil, holdfast.LossGone, true},
		"overwritten":                 {[]any{"SET", key("n"), "mine"}, holdfast.LossForeign, false},
		"given to another":            {[]any{"SET", key("n"), stranger}, holdfast.LossGone, false},
		"overwritten with a list":     {[]any{"LPUSH", key("n"), "mine"}, holdfast.LossForeign, false},
		"another while others wait":   {[]any{"SET", key("n"), "mine"}, holdfast.LossForeign, true},
		"a set of somebody else":      {[]any{"ZADD", key("n"), 1, "mine"}, holdfast.LossGone, false},
		"another format while I wait": {[]any{"SET", key("n"), "2mx:" + stranger[4:]}, holdfast.LossForeign, true},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b, granted := s.actor("a"), s.actor("b"), time.Now()
			lease := s.lock(a, "n")
			if test.waiting {
				s.startLock(b, "n")
			}
			sleep(7 * time.Second)
			s.rdb.Del(t.Context(), key("n"))
			if test.command != nil {
				if err := s.rdb.Do(t.Context(), test.command...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if end := awaitLoss(t, lease, test.reason); !end.Equal(granted.Add(10 * time.Second)) {
				t.Errorf("told after %v, want at the second renewal", end.Sub(granted))
			}
			before := s.rdb.Dump(t.Context(), key("n")).Val()
			told := time.Now().Add(1)
			sleep(time.Minute)
			if after := s.rdb.Dump(t.Context(), key("n")).Val(); !test.waiting && after != before {
				t.Errorf("the key was changed from %q to %q", before, after)
			}
			if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("released: %v", err)
			}
			if sent := s.commands(a, told); len(sent) != 0 {
				t.Errorf("%d commands after the loss, the first %v", len(sent), sent[0])
			}
		})
	}
}

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

// Trap 35: an acquire that reaches the server after its sender gave up does nothing: it neither
// holds nor joins the queue.
func TestMutexLateAcquireDoesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		known bool // the client has heard the server's time before
		held  bool
		lock  func(*holdfast.Mutex, context.Context) (*holdfast.Lease, error)
	}{
		"TryLock":            {true, false, (*holdfast.Mutex).TryLock},
		"TryLock, the first": {false, false, (*holdfast.Mutex).TryLock},
		"Lock":               {true, false, (*holdfast.Mutex).Lock},
		"Lock, held":         {true, true, (*holdfast.Mutex).Lock},
		"Lock, the first":    {false, true, (*holdfast.Mutex).Lock},
	} {
		runPlay(t, name, func(t *testing.T, s *scene) {
			a, b := s.actor("a"), s.actor("b")
			if test.known {
				s.release(s.lock(a, "other"))
			}
			if test.held {
				s.lock(b, "n")
			}
			began := time.Now()
			a.Strike(network.Rule{Match: network.Contains(s.script("ask")), Times: 10, Do: network.Delay,
				Late: 1100 * time.Millisecond})
			// its cleaning up does not help
			a.Strike(network.Rule{Match: network.Contains(s.script("free")), Times: 100})
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			defer cancel()
			if lease, err := test.lock(a.Mutex("n"), ctx); err == nil {
				t.Fatalf("got a lease %v", lease.Token())
			}
			if took := time.Since(began); took > 900*time.Millisecond {
				t.Errorf("gave up after %v", took)
			}
			sleep(2 * time.Second)
			if n := len(s.commands(a, began, "ask")); n == 0 {
				t.Fatal("the request did not arrive, so this test shows nothing")
			}
			if s.rdb.Exists(t.Context(), key("n")).Val() != 0 && !test.held {
				t.Errorf("it took effect: the key has %v left", s.remainingTTL("n"))
			}
			if kind := s.rdb.Type(t.Context(), key("n")).Val(); test.held && kind != "string" {
				t.Errorf("it joined the queue: the key is a %s", kind)
			}
		})
	}
}
