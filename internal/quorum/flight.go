package quorum

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A flight is the asks of one id that are on their way to one node. What gives the id back there waits for them: a request
// that overtakes another on a second connection would leave behind what it was sent to remove.
type flight struct {
	asks   int
	landed chan struct{} // made by the first to wait
}

// freeing takes down that a name is given back at a node, until done is called.
func (n *node) freeing(name string) (done func()) {
	landed := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frees == nil {
		n.frees = make(map[string][]chan struct{})
	}
	n.frees[name] = append(n.frees[name], landed)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		rest := slices.DeleteFunc(n.frees[name], func(c chan struct{}) bool { return c == landed })
		if n.frees[name] = rest; len(rest) == 0 {
			delete(n.frees, name)
		}
		close(landed)
	}
}

// behind are the releases of a name that are on their way: an ask that overtakes one finds its own process in the way.
func (n *node) behind(name string) []chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.frees[name])
}

// follow waits until releases have landed; false when one is on its way still at the deadline.
func follow(frees []chan struct{}, deadline time.Time) bool {
	if len(frees) == 0 {
		return true
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	for _, landed := range frees {
		select {
		case <-landed:
		case <-timer.C:
			return false
		}
	}
	return true
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
