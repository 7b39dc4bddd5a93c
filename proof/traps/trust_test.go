package traps_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// expiry is a moment that is not before the end of a key at the server.
func expiry(t *testing.T, srv *redisserver.Server, name string) time.Time {
	t.Helper()
	left := harness.Must(t, srv, "PTTL", harness.KeyOf(name)).(int64)
	if left < 0 {
		t.Fatalf("the key has no end: %d", left)
	}
	return time.Now().Add(time.Duration(left) * time.Millisecond)
}

// Trap 1: the new deadline is counted from the answer, or set before the asking, so that the holder
// learns of its loss when the key is gone. Every answer is late by 100 ms here; the server's end
// must lie behind that of trust.
func TestLeaseTrustEndsBeforeKey(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	seen := new(harness.Events)
	c := harness.Locker(t, p.Addr(), &holdfast.Config{TTL: 6 * time.Second, Observer: seen})
	harness.Release(t, harness.Lock(t, c.Mutex("warm")))
	p.Delay(100 * time.Millisecond)
	lease := harness.Lock(t, c.Mutex("n"))
	check := func(when string) {
		t.Helper()
		for { // without a renewal in between
			until := lease.Until()
			end := expiry(t, srv, "n")
			if lease.Until().Equal(until) {
				if !until.Before(end.Add(-10 * time.Millisecond)) {
					t.Errorf("%s: trusted until %v after the key's end", when, until.Sub(end))
				}
				return
			}
		}
	}
	check("after the grant")
	harness.Eventually(t, "a renewal", func() bool { return seen.Count(holdfast.EventRenewed) >= 1 })
	check("after a renewal")

	// The network falls silent.
	p.Silence()
	harness.Signalled(t, "the holder is told", lease.Done())
	var lost *holdfast.LostError
	// Trap 6: loss is no "context canceled".
	if cause := context.Cause(leased.Context(lease)); !errors.As(cause, &lost) || lost.Reason != holdfast.LossExpired || lost.Err == nil ||
		errors.Is(cause, context.Canceled) || !errors.Is(lease.Err(), holdfast.ErrLost) {
		t.Errorf("cause %v (%v), Err %v", cause, errors.Unwrap(cause), lease.Err())
	}
	p.Speak()
	if err := lease.Err(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("revived: %v", err)
	}
	if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
		t.Errorf("release: %v", err)
	}
	harness.Gone(t, srv, "n", harness.Patience) // the janitor, or expiry
}

// Trap 5: a key that an operator deleted, overwrote or gave to another is noticed by the next
// renewal, and is neither prolonged nor made again. Trap 7: renewal stops at once on such an
// answer.
func TestLeaseKeyTamperedIsLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		reason holdfast.Reason
		tamper []any
	}{
		"deleted":     {holdfast.LossGone, []any{"DEL", harness.KeyOf("n")}},
		"overwritten": {holdfast.LossForeign, []any{"SET", harness.KeyOf("n"), "by hand", "PX", 600_000}},
		"given away": {holdfast.LossGone, []any{"SET", harness.KeyOf("n"),
			"3mx:AAAAAAAAAAAAAAAAAAAAAA" + "1763700000000000" + "200:1:600000:0:0:0:other", "PX", 600_000}},
		"another kind": {holdfast.LossForeign, []any{"SET", harness.KeyOf("n"), "3sx:AAAAAAAAAAAAAAAAAAAAAA17637000000000001:1:15000:0:0:0:", "PX", 600_000}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := harness.Proxied(t)
			seen := new(harness.Events)
			lease := harness.Lock(t, harness.Locker(t, p.Addr(), &holdfast.Config{TTL: 6 * time.Second, Observer: seen}).Mutex("n"))
			harness.Must(t, srv, test.tamper...)
			before, renewed := harness.Must(t, srv, "DUMP", harness.KeyOf("n")), seen.Count(holdfast.EventRenewed)
			harness.Signalled(t, "the holder is told", lease.Done())
			if n := seen.Count(holdfast.EventRenewed) - renewed; n > 1 { // one may have been under way
				t.Errorf("told after %d renewals", n)
			}
			var lost *holdfast.LostError
			if !errors.As(lease.Err(), &lost) || lost.Reason != test.reason {
				t.Errorf("Err is %v", lease.Err())
			}
			p.Record()
			if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
				t.Errorf("release: %v", err)
			}
			quiet := time.After(2500 * time.Millisecond) // more than one renewal's time
			<-quiet
			if sent := harness.SentTo(p); len(sent) > 0 {
				t.Errorf("sent after the loss: %v", sent)
			}
			if after := harness.Must(t, srv, "DUMP", harness.KeyOf("n")); after != before {
				t.Errorf("the key was touched: %q, then %q", before, after)
			}
			if left, _ := harness.Must(t, srv, "PTTL", harness.KeyOf("n")).(int64); before != nil && left < 300_000 {
				t.Errorf("its time was set to %d ms", left)
			}
		})
	}
}

