package wire

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A steadyStore answers every batch after a millisecond, or, if it is silent, none. It notes how
// many requests each carried, and leaves them unsent if their time is over, as a router does.
type steadyStore struct {
	Store
	silent bool

	mu             sync.Mutex
	sizes          []int
	inFlight, most int
}

func (s *steadyStore) Do(ctx context.Context, requests []Request) []Reply {
	if err := ended(ctx); err != nil {
		return unsent(len(requests), err)
	}
	s.mu.Lock()
	s.sizes = append(s.sizes, len(requests))
	s.inFlight++
	s.most = max(s.most, s.inFlight)
	s.mu.Unlock()
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.inFlight--
	s.mu.Unlock()
	replies := make([]Reply, len(requests))
	for i := range replies {
		if s.silent {
			replies[i].Err = errors.New("no answer")
		}
	}
	return replies
}

// One request goes at once, and so do a few. Many travel together in batches that share them
// evenly. None waits while fewer batches are under way than may be.
func TestBatcherSharesRequestsEvenly(t *testing.T) {
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
		runBubble(t, name, func(t *testing.T) {
			server := &steadyStore{}
			b := &Batcher{store: server}
			began := time.Now()
			var wg sync.WaitGroup
			for range test.calls {
				wg.Go(func() {
					if reply := b.Do(context.Background(), Request{},
						time.Now().Add(time.Second)); reply.Err != nil {
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
			if server.most > maxInFlight {
				t.Errorf("%d batches at once", server.most)
			}
			if most := slices.Max(server.sizes); most > max(minShare, (test.calls+maxInFlight-1)/maxInFlight) {
				t.Errorf("one carried %d of %d", most, test.calls)
			}
			synctest.Wait()
			b.mu.Lock()
			if b.inFlight != 0 || b.requests != 0 {
				t.Errorf("left: %d batches, %d requests", b.inFlight, b.requests)
			}
			b.mu.Unlock()
			b.deadlines.mu.Lock()
			if n := len(b.deadlines.open); n > 0 {
				t.Errorf("left: %d contexts", n)
			}
			b.deadlines.mu.Unlock()
			<-time.After(time.Minute) // the timer fires for nothing
			b.deadlines.idle(t)
		})
	}
}

// Requests that came into the queue during a large batch are sent as soon as that one ends.
func TestBatcherSendsQueueWhenBatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &steadyStore{}
		b := &Batcher{store: server, inFlight: 1, requests: 60}
		began := time.Now()
		var wg sync.WaitGroup
		for range 19 {
			wg.Go(func() { b.Do(context.Background(), Request{}, began.Add(time.Second)) })
		}
		synctest.Wait()
		if len(server.sizes) > 0 {
			t.Fatalf("%v went beside a batch of 60", server.sizes)
		}
		b.sendBatches(b.finish(60, nil))
		wg.Wait()
		if took := time.Since(began); took != time.Millisecond {
			t.Errorf("took %v: %v", took, server.sizes)
		}
	})
}

// Every context ends at its own deadline although all share one timer, in whatever order they come.
// A context that is over does not end.
func TestDeadlinesShareOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all deadlines
		began := time.Now()
		ended := make(map[time.Duration]time.Duration)
		var mu sync.Mutex
		var wg sync.WaitGroup
		for _, d := range []time.Duration{5, 2, 9, 2, 7, 1} {
			d *= time.Second
			u := &deadlineContext{deadline: began.Add(d), all: &all}
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
		gone := &deadlineContext{deadline: began.Add(3 * time.Second), all: &all}
		done := gone.Done()
		gone.release()
		wg.Wait()
		for d, at := range ended {
			if at != d {
				t.Errorf("that of %v ended after %v", d, at)
			}
		}
		select {
		case <-done:
			t.Error("a context that was released ended")
		default:
		}
		late := &deadlineContext{deadline: began, all: &all} // asked for when it is past
		<-late.Done()
		synctest.Wait()
		all.idle(t)
	})
}

// idle fails unless no context and no timer is left.
func (d *deadlines) idle(t *testing.T) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.open) != 0 || !d.armed.IsZero() {
		t.Errorf("left: %d contexts, a timer for %v", len(d.open), d.armed)
	}
}

// sendsItself reports whether a caller whose context can be cancelled sends its request itself:
// then it learns of the cancellation only with the reply.
func sendsItself(t *testing.T, b *Batcher) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	replies := make(chan Reply, 1)
	go func() { replies <- b.Do(ctx, Request{}, time.Now().Add(time.Minute)) }()
	synctest.Wait()
	cancel()
	reply := <-replies
	<-time.After(time.Millisecond) // for the reply to a caller that did not wait
	synctest.Wait()
	return !errors.Is(reply.Err, context.Canceled)
}

// Whether a server is responsive depends on the last request that was sent. A request that was not
// sent in its time says nothing of the server.
func TestBatcherUnsentRequestSaysNothingOfServer(t *testing.T) {
	for name, unsent := range map[string][]bool{
		"all sent":             {false, false},
		"the first unsent":     {true, false},
		"the last unsent":      {false, true},
		"the only one unsent":  {true},
		"all of several alike": {true, true},
	} {
		runBubble(t, name, func(t *testing.T) {
			server := &steadyStore{}
			b := NewBatcher(server)
			send := func() {
				var batch []*call
				for _, unsent := range unsent {
					deadline := time.Now().Add(time.Minute)
					if unsent {
						deadline = time.Now()
					}
					batch = append(batch, b.newCall(Request{}, deadline))
				}
				b.mu.Lock()
				b.startLocked(len(batch))
				b.mu.Unlock()
				b.sendBatches(slices.Clone(batch))
				for i, c := range batch {
					if reply := <-c.done; reply.Unsent != unsent[i] {
						t.Errorf("request %d: got %+v", i, reply)
					}
				}
			}
			b.Do(t.Context(), Request{}, time.Now().Add(time.Minute))
			if send(); !sendsItself(t, b) {
				t.Error("a healthy server counts as not responsive")
			}
			server.silent = true
			b.Do(context.Background(), Request{}, time.Now().Add(time.Minute))
			if send(); sendsItself(t, b) {
				t.Error("a silent server counts as responsive")
			}
		})
	}
}
