package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/instant"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/store"
	"github.com/holdfast-go/holdfast/telemetry"
)

// observing is an observer that is a function.
type observing func(holdfast.Event)

func (f observing) Observe(e holdfast.Event) { f(e) }

// A panickingObserver notes the kinds that it was told of.
type panickingObserver struct{ kinds sync.Map }

func (o *panickingObserver) Observe(e holdfast.Event) {
	o.kinds.Store(e.Kind, true)
	panic("observer: " + e.Kind.String())
}

// A panic of the observer ends no call and keeps no lock.
func TestObserverPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		seen := &panickingObserver{}
		one, _ := w.clientWith(&holdfast.Config{Observer: seen})
		other, _ := w.client()
		for _, held := range []time.Duration{time.Millisecond, time.Minute} { // it passes on; it is renewed
			lease := w.must(one.Mutex("m").Lock(t.Context()))
			got := make(chan error, 2)
			for range cap(got) {
				go func() { got <- one.Mutex("m").Do(t.Context(), func(context.Context) error { return nil }) }()
			}
			synctest.Wait()
			<-time.After(held)
			w.release(lease)
			for range cap(got) {
				must(t, <-got)
			}
			must(t, releaseAtOnce(other.Mutex("m").TryLock(t.Context())))
		}
		fixed := w.must(one.Mutex("fixed", holdfast.WithoutRenewal()).Lock(t.Context()))
		_, err := one.Mutex("fixed", holdfast.WithWait(time.Second)).Lock(t.Context())
		if !errors.Is(err, holdfast.ErrWaitOver) {
			t.Error(err)
		}
		if _, err := one.Mutex("fixed").TryLock(t.Context()); !errors.Is(err, holdfast.ErrHeld) {
			t.Error(err)
		}
		<-fixed.Done()
		synctest.Wait()
		for _, kind := range []holdfast.EventKind{
			holdfast.EventWaiting, holdfast.EventGranted, holdfast.EventPassed, holdfast.EventRenewed,
			holdfast.EventReleased, holdfast.EventLost, holdfast.EventRefused, holdfast.EventGaveUp} {
			if _, told := seen.kinds.Load(kind); !told {
				t.Errorf("never told: %v", kind)
			}
		}
	})
}

// A slow observer delays no renewal and no end of a context. The renewals of one hold become one
// event meanwhile, and nothing else is dropped.
func TestObserverIsSlow(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		slow, told := make(chan struct{}), map[holdfast.EventKind]int{}
		var mu sync.Mutex
		client, _ := w.clientWith(&holdfast.Config{Observer: observing(func(e holdfast.Event) {
			if e.Kind == holdfast.EventRenewed {
				<-slow
			}
			mu.Lock()
			defer mu.Unlock()
			told[e.Kind]++
		})})
		lease := w.must(client.Mutex("m").Lock(t.Context()))
		fixed := w.must(client.Mutex("fixed", holdfast.WithoutRenewal()).Lock(t.Context()))
		for range 10 {
			<-time.After(time.Minute)
			must(t, lease.Err())
		}
		if !errors.Is(context.Cause(leased.Context(fixed)), holdfast.ErrLost) {
			t.Error("a lease does not end while the observer is slow")
		}
		close(slow)
		synctest.Wait()
		if told[holdfast.EventRenewed] != 2 || told[holdfast.EventLost] != 1 { // that which it was told, and the others
			t.Errorf("told of %v", told)
		}
		w.release(lease)
	})
}

// The observer is told of a loss when the lease has ended, and not before.
func TestLossIsToldAfterTheEnd(t *testing.T) {
	for range 10 { // as the two goroutines may meet or not
		inWorld(t, func(t *testing.T, w world) {
			var mu sync.Mutex
			ends := map[string]<-chan struct{}{}
			client, _ := w.clientWith(&holdfast.Config{Observer: observing(func(e holdfast.Event) {
				if e.Kind != holdfast.EventLost {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				select {
				case <-ends[e.Name]:
				default:
					t.Errorf("%s: the lease has not ended", e.Name)
				}
			})})
			for i := range 1000 { // so that ending all of them takes a while
				lease := w.must(client.Mutex(fmt.Sprint(i), holdfast.WithoutRenewal()).Lock(t.Context()))
				mu.Lock()
				ends[lease.Name()] = lease.Done()
				mu.Unlock()
			}
			<-time.After(time.Minute)
			synctest.Wait()
		})
	}
}

// The first renewal after a hand-over confirms its claim, half a second at most. It is not told as
// a renewal, before which two thirds of the TTL are left.
func TestConfirmationIsNoRenewal(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		var confirmed, renewed []holdfast.Event // in the background
		holder, _ := w.client()
		waiter, _ := w.clientWith(&holdfast.Config{TTL: 15 * time.Second, Observer: observing(func(e holdfast.Event) {
			switch e.Kind {
			case holdfast.EventConfirmed:
				confirmed = append(confirmed, e)
			case holdfast.EventRenewed:
				renewed = append(renewed, e)
			}
		})})
		lease := w.must(holder.Mutex("m").Lock(t.Context()))
		next := make(chan *holdfast.Lease, 1)
		go func() { next <- w.must(waiter.Mutex("m").Lock(t.Context())) }()
		synctest.Wait()
		w.release(lease)
		lease = <-next
		<-time.After(11 * time.Second)
		w.release(lease)
		synctest.Wait()
		if len(confirmed) != 1 || confirmed[0].Token != lease.Token() || confirmed[0].Headroom != 0 ||
			confirmed[0].Kind.String() != "confirmed" {
			t.Errorf("the hand-over was confirmed: %+v", confirmed)
		}
		if len(renewed) != 2 || min(renewed[0].Headroom, renewed[1].Headroom) < 9*time.Second {
			t.Errorf("the lease was renewed: %+v", renewed)
		}
	})
}