// Trap 7: the first renewal that fails ends renewal for ever.
func TestLeaseRenewalSurvivesFailures(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	seen := new(harness.Events)
	lease := harness.Lock(t, harness.Locker(t, p.Addr(), &holdfast.Config{TTL: 6 * time.Second, Observer: seen}).Mutex("n"))
	for round := 1; round <= 2; round++ {
		lost := p.DropAnswer("EVALSHA")
		harness.Signalled(t, "a renewal without an answer", lost)
		before := seen.Count(holdfast.EventRenewed)
		p.Cut()
		harness.Eventually(t, "the observer hears of it", func() bool { return seen.Count(holdfast.EventRetried) >= round })
		harness.Eventually(t, "a renewal after it", func() bool { return seen.Count(holdfast.EventRenewed) > before && lease.Err() == nil })
	}
	harness.Release(t, lease)
	harness.Free(t, srv, "n")
}

// Trap 8: a renewal that is under way outlives the release and holds the lock, or prolongs what the
// next holds.
func TestLeaseRenewalDoesNotOutliveRelease(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	lease := harness.Lock(t, harness.Locker(t, p.Addr(), harness.Brief(6*time.Second)).Mutex("n"))
	if err := harness.Checked(t, lease); err != nil { // so that the server knows the script
		t.Fatal(err)
	}
	held := p.HoldRequest("EVALSHA") // the first renewal
	harness.Signalled(t, "a renewal", held.Arrived())
	harness.Release(t, lease)
	harness.Free(t, srv, "n")
	next := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n", holdfast.WithoutRenewal()))
	value := harness.Must(t, srv, "GET", harness.KeyOf("n"))
	calls := scripts(srv)
	held.Pass()
	harness.Eventually(t, "the renewal arrives", func() bool { return scripts(srv) > calls })
	if got := harness.Must(t, srv, "GET", harness.KeyOf("n")); got != value {
		t.Errorf("%q became %q", value, got)
	}
	if left := harness.Must(t, srv, "PTTL", harness.KeyOf("n")).(int64); left <= 6000 { // that of the renewal
		t.Errorf("it has %d ms left", left)
	}
	harness.Release(t, next)
	harness.Free(t, srv, "n")
}

// Trap 4: a hand-over that arrives after its claim time is taken for a lease.
func TestHandOverAfterClaimIsNoLease(t *testing.T) {
	t.Parallel()
	srv, p := harness.Proxied(t)
	c := harness.Locker(t, p.Addr(), nil)
	harness.Hears(t, srv, c)
	holder := harness.Lock(t, harness.Locker(t, srv.Addr(), nil).Mutex("n"))
	slow := harness.Claim(harness.Within(t, harness.Patience), c.Mutex("n")) // a claim of half a second
	harness.Waiting(t, srv, "n", 1)
	message := p.HoldAnswer("holdfast:@")
	harness.Release(t, holder)
	harness.Signalled(t, "the message", message.Arrived())
	p.Silence()
	harness.Eventually(t, "the claim lapses", func() bool {
		lease, err := harness.Locker(t, srv.Addr(), nil).Mutex("n").TryLock(harness.Within(t, harness.Patience))
		holder = lease
		return err == nil
	})
	message.Pass()
	p.Speak()
	select {
	case <-slow.Done:
		t.Fatalf("got %v, %v while another holds", slow.Lease, slow.Err)
	case <-time.After(time.Second):
	}
	if v, _ := srv.Do("TYPE", harness.KeyOf("n")); !strings.Contains("string zset", v.(string)) || holder.Err() != nil {
		t.Errorf("the other's hold is touched: %v, %v", v, holder.Err())
	}
	harness.Release(t, holder)
	harness.HandBack(t, slow.Got(t))
}
