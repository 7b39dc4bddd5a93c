package quorum

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// TestContenders: 32 clients want one name at the same moment, and everybody gets in.
func TestContenders(t *testing.T) {
	r := newRig(t, 5)
	const contenders, rounds = 32, 4
	var workers []*worker
	for range contenders {
		w := r.warm(nil)
		workers = append(workers, w)
	}
	before := r.commands()
	began := time.Now()
	var all sync.WaitGroup
	var mu sync.Mutex
	var waits []time.Duration
	for _, w := range workers {
		all.Go(func() {
			for range rounds {
				asked := time.Now()
				h, err := w.lock("x", time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				waits = append(waits, time.Since(asked))
				mu.Unlock()
				_ = h.Keep(2 * time.Millisecond)
				r.giveBack(h)
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	commands := r.commands() - before
	slices.Sort(waits)
	t.Logf("%d clients, %d acquisitions of 2 ms in %v (%v each); longest wait %v, half waited less than %v; %d scripts an acquisition at 5 masters",
		contenders, len(waits), took.Round(time.Millisecond),
		(took / time.Duration(len(waits))).Round(10*time.Microsecond),
		waits[len(waits)-1].Round(time.Millisecond), waits[len(waits)/2].Round(time.Millisecond), commands/len(waits))
	if len(waits) != contenders*rounds {
		t.Errorf("%d of %d got in", len(waits), contenders*rounds)
	}
	r.check()
}

// commands is how many scripts all masters have run.
func (r *rig) commands() (n int) {
	for _, master := range r.Masters {
		stats := master.CommandStats()
		n += stats["evalsha"] + stats["eval"]
	}
	return n
}
