package quorum

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A flight is the asks of one id that are on their way to one node. What gives the id back there waits for them: a request
// that overtakes another on a second connection would leave behind what it was sent to remove.
type flight struct {
	asks   int
	landed chan struct{} // made by the first to wait
}

// depart takes down that an id is asked for.
func (n *node) depart(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.flights == nil {
		n.flights = make(map[protocol.ID]*flight)
	}
	f := n.flights[id]
	if f == nil {
		f = &flight{}
		n.flights[id] = f
	}
	f.asks++
}

// arrive takes down that an ask was answered, or can take effect no more.
func (n *node) arrive(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.flights[id]
	if f.asks--; f.asks > 0 {
		return
	}
	delete(n.flights, id)
	if f.landed != nil {
		close(f.landed)
	}
}

// await waits until no ask of an id is on its way; false when one still is at the deadline.
func (n *node) await(id protocol.ID, deadline time.Time) bool {
	n.mu.Lock()
	f := n.flights[id]
	if f == nil {
		n.mu.Unlock()
		return true
	}
	if f.landed == nil {
		f.landed = make(chan struct{})
	}
	landed := f.landed
	n.mu.Unlock()
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-landed:
		return true
	case <-timer.C:
		return false
	}
}
