package quorum

import (
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// endless is the round of a release: no hold is of a later one. A hold that was confirmed since it
// was asked for has this round too (AGREED of state.lua).
const endless = math.MaxInt64 >> 11 // sixteen digits

// How a cleanup gives an id back: ARGV 5 of free.lua.
const (
	freeHolder  = 'f' // a holder frees
	freeQuietly = 'q' // a try that failed
	freeWaiter  = 'w' // a waiter gave up
	freePlace   = 'p' // it waits no more, and holds elsewhere: a hold stays
	freeBreak   = 'b' // the id is that of a Break, which is taken back
)

// A cleanup is something to be given back at one node, until that is certain, nothing can be left,
// or its time is over: the life of a place, or of a failed round a TTL after its deadline. A hold
// or a place at a node that was away for longer expires there.
type cleanup struct {
	resource         *resource
	id               protocol.ID
	round            int64
	how              byte
	keep             time.Time
	waiter           string
	notBefore, until time.Time
}

// addCleanup notes a cleanup, and starts what does it.
func (n *node) addCleanup(c cleanup) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pendingCleanups = append(n.pendingCleanups, c)
	if n.cleanupAdded == nil {
		n.cleanupAdded = make(chan struct{}, 1)
	}
	select {
	case n.cleanupAdded <- struct{}{}:
	default:
	}
	if !n.cleaning {
		n.cleaning = true
		n.p.startWorker(n.runCleanups)
	}
}

// dropPlaceCleanup drops what would tell that an id waits no more: a release tells that as well.
func (n *node) dropPlaceCleanup(id protocol.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pendingCleanups = slices.DeleteFunc(n.pendingCleanups, func(c cleanup) bool {
		return c.how == freePlace && c.id == id
	})
}

// runCleanups does cleanups until there are none. A node that does not answer is asked a few times
// a second at most.
func (n *node) runCleanups() {
	pause := time.Duration(0)
	for last := false; ; {
		due, next := n.takeCleanups(last)
		if len(due) == 0 && next.IsZero() {
			return
		}
		if len(due) > 0 {
			if n.cleanUp(due, pause > 0, last) {
				pause = 0
			} else {
				pause = min(max(2*pause, 50*time.Millisecond), time.Second)
				next = time.Now().Add(pause)
			}
			if pause == 0 || last { // the last time, nothing is kept but what came in meanwhile
				continue
			}
		}
		timer := protocol.NewTimer(time.Until(next))
		added := n.cleanupAdded
		if pause > 0 {
			added = nil
		}
		select {
		case <-timer.C:
		case <-added:
		case <-n.p.closing: // once more, whatever is due
			last = true
		}
		timer.Stop()
	}
}

// takeCleanups takes out what is due now, and tells when the next is. Zero: there is none, and
// runCleanups ends.
func (n *node) takeCleanups(all bool) (due []cleanup, next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	var rest []cleanup
	for _, c := range n.pendingCleanups {
		switch {
		case now.After(c.until):
		case all || !now.Before(c.notBefore):
			due = append(due, c)
		default:
			rest = append(rest, c)
			if next.IsZero() || c.notBefore.Before(next) {
				next = c.notBefore
			}
		}
	}
	n.pendingCleanups = rest
	if len(due) == 0 && len(rest) == 0 {
		n.cleaning = false
	}
	return due, next
}

// cleanUp sends releases together, and keeps those that got no answer. It is false if there were
// any. A node that did not answer before (silent) is asked for one of them first. The last time it
// is asked for all, and none is kept.
func (n *node) cleanUp(due []cleanup, silent, last bool) bool {
	if silent && !last && len(due) > 1 {
		if !n.cleanUp(due[:1], false, false) {
			n.keepCleanups(due[1:]...)
			return false
		}
		due = due[1:]
	}
	deadline := time.Now().Add(time.Second)
	failed := make([]bool, len(due))
	var all sync.WaitGroup
	for i := range due {
		all.Go(func() {
			_, _, err := n.freeHold(&due[i], deadline)
			failed[i] = isPassing(err)
		})
	}
	all.Wait()
	for i := range due {
		if failed[i] && !last {
			n.keepCleanups(due[i])
		}
	}
	return !slices.Contains(failed, true)
}

func (n *node) keepCleanups(c ...cleanup) {
	n.mu.Lock()
	n.pendingCleanups = append(n.pendingCleanups, c...)
	n.mu.Unlock()
}

var errEarlier = errors.New("an earlier request is on its way, and got no answer yet")

// freeHold gives one ticket back at the node. It reports whether the ticket had a hold there ('1'),
// had none ('0'), or had one that was broken ('R'), by a caller with the label by.
func (n *node) freeHold(c *cleanup, deadline time.Time) (status byte, by string, err error) {
	r := c.resource
	if !n.awaitAsks(c.id, deadline) {
		return 0, by, n.noAnswer("release", r.spec.Name, errEarlier)
	}
	if c.how == freeWaiter { // from here on an ask follows, and an ask that came before wants its place
		defer n.releaseSent(r.spec.Name)()
		if n.p.isWaiting(c.id) {
			return '0', by, nil
		}
	}
	keep := int64(0)
	if !c.keep.IsZero() {
		keep = max(0, int64(math.Ceil(time.Until(c.keep).Seconds()*1000)))
	}
	text, err := n.askScript(&n.p.scripts.free, r.spec.Name, deadline, []any{nil, nil, 3, r.state, r.waiting,
		r.watching, string(c.id), r.mode, wire.Digits16(c.round), keep, string(c.how), c.waiter})
	if err != nil {
		return 0, by, err
	}
	fine := text == "0" || text == "1"
	if text[0] == 'R' {
		by, fine = text[1:], true
	}
	if !fine {
		return 0, by, n.unreadable("release", r.spec.Name, text)
	}
	return text[0], by, nil
}

// isPassing reports whether a request that failed may do better later.
func isPassing(err error) bool {
	var failure *protocol.Failure
	return errors.As(err, &failure) && failure.MustRepeat()
}

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
