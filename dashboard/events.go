package dashboard

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// events is the stream of a page.
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	hello, _ := json.Marshal(lockinfo.Document{Value: struct {
		CanBreak bool   `json:"can_break"`
		Secret   string `json:"secret"`
	}{h.authorize(r), h.secret}})
	run, err := h.hub.enter()
	if err != nil {
		w.Header().Set("Retry-After", "10")
		refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	}
	defer h.hub.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy must not wait for more
	send := func(event string, data []byte) bool {
		return write(w, []byte("event: "+event+"\ndata: "), data, []byte("\n\n")) == nil
	}
	if !send("hello", hello) {
		return
	}
	var sent feed
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		text, wake := h.hub.news(run, &sent)
		if text != nil {
			if !send("look", text) {
				return
			}
			ping.Reset(pingInterval)
			continue // there may be more
		}
		select {
		case <-wake:
		case <-ping.C:
			if !send("ping", nil) {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// write writes to a page that may not read: after patience it fails. The texts are not copied.
func write(w http.ResponseWriter, texts ...[]byte) error {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // not every writer has one
	for _, text := range texts {
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := control.Flush(); err != nil {
		return err
	}
	_ = control.SetWriteDeadline(time.Time{}) // of the server, for what else it may write
	return nil
}

// searches make at most one search for deadlocks at a time. Who asks while it runs gets its result.
type searches struct {
	client source

	mu      sync.Mutex
	running *search
}

type search struct {
	done  chan struct{}
	found []lockinfo.Deadlock
	err   error
}

const longestSearch = time.Minute

// join returns the search that runs, or begins one. It goes on if the one who asked leaves: others
// may have joined.
func (s *searches) join() *search {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return s.running
	}
	begun := &search{done: make(chan struct{})}
	s.running = begun
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), longestSearch)
		defer cancel()
		begun.found, begun.err = s.client.Deadlocks(ctx)
		s.mu.Lock()
		s.running = nil
		s.mu.Unlock()
		close(begun.done)
	}()
	return begun
}

// searchDeadlocks looks for deadlocks.
func (h *handler) searchDeadlocks(w http.ResponseWriter, r *http.Request) {
	s := h.deadlocks.join()
	select {
	case <-s.done:
	case <-r.Context().Done():
		return
	}
	if s.err != nil {
		refuse(w, http.StatusBadGateway, s.err.Error())
		return
	}
	h.answer(w, r, func() any {
		return struct {
			Deadlocks []lockinfo.Deadlock `json:"deadlocks"`
		}{append([]lockinfo.Deadlock{}, s.found...)}
	})
}
