package quorum

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
)

// under runs clients that want three names while faults happen, and returns how many holds there were.
func (r *rig) under(lags []*lag, faults func()) (holds int) {
	r.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, l := range lags {
		var wrap func(int, holdfast.Store) holdfast.Store
		if l != nil {
			wrap = l.wrap
		}
		w := r.client(nil, wrap)
		all.Go(func() {
			n := w.load(ctx, []string{"a", "b", "c"})
			mu.Lock()
			holds += n
			mu.Unlock()
		})
	}
	faults()
	cancel()
	all.Wait()
	for _, l := range lags {
		if l != nil {
			l.all.Wait()
		}
	}
	return holds
}

// whole waits until all masters count again.
func (r *rig) whole(w *worker) {
	r.Helper()
	r.counting(w.Client, len(r.masters))
}

// TestFaults: five masters under load, of which two are killed, two stopped and continued, one emptied; and messages that
// come late, up to the longest TTL.
func TestFaults(t *testing.T) {
	long(t)
	r := newRig(t, 5)
	watch := r.client(nil, nil)
	slow := &lag{}
	holds := r.under([]*lag{nil, nil, nil, nil, slow, slow}, func() {
		r.pass(time.Second)
		r.masters[0].Kill()
		r.masters[1].Kill()
		r.pass(3 * time.Second)
		for _, master := range r.masters[:2] {
			if err := master.Restart(); err != nil { // empty
				t.Fatal(err)
			}
		}
		r.pass(time.Second)
		r.whole(watch)
		r.masters[2].Stop()
		r.masters[3].Stop()
		r.pass(2 * time.Second)
		r.masters[2].Continue()
		r.masters[3].Continue()
		r.pass(time.Second)
		for range 2 {
			if err := r.masters[4].Restart(); err != nil {
				t.Fatal(err)
			}
			r.pass(time.Second)
		}
		r.whole(watch)
		slow.set(maxTTL, 20*time.Millisecond)
		r.pass(4 * time.Second)
	})
	slow.set(0, 0)
	t.Logf("%d holds\n%v", holds, r.check())
	if holds < 100 {
		t.Errorf("%d holds: too few to show anything", holds)
	}
}

// TestLatency: what an uncontended lock costs with all masters, with two dead and with two that do not answer.
func TestLatency(t *testing.T) {
	long(t)
	r := newRig(t, 5)
	w := r.client(nil, nil)
	warm(r, w)
	measure := func(what string) (p50, p99 time.Duration) {
		var took []time.Duration
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			asked := time.Now()
			h, err := w.Mutex("x").TryLock(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			took = append(took, time.Since(asked))
			if err := h.Release(t.Context()); err != nil {
				t.Fatalf("%s: %v", what, err)
			}
		}
		slices.Sort(took)
		p50, p99 = took[len(took)/2], took[len(took)*99/100]
		t.Logf("%-24s p50 %v, p99 %v, longest %v, of %d", what, p50, p99, took[len(took)-1], len(took))
		return p50, p99
	}
	node := maxTTL / 6 // the time-out of one node, at this TTL
	p50, p99 := measure("five of five")
	r.masters[3].Stop()
	r.masters[4].Stop()
	stopped50, stopped99 := measure("two do not answer")
	r.masters[3].Kill()
	r.masters[4].Kill()
	dead50, dead99 := measure("two dead")
	for what, got := range map[string][2]time.Duration{"two do not answer": {stopped50, stopped99}, "two dead": {dead50, dead99}} {
		if got[1] > p99+node {
			t.Errorf("%s: p99 is %v, with all %v: more than a node time-out of %v later", what, got[1], p99, node)
		}
		if got[0] > 2*p50+time.Millisecond { // unchanged, but for a machine that others use as well
			t.Errorf("%s: p50 is %v, with all %v", what, got[0], p50)
		}
	}
	r.check()
}
