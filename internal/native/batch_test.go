package native

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/store"
)

// A held server answers every flight after a millisecond, and notes how many requests each carried.
type held struct {
	store.Store

	mu           sync.Mutex
	sizes        []int
	flying, most int
}

func (h *held) Do(ctx context.Context, requests []store.Request) []store.Reply {
	h.mu.Lock()
	h.sizes = append(h.sizes, len(requests))
	h.flying++
	h.most = max(h.most, h.flying)
	h.mu.Unlock()
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	h.mu.Lock()
	h.flying--
	h.mu.Unlock()
	return make([]store.Reply, len(requests))
}

// One goes at once, and so do a few; many travel together in flights that share them evenly, and never wait while
// fewer flights are under way than may be.
func TestLaneShares(t *testing.T) {
	for name, test := range map[string]struct {
		calls int
		took  time.Duration
		sizes []int // sorted
	}{
		"one":     {1, time.Millisecond, []int{1}},
		"three":   {3, time.Millisecond, []int{1, 1, 1}},
		"some":    {10, 2 * time.Millisecond, []int{1, 1, 1, 7}},
		"many":    {99, 4 * time.Millisecond, nil},
		"a crowd": {3000, 9 * time.Millisecond, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &held{}
				l := &lane{server: server}
				began := time.Now()
				var wg sync.WaitGroup
				for range test.calls {
					wg.Go(func() {
						if reply := l.do(context.Background(), store.Request{}, time.Now().Add(time.Second)); reply.Err != nil {
							t.Error(reply.Err)
						}
					})
				}
				wg.Wait()
				if took := time.Since(began); took > test.took {
					t.Errorf("took %v, want %v", took, test.took)
				}
				slices.Sort(server.sizes)
				if test.sizes != nil && !slices.Equal(server.sizes, test.sizes) {
					t.Errorf("carried %v, want %v", server.sizes, test.sizes)
				}
				if server.most > maxFlights {
					t.Errorf("%d flights at once", server.most)
				}
				if most := slices.Max(server.sizes); most > max(minShare, (test.calls+maxFlights-1)/maxFlights) {
					t.Errorf("one carried %d of %d", most, test.calls)
				}
				synctest.Wait()
				l.mu.Lock()
				if l.flights != 0 || l.aboard != 0 {
					t.Errorf("left: %d flights, %d aboard", l.flights, l.aboard)
				}
				l.mu.Unlock()
				l.ends.mu.Lock()
				if n := len(l.ends.open); n > 0 {
					t.Errorf("left: %d contexts", n)
				}
				l.ends.mu.Unlock()
				<-time.After(time.Minute) // the timer fires for nothing
				l.ends.idle(t)
			})
		})
	}
}

// What a large flight leaves behind when it lands does not wait for another to come back.
func TestLaneLanding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &held{}
		l := &lane{server: server, flights: 1, aboard: 60}
		began := time.Now()
		var wg sync.WaitGroup
		for range 19 {
			wg.Go(func() { l.do(context.Background(), store.Request{}, began.Add(time.Second)) })
		}
		synctest.Wait()
		if len(server.sizes) > 0 {
			t.Fatalf("%v went beside a flight of 60", server.sizes)
		}
		l.land(60, store.Reply{})
		wg.Wait()
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("took %v: %v", took, server.sizes)
		}
	})
}

// Every context ends at its own deadline although they share one timer, in whatever order they come; what is over does not.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all deadlines
		began := time.Now()
		ended := make(map[time.Duration]time.Duration)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, d := range []time.Duration{5, 2, 9, 2, 7, 1} {
			d *= time.Second
			u := &until{deadline: began.Add(d), all: &all}
			if first := u.Done(); u.Err() != nil || u.Done() != first {
				t.Error("it ends too early, or has two channels")
			}
			wg.Go(func() {
				<-u.Done()
				mu.Lock()
				defer mu.Unlock()
				ended[d] = time.Since(began)
				if !errors.Is(u.Err(), context.DeadlineExceeded) {
					t.Error(u.Err())
				}
			})
		}
		gone := &until{deadline: began.Add(3 * time.Second), all: &all}
		done := gone.Done()
		gone.over()
		wg.Wait()
		for d, at := range ended {
			if at != d {
				t.Errorf("that of %v ended after %v", d, at)
			}
		}
		select {
		case <-done:
			t.Error("what was over ended")
		default:
		}
		late := &until{deadline: began, all: &all} // asked for when it is past
		<-late.Done()
		synctest.Wait()
		all.idle(t)
	})
}

// idle fails unless nothing is left: no context, and no timer.
func (d *deadlines) idle(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) != 0 || !d.armed.IsZero() {
		t.Errorf("left: %d contexts, a timer for %v", len(d.open), d.armed)
	}
}
