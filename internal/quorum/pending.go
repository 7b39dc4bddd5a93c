package quorum

import (
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// pendingAsks are the asks of one id that are on their way to one node. A release of the id there
// waits for them: a request that overtakes another on a second connection would leave behind what
// it was sent to remove.
type pendingAsks struct {
	asks int
	done chan struct{} // made by the first release that waits
}

// A pendingRelease is a release of a name that is on its way to one node.
type pendingRelease struct {
	done chan struct{} // closed once it, and all that were sent before it, were answered or given up
	over bool
}

// releaseSent notes that a name is given back at a node, until done is called.
func (n *node) releaseSent(name string) (done func()) {
	l := &pendingRelease{done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pendingReleases == nil {
		n.pendingReleases = make(map[string][]*pendingRelease)
	}
	n.pendingReleases[name] = append(n.pendingReleases[name], l)
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		l.over = true
		releases := n.pendingReleases[name]
		for len(releases) > 0 && releases[0].over {
			close(releases[0].done)
			releases = releases[1:]
		}
		if n.pendingReleases[name] = releases; len(releases) == 0 {
			delete(n.pendingReleases, name)
		}
	}
}

// releasesBefore is closed once the releases of a name that are on their way by now are done; nil:
// there are none. An ask that overtakes one finds a hold of its own process in the way.
func (n *node) releasesBefore(name string) <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if releases := n.pendingReleases[name]; len(releases) > 0 {
		return releases[len(releases)-1].done
	}
	return nil
}

// awaitClosed waits until done is closed, or is nil. It is false if that is not so by the deadline.
func awaitClosed(done <-chan struct{}, deadline time.Time) bool {
	if done == nil {
		return true
	}
	timer := protocol.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// askSent notes that an ask of an id is on its way.
func (n *node) askSent(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pendingAsks == nil {
		n.pendingAsks = make(map[protocol.ID]*pendingAsks)
	}
	f := n.pendingAsks[id]
	if f == nil {
		f = &pendingAsks{}
		n.pendingAsks[id] = f
	}
	f.asks++
}

// askDone notes that an ask was answered, or can take effect no more.
func (n *node) askDone(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.pendingAsks[id]
	if f.asks--; f.asks > 0 {
		return
	}
	delete(n.pendingAsks, id)
	if f.done != nil {
		close(f.done)
	}
}

// awaitAsks waits until no ask of an id is on its way. It is false if one still is at the deadline.
func (n *node) awaitAsks(id protocol.ID, deadline time.Time) bool {
	n.mu.Lock()
	f := n.pendingAsks[id]
	if f == nil {
		n.mu.Unlock()
		return true
	}
	if f.done == nil {
		f.done = make(chan struct{})
	}
	done := f.done
	n.mu.Unlock()
	return awaitClosed(done, deadline)
}
