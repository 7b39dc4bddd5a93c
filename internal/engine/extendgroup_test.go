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

// All names of a group are extended in one request.
func TestGroupExtendIsOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lockAll(t.Context(), fixed, "a", "b", "c")
		sleep(10 * time.Second)
		a.extend(lease)
		sent := time.Now()
		checkTrust(t, lease, sent.Add(extendTTL-margin(extendTTL)))
		if n := a.requests(time.Time{}, "renew"); len(n) != 1 || n[0].size != 3 {
			t.Errorf("sent %v", n)
		}
		<-lease.Context().Done()
		if end := time.Since(sent); end != extendTTL-margin(extendTTL) {
			t.Errorf("ended after %v", end)
		}
	})
}

// If only some names are answered, the others end first, and the group with them. The error names
// them.
func TestGroupExtendPartlyAnsweredNamesTheRest(t *testing.T) {
	bubble(t, func(t *testing.T, server *memory.Server) {
		a := newHost(t, server)
		lease := a.lockAll(t.Context(), fixed, "a", "b", "c")
		want := lease.Until()
		sleep(10 * time.Second)
		a.setWay(way{failing: "b"})
		err := lease.Extend(t.Context())
		checkNoAnswer(t, err)
		var part *engine.PartError
		if !errors.As(err, &part) || part.Name != "b" {
			t.Errorf("the error is about %v", part)
		}
		checkTrust(t, lease, want)
		a.setWay(way{})
		a.extend(lease)
		checkTrust(t, lease, time.Now().Add(extendTTL-margin(extendTTL)))
		if err := lease.Release(); err != nil {
			t.Error(err)
		}
	})
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
		plain := a.lockAll(renewed.Context(), engine.Options{}, "n", "o")
		if err := plain.Extend(t.Context()); !errors.Is(err, engine.ErrRenewed) {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(plain.Release(), lease.Release(), renewed.Release()); err != nil {
			t.Error(err)
		}
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
