// Package snapshot looks at all names again and again, as the commands watch and top do. Memory is
// bounded whatever the number of names: a Snapshot keeps the first names of an order, and
// a Follower follows as many as it is told.
//
// A look asks for one name after another, so it is no picture of one moment. A hold that begins and
// ends between two looks is not seen.
package snapshot

import (
	"cmp"
	"hash/maphash"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// An Order says which names come first.
type Order string

// The orders.
const (
	ByAge     Order = "age"     // held for longest first, then those that nobody holds
	ByWaiters Order = "waiters" // most waiters first, then by age
	ByWait    Order = "wait"    // longest wait first, then by age
	ByName    Order = "name"
)

// A Compare tells which of two names comes first.
type Compare func(a, b lockinfo.Info) int

// Orders are all orders.
var Orders = []Order{ByAge, ByWaiters, ByWait, ByName}

// Compare tells which of two names comes first.
func (o Order) Compare(a, b lockinfo.Info) int {
	var order int
	switch o {
	case ByWaiters:
		order = cmp.Or(cmp.Compare(b.Waiters, a.Waiters), byAge(a, b))
	case ByWait:
		order = cmp.Or(cmp.Compare(b.LongestWait(), a.LongestWait()), byAge(a, b))
	case ByAge:
		order = byAge(a, b)
	}
	return cmp.Or(order, CompareNames(a.Name, b.Name))
}

// CompareNames tells which of two names comes first: names that differ only in a number at their
// end, such as those of shards, by that number, and all others by their bytes.
func CompareNames(a, b string) int {
	x, y := strings.TrimRight(a, digits), strings.TrimRight(b, digits)
	m, n := strings.TrimLeft(a[len(x):], "0"), strings.TrimLeft(b[len(y):], "0")
	return cmp.Or(strings.Compare(x, y), cmp.Compare(len(m), len(n)), strings.Compare(m, n), strings.Compare(a, b))
}

const digits = "0123456789"

// byAge compares by the time of the grant: ages at the moments of two requests say less. Names that
// nobody holds come last, and before them those of which no grant is known.
func byAge(a, b lockinfo.Info) int {
	x, held := oldestGrant(a)
	y, heldToo := oldestGrant(b)
	switch {
	case held && heldToo:
		return x.Compare(y)
	case held:
		return -1
	case heldToo:
		return 1
	}
	return cmp.Compare(len(b.Holds), len(a.Holds))
}

// oldestGrant is the time of the oldest grant that is known.
func oldestGrant(info lockinfo.Info) (oldest time.Time, known bool) {
	for _, h := range info.Holds {
		if !h.Since.IsZero() && (!known || h.Since.Before(oldest)) {
			oldest, known = h.Since, true
		}
	}
	return oldest, known
}

// A Snapshot is what one look saw.
type Snapshot struct {
	At    time.Time // of this host, when the look began
	Took  time.Duration
	Total int             // how many names there were
	Locks []lockinfo.Info // the first of them, in order
	Err   error           // of a look that failed; then there is nothing else
}

// Take looks once, and keeps the first names in the order of compare. After an error the Snapshot
// is of no use.
func Take(names iter.Seq2[lockinfo.Info, error], compare Compare, keep int) (Snapshot, error) {
	s := Snapshot{At: time.Now()}
	seen := NewWindow()
	trim := func() {
		slices.SortFunc(s.Locks, compare)
		s.Locks = slices.CompactFunc(s.Locks, func(a, b lockinfo.Info) bool { return a.Name == b.Name })
		s.Locks = slices.Delete(s.Locks, min(len(s.Locks), keep), len(s.Locks)) // lets go of what they hold
	}
	for info, err := range names {
		if err != nil {
			return s, err
		}
		if !seen.Add(info.Name) {
			continue
		}
		s.Total++
		if s.Locks = append(s.Locks, info); len(s.Locks) >= 2*keep {
			trim()
		}
	}
	trim()
	s.Took = time.Since(s.At)
	return s, nil
}

// windowSize is how many names a Window remembers.
const windowSize = 10_000

// A Window remembers the last names, to drop those that a SCAN tells twice. It remembers digests of
// 64 bits, and no names: a name may be as long as its writer likes.
type Window struct {
	seed maphash.Seed
	seen map[uint64]bool
	ring []uint64
	next int
}

// NewWindow returns an empty Window.
func NewWindow() *Window {
	return &Window{seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
}

// Add remembers a name. It returns false if the name is among the last ones.
func (w *Window) Add(name string) bool {
	digest := maphash.String(w.seed, name)
	if w.seen[digest] {
		return false
	}
	w.seen[digest] = true
	if len(w.ring) < windowSize {
		w.ring = append(w.ring, digest)
		return true
	}
	delete(w.seen, w.ring[w.next])
	w.ring[w.next] = digest
	w.next = (w.next + 1) % windowSize
	return true
}
