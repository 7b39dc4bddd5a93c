package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

const extendTTL = 15 * time.Second

var fixed = engine.Options{Fixed: true}

// extend extends a lease, which must work.
func (h *host) extend(lease interface{ Extend(context.Context) error }) {
	h.t.Helper()
	if err := lease.Extend(h.t.Context()); err != nil {
		h.t.Errorf("Extend: %v", err)
	}
}

func checkTrust(t *testing.T, lease interface{ Until() time.Time }, want time.Time) {
	t.Helper()
	if got := lease.Until(); !got.Equal(want) {
		t.Errorf("trusted for %v, want %v", time.Until(got), time.Until(want))
	}
}

func checkNoAnswer(t *testing.T, err error) {
	t.Helper()
	var failure *protocol.Failure
	if ended := (*engine.WaitFailure)(nil); errors.As(err, &ended) { // ctx ended before
		err = ended.Failure
	}
	if !errors.As(err, &failure) || failure.Reason != protocol.NoAnswer || !failure.Unknown {
		t.Errorf("got %v, want that no answer came", err)
	}
}

// Trap 1: trust counts from the moment at which the request was sent, not from its answer.
func TestLeaseExtendTrustsFromItsSending(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		sleep(10 * time.Second)
		a.setWay(way{there: 300 * time.Millisecond, back: 600 * time.Millisecond})
		sent := time.Now()
		if a.extend(lease); time.Since(sent) != 900*time.Millisecond {
			t.Errorf("Extend took %v", time.Since(sent))
		}
		checkTrust(t, lease, sent.Add(extendTTL-margin(extendTTL)))
	})
}

// Trap 10: without an answer nothing is sent again. The request lasts for a second at most, and no
// longer than trust, and an answer after that does not bring the lease back.
func TestLeaseExtendWithoutAnswerIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		want, began := lease.Until(), time.Now()
		a.setWay(silent)
		checkNoAnswer(t, lease.Extend(t.Context()))
		if took := time.Since(began); took != time.Second {
			t.Errorf("Extend took %v", took)
		}
		checkTrust(t, lease, want)
		sleep(time.Until(want) - 100*time.Millisecond)
		a.setWay(way{back: 150 * time.Millisecond})
		var cause *loss
		if err := lease.Extend(t.Context()); !errors.As(err, &cause) || cause.Err == nil || !time.Now().Equal(want) {
			t.Errorf("got %v, %v after the end of trust", err, time.Since(want))
		}
		sleep(time.Minute)
		awaitLoss(t, lease, engine.Expired)
		if n := len(a.requests(began, "renew")); n != 2 {
			t.Errorf("%d requests", n)
		}
	})
}

// A lease that has ended is not extended, and nothing is sent.
func TestLeaseExtendAfterItsEndSendsNothing(t *testing.T) {
	var cause *loss
	type row struct {
		end  func(*host, *engine.Lease)
		want func(error) bool
	}
	bubbles(t, map[string]row{
		"lost": {func(_ *host, l *engine.Lease) { <-l.Context().Done() },
			func(err error) bool { return errors.As(err, &cause) }},
		"released": {func(h *host, l *engine.Lease) { h.release(l) },
			func(err error) bool { return errors.Is(err, engine.ErrNotHeld) }},
		"closed": {func(h *host, _ *engine.Lease) { _ = h.Close() },
			func(err error) bool { return errors.Is(err, errClosed) }},
	}, func(t *testing.T, server *memory.Server, test row) {
		a := newHost(t, server)
		lease := a.lock(fixed)
		test.end(a, lease)
		if err := lease.Extend(t.Context()); !test.want(err) {
			t.Errorf("got %v", err)
		}
		if n := len(a.requests(time.Time{}, "renew")); n > 0 {
			t.Errorf("%d requests", n)
		}
	})
}

