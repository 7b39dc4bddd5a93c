package shard

import (
	"errors"
	"sync"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// Counts are those of a Set, over all its calls of Run. Taken is the sum of the three below it.
type Counts struct {
	Name      string
	Shards    int // of the set, in all processes
	Taken     int // leases of shards that this process got
	Held      int // those that it has now
	GivenBack int // those that it released
	Lost      int // those that were lost
}

// Counts returns them up to now. It sends nothing.
func (s *Set) Counts() Counts {
	if s == nil {
		return Counts{}
	}
	s.totals.mu.Lock()
	defer s.totals.mu.Unlock()
	now := Counts{s.name, s.n, s.totals.taken, 0, 0, s.totals.lost}
	for h := range s.totals.running {
		switch err := h.lease.Err(); {
		case err == nil:
			now.Held++
		case errors.Is(err, holdfast.ErrLost):
			now.Lost++
		}
	}
	now.GivenBack = now.Taken - now.Held - now.Lost
	return now
}

// totals are what Counts are made of.
type totals struct {
	mu          sync.Mutex
	taken, lost int
	running     map[*holding]struct{} // whose functions have not returned
}

func (t *totals) begin(h *holding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == nil {
		t.running = map[*holding]struct{}{}
	}
	t.running[h] = struct{}{}
	t.taken++
}

// end counts a shard whose lease is over.
func (t *totals) end(h *holding) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.running, h)
	if errors.Is(h.lease.Err(), holdfast.ErrLost) {
		t.lost++
	}
}

// Number returns how many shards the set of a name has, by what its first holder says. It is 0 if
// no process that takes part in a set holds the name.
func Number(info lockinfo.Info) int {
	members, _ := membersOf(info)
	if len(members) == 0 {
		return 0
	}
	return members[0].n
}
