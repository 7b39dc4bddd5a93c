package dashboard

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

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