// The request of a caller that has left keeps its place: a release, a downgrade and the next Extend
// wait for its answer. The answer does not prolong trust, as its caller was told that none came.
func TestLeaseExtendLeftByCallerKeepsItsTurn(t *testing.T) {
	spec := protocol.Spec{Name: "n", Kind: protocol.ReadWrite}
	type row struct {
		op   string
		call func(t *testing.T, l *engine.Lease) error
	}
	bubbles(t, map[string]row{
		"free":      {"free", func(_ *testing.T, l *engine.Lease) error { return l.Release() }},
		"downgrade": {"downgrade", func(t *testing.T, l *engine.Lease) error { return l.Downgrade(t.Context()) }},
		"extend":    {"renew", func(t *testing.T, l *engine.Lease) error { return l.Extend(t.Context()) }},
	}, func(t *testing.T, server *memory.Server, then row) {
		a := newHost(t, server)
		lease := a.try(a.NewLock(spec, engine.Options{TTL: extendTTL, Fixed: true}))
		want := lease.Until()
		sleep(time.Second)
		a.setWay(way{there: 200 * time.Millisecond, back: 300 * time.Millisecond})
		began := time.Now()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		checkNoAnswer(t, lease.Extend(short))
		a.setWay(way{})
		left := time.Now()
		if err := then.call(t, lease); err != nil {
			t.Error(err)
		}
		if sent := a.requests(left, then.op); len(sent) != 1 || sent[0].at.Sub(began) != 500*time.Millisecond {
			t.Errorf("sent %v", sent)
		}
		if trouble := a.NewLock(spec, fixed).Trouble(); trouble != nil {
			t.Errorf("the caller's end is told as trouble: %v", trouble)
		}
		switch then.op {
		case "downgrade":
			checkTrust(t, lease, want)
		case "renew":
			checkTrust(t, lease, began.Add(500*time.Millisecond+extendTTL-margin(extendTTL)))
		}
	})
}

// lockAll takes names together, which are free or entered.
func (h *host) lockAll(ctx context.Context, options engine.Options, names ...string) *engine.GroupLease {
	h.t.Helper()
	options.TTL = extendTTL
	lease, err := h.NewGroup(names, protocol.Spec{Kind: protocol.Mutex}, options).Try(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	return lease
}

// Two groups that share holds do not wait for each other for ever.
func TestGroupExtendOfSharedHoldsReturns(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		one := a.lockAll(t.Context(), fixed, "a", "b", "c")
		other := a.lockAll(one.Context(), fixed, "b", "c", "d")
		a.setWay(way{there: 50 * time.Millisecond, back: 50 * time.Millisecond})
		done := make(chan error)
		for i := range 20 {
			go func() { done <- []*engine.GroupLease{one, other}[i%2].Extend(t.Context()) }()
		}
		for range 20 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		a.setWay(way{})
		if err := errors.Join(other.Release(), one.Release()); err != nil {
			t.Error(err)
		}
	})
}

// A name whose hold is renewed, as the caller entered it, is left to the watchdog.
func TestGroupExtendLeavesRenewedHolds(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		renewed := a.lock(engine.Options{})
		lease := a.lockAll(renewed.Context(), fixed, "m", "n")
		began := time.Now()
		a.extend(lease)
		if n := a.requests(began, "renew"); len(n) != 1 || n[0].size != 1 {
			t.Errorf("sent %v", n)
		}
		a.release(lease)
		a.release(renewed)
	})
}

// Whatever becomes of the requests, an extended lease is trusted for no longer than the server
// keeps it, less the margin. No answer shortens trust, and a failure leaves it as it was.
func TestLeaseExtendTrustIsWithinServers(t *testing.T) {
	runs := 300
	if os.Getenv("HOLDFAST_PROOF") == "1" {
		runs = 10_000
	}
	for seed := range runs {
		bubble(t, func(t *testing.T, server *memory.Server) {
			r := &extending{T: t, d: rand.New(rand.NewPCG(1, uint64(seed))), host: newHost(t, server)}
			r.run(seed, server)
		})
		if t.Failed() {
			break
		}
	}
}

