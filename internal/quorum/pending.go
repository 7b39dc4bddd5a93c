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

// A leaving is a release of a name that is on its way to one node.
type leaving struct {
	landed chan struct{} // closed once it, and all that left before it, were answered or given up
	over   bool
}

// freeing takes down that a name is given back at a node, until done is called.
func (n *node) freeing(name string) (done func()) {
	l := &leaving{landed: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.frees == nil {
		n.frees = make(map[string][]*leaving)
	}
	n.frees[name] = append(n.frees[name], l)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.over = true
		frees := n.frees[name]
		for len(frees) > 0 && frees[0].over {
			close(frees[0].landed)
			frees = frees[1:]
		}
		if n.frees[name] = frees; len(frees) == 0 {
			delete(n.frees, name)
		}
	}
}

// behind is closed once the releases of a name that are on their way by now have landed; nil: there are none. An ask that
// overtakes one finds its own process in the way.
func (n *node) behind(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if frees := n.frees[name]; len(frees) > 0 {
		return frees[len(frees)-1].landed
	}
	return nil
}

// follow waits for what behind told of; false when it has not landed by the deadline.
func follow(landed <-chan struct{}, deadline time.Time) bool {
	if landed == nil {
		return true
	}
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-landed:
		return true
	case <-timer.C:
		return false
	}
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