// A blockedHandler is that of a log whose reader has stopped: each line blocks until it reads on.
type blockedHandler struct {
	slog.Handler
	lines  atomic.Int32
	readOn chan struct{}
}

func (h *blockedHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *blockedHandler) Handle(context.Context, slog.Record) error {
	h.lines.Add(1)
	<-h.readOn
	return nil
}

// While the log blocks, holders are told of a loss in time, leases outlive a renewal that failed,
// and a release gives its lease back.
func TestBlockedLogLosesNoLease(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		log := &blockedHandler{Handler: slog.DiscardHandler, readOn: make(chan struct{})}
		client, sent := w.clientWith(&holdfast.Config{SlowHold: time.Second, Logger: slog.New(log)})
		sent.on("renew", loseFirst(1, false, newFailure(protocol.NoAnswer, errNoAnswer)))
		renewed := w.must(client.Mutex("renewed", holdfast.WithTTL(3*time.Second)).Lock(t.Context()))
		for _, name := range []string{"a", "b", "c"} {
			lease := w.must(client.Mutex(name, holdfast.WithTTL(3*time.Second), holdfast.WithoutRenewal()).Lock(
				t.Context()))
			end := lease.Done()
			defer func() {
				select {
				case <-end:
				default:
					t.Errorf("the holder of %q is not told after its TTL", lease.Name())
				}
				if err := lease.Release(); !errors.Is(err, holdfast.ErrLost) {
					t.Errorf("Release of %q: %v", lease.Name(), err)
				}
			}()
		}
		<-time.After(3 * time.Second)
		synctest.Wait()
		must(t, renewed.Err())
		w.release(renewed)
		if names := w.server.Names("p"); slices.Contains(names, "renewed") {
			t.Errorf("%q are held after the release", names)
		}
		if log.lines.Load() == 0 {
			t.Error("nothing was logged, so nothing could block")
		}
		close(log.readOn)
	})
}

// Nothing is allocated for an observer that does nothing, and nothing for one that counts requests.
func TestObserverAllocatesNothing(t *testing.T) {
	measure := func(observer holdfast.Observer) float64 {
		client, err := holdfast.New(instant.Store{}, &holdfast.Config{Observer: observer})
		must(t, err)
		defer client.Close()
		mutex, ctx := client.Mutex("order:42"), context.Background()
		return testing.AllocsPerRun(200, func() { must(t, releaseAtOnce(mutex.Lock(ctx))) })
	}
	none := measure(nil)
	for name, observer := range map[string]holdfast.Observer{
		"empty": observing(func(holdfast.Event) {}), "counting": &requests{}} {
		if with := measure(observer); with > none {
			t.Errorf("a pair makes %v allocations with an observer (%s), and %v without", with, name, none)
		}
	}
}

// A requests is an observer that counts requests, and panics if it is told to.
type requests struct {
	mu     sync.Mutex
	of     map[telemetry.Request]int
	panics bool
}

func (*requests) Observe(holdfast.Event) {}

func (r *requests) ObserveRequest(request telemetry.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[telemetry.Request]int{}
	}
	r.of[request]++
	if r.panics {
		panic("observer")
	}
}

// A moody store answers at once, and each first try of a script as an old server would that has no
// scripts yet.
type moody struct {
	instant.Store
	sent int
	fail error
}

func (*moody) Renew(string) {}

func (m *moody) Do(ctx context.Context, node string, commands []store.Command) []store.Reply {
	m.sent += len(commands)
	replies := m.Store.Do(ctx, node, commands)
	for i, command := range commands {
		switch {
		case m.fail != nil:
			replies[i] = store.Reply{Err: m.fail}
		case command[0] == "EVALSHA":
			replies[i] = store.Reply{Refused: "NOSCRIPT No matching script."}
		}
	}
	return replies
}

// A traced observer has a text for each caller.
type traced struct {
	requests
	text string
}

func (t *traced) Trace(context.Context) string { return t.text }

// Several observers are told of all, and the first text for a caller counts.
func TestObserversAreAllTold(t *testing.T) {
	var kinds []holdfast.EventKind
	first, second := &traced{text: ""}, &traced{text: "here"}
	several := holdfast.Observers(
		nil, observing(func(e holdfast.Event) { kinds = append(kinds, e.Kind) }), first, second, &traced{text: "there"})
	client, err := holdfast.New(&moody{}, &holdfast.Config{Observer: several})
	must(t, err)
	must(t, client.Mutex("order:42").Do(t.Context(), func(context.Context) error { return nil }))
	must(t, client.Close())
	if want := []holdfast.EventKind{holdfast.EventGranted, holdfast.EventReleased}; !slices.Equal(kinds, want) {
		t.Errorf("told of %v, want %v", kinds, want)
	}
	if len(first.of) == 0 || !maps.Equal(first.of, second.of) {
		t.Errorf("one was told of the requests %v, the next of %v", first.of, second.of)
	}
	if text := several.(telemetry.Tracer).Trace(t.Context()); text != "here" {
		t.Errorf("the caller belongs to %q, want here", text)
	}
	if none, one := holdfast.Observers(nil, nil), holdfast.Observers(nil, first); none != nil || one != first {
		t.Errorf("none is %v, and one is %v", none, one)
	}
}