// An extending is one random run.
type extending struct {
	*testing.T
	*host
	d     *rand.Rand
	lease *engine.Lease
	ttl   time.Duration
	seen  protocol.Resource // of another client, which asks how long the hold lasts
}

func (r *extending) run(seed int, server *memory.Server) {
	ttls := []time.Duration{100 * time.Millisecond, time.Second, 5 * time.Second, extendTTL}
	o := engine.Options{Fixed: true, TTL: ttls[r.d.IntN(len(ttls))]}
	if r.d.IntN(3) == 0 {
		o.MaxHold = o.TTL * time.Duration(1+r.d.IntN(4))
	}
	if r.d.IntN(3) == 0 {
		o.MinHold = o.TTL / 2 * time.Duration(1+r.d.IntN(2))
	}
	r.ttl = o.TTL
	lock := r.mutex(o)
	r.lease, r.seen = r.lock(o), server.Connect("test").Bind(lock.Spec())
	trace := fmt.Sprintf("seed %d, %+v", seed, o)
	stop, cancel := context.WithCancel(r.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.extendAtRandom(stop, rand.New(rand.NewPCG(2, uint64(seed)))) }()
	last := r.lease.Until()
	for range 80 {
		if r.d.IntN(3) == 0 {
			r.setWay(r.anyWay())
		}
		sleep(time.Duration(r.d.Int64N(int64(r.ttl / 8))))
		until := r.lease.Until()
		if r.lease.Err() != nil {
			break
		}
		if until.Before(last) {
			r.Errorf("%s: trust was taken back by %v", trace, last.Sub(until))
		}
		last = until
		if kept := r.kept(); until.Add(margin(r.ttl) - time.Microsecond).After(kept) {
			r.Errorf("%s: trusted for %v, and the server keeps it for %v", trace, time.Until(until), time.Until(kept))
		}
	}
	cancel()
	<-done
	r.setWay(way{})
	_ = r.lease.Release()
}

// kept is until when the server keeps the hold.
func (r *extending) kept() time.Time {
	answer, err := r.seen.Ask(r.Context(), protocol.Ask{Ticket: protocol.Ticket{ID: protocol.NewID(), Block: 1},
		TTL: time.Second, Deadline: time.Now().Add(1)})
	if err != nil || answer.Status == protocol.Held {
		r.Errorf("the name was had while the lease is trusted: %v, %v", answer.Status, err)
	}
	return time.Now().Add(answer.Remaining)
}

// anyWay is a way with delays about as long as a request may last.
func (r *extending) anyWay() way {
	delay := func() time.Duration { return time.Duration(r.d.Int64N(int64(min(r.ttl/6, time.Second)))) }
	ways := []way{{}, {there: delay()}, {back: delay()}, {there: delay(), back: delay()}, {noRequests: true},
		{noAnswers: true, there: delay()}}
	return ways[r.d.IntN(len(ways))]
}

// extendAtRandom calls Extend until it is stopped or the lease has ended.
func (r *extending) extendAtRandom(stop context.Context, d *rand.Rand) {
	for stop.Err() == nil && r.lease.Err() == nil {
		before, sent := r.lease.Until(), time.Now()
		ctx, cancel := context.WithTimeout(stop, time.Duration(d.Int64N(int64(r.ttl))))
		err := r.lease.Extend(ctx)
		cancel()
		after := r.lease.Until()
		var failure *protocol.Failure
		switch {
		case errors.As(err, &failure) && r.lease.Err() == nil && !after.Equal(before):
			r.Errorf("a failure moved the end of trust by %v: %v", after.Sub(before), err)
		case err == nil && after.Before(slices.MinFunc([]time.Time{sent.Add(r.ttl - margin(r.ttl)), before},
			time.Time.Compare)):
			r.Errorf("extended, and trusted for %v", time.Until(after))
		}
		select {
		case <-time.After(time.Duration(d.Int64N(int64(r.ttl / 3)))):
		case <-stop.Done():
		}
	}
}
