package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// The bounds of what a page shows of waits.
const (
	maxLinks = 100    // of why one name is waited for; the rest is counted
	maxWaits = 20_000 // holds, and what their callers wait for, of the whole list
	maxEach  = 20     // names that the holders of one name wait for
)

// contendedInfos returns the names that somebody waits for: first those whose waiters wait longest.
func contendedInfos(names map[string]*entry) (all []lockinfo.Info) {
	for _, e := range names {
		if len(e.info.Queue) > 0 {
			all = append(all, e.info)
		}
	}
	slices.SortFunc(all, func(a, b lockinfo.Info) int {
		return cmp.Or(a.WaitingSince.Compare(b.WaitingSince), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// reasons are why a name is waited for.
type reasons struct {
	Links   []lockinfo.Link `json:"links"`   // of its chain, the first maxLinks
	Omitted int             `json:"omitted"` // links that are not among them
	Roots   []lockinfo.Link `json:"roots"`   // of the whole chain, the first maxLinks
	Cyclic  bool            `json:"cyclic"`
}

func reasonsOf(names map[string]*entry, info lockinfo.Info) reasons {
	chain := lockinfo.NewChain(info, contendedInfos(names))
	links, roots := cut(chain.Links, maxLinks), cut(chain.Roots(), maxLinks)
	return reasons{links, len(chain.Links) - len(links), roots, chain.Cyclic()}
}

// cut returns at most so many of a list, which is not nil.
func cut[T any](list []T, most int) []T {
	return append([]T{}, list[:min(len(list), most)]...)
}

// A wait is what a holder of a name waits for. Its fields are as those of lockinfo.Wait.
type wait struct {
	ID      uint64 `json:"id"` // of the name that is waited for
	Label   string `json:"label"`
	Perhaps bool   `json:"perhaps,omitempty"`
}

// addWaits adds to the names that somebody waits for what their holders wait for: first to those
// whose waiters wait longest, until there are maxWaits.
func addWaits(names map[string]*entry) {
	contended := contendedInfos(names)
	waitsOf, room := lockinfo.Waits(contended), maxWaits
	for _, info := range contended {
		e := names[info.Name]
		for _, hold := range info.Holds {
			if room <= 0 {
				return
			}
			waits := waitsOf(info.Name, hold)
			e.root = e.root || len(waits) == 0
			for _, w := range waits {
				next := wait{names[w.Name].id, w.Waiter.Label, w.Perhaps}
				known := slices.IndexFunc(e.waits, func(k wait) bool { return k.ID == next.ID })
				switch {
				case known >= 0:
					e.waits[known].Perhaps = e.waits[known].Perhaps && next.Perhaps
				case len(e.waits) < maxEach:
					e.waits = append(e.waits, next)
				}
			}
			room -= 1 + len(waits)
		}
	}
}

const maxSearch = time.Minute

// deadlockSearches make at most one search for deadlocks at a time. Who asks while it runs gets its
// result.
type deadlockSearches struct {
	client lockClient

	mu      sync.Mutex
	running *deadlockSearch
}

type deadlockSearch struct {
	done  chan struct{}
	found []lockinfo.Deadlock
	err   error
}

// join returns the search that runs, or begins one. It goes on if the one who asked leaves: others
// may have joined.
func (s *deadlockSearches) join() *deadlockSearch {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return s.running
	}
	begun := &deadlockSearch{done: make(chan struct{})}
	s.running = begun
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), maxSearch)
		defer cancel()
		begun.found, begun.err = s.client.Deadlocks(ctx)
		s.mu.Lock()
		s.running = nil
		s.mu.Unlock()
		close(begun.done)
	}()
	return begun
}

func (h *handler) serveDeadlocks(w http.ResponseWriter, r *http.Request) {
	search := h.deadlocks.join()
	select {
	case <-search.done:
	case <-r.Context().Done():
		return
	}
	if search.err != nil {
		sendError(w, http.StatusBadGateway, search.err.Error())
		return
	}
	h.sendDocument(w, r, func() any {
		return struct {
			Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
			Possible  []lockinfo.Deadlock `json:"possible"` // as the last poll found them
		}{append([]lockinfo.Deadlock{}, search.found...),
			cut(lockinfo.PossibleDeadlocks(contendedInfos(h.hub.lastNames())), maxLinks)}
	})
}
