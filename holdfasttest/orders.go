package holdfasttest

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/holdfast-go/holdfast"
)

// Orders returns an observer that fails the test if it locks two names in both orders: one under
// the context of the other, and anywhere else the other under the context of the one. Two callers
// that do so can wait for each other for ever. The test fails whether or not it came to that, with
// the places of both calls:
//
//	server := holdfasttest.Start(t)
//	client := server.Client(&holdfast.Config{Observer: holdfasttest.Orders(t)})
//
// Longer circles fail the test too: "b" under "a", "c" under "b" and "a" under "c". Each circle is
// told once. One observer may watch several clients, with one prefix.
//
// A class function says what order a name belongs to, where names are made of numbers: locking any
// "order" under any "customer" and elsewhere any "customer" under any "order" fails the test. Two
// names of one class are compared by name. Without a class function each name is its own class, and
// of several functions the first counts.
//
// Orders sees what callers hold by their contexts. So it does not see a lock that a caller holds
// while it locks another one under a context of its own. These are judged as follows:
//
//   - Entering a hold of the same name again is no order. More permits of a Semaphore are, if its
//     caller has locked another name since.
//   - A call that only tries (TryLock and so on) does not wait, so it comes after nothing. The name
//     that it holds comes before the names locked under it.
//   - Readers under readers are judged as writers: a writer that waits in between keeps the second
//     reader out. So are permits of a Semaphore, and an Election.
//   - The names of a group come after all that its context holds, and before all that is locked
//     under it. Among each other they are no order, as all groups take them in one. So Orders does
//     not see a caller that locks two names of a group one under the other, against that order.
//   - A lease that was released, or lost, is not held.
func Orders(tb testing.TB, class ...func(name string) string) holdfast.Observer {
	o := &orders{tb: tb, edges: map[string]map[string]edge{}, told: map[string]bool{}}
	if len(class) > 0 {
		o.class = class[0]
	}
	tb.Cleanup(func() {
		o.mu.Lock()
		o.over = true
		o.mu.Unlock()
	})
	return o
}

// orders is a graph of what was locked under what.
type orders struct {
	tb    testing.TB
	class func(name string) string // nil: each name is its own class

	mu    sync.Mutex
	over  bool                       // the test is: nobody may call tb any more
	edges map[string]map[string]edge // from what was held to what was locked under it
	told  map[string]bool            // the circles that were, by their nodes in order
}

// An edge is one name that was locked while its caller held another.
type edge struct {
	held, locked string
	place        string // of the call: file and line
}

func (e edge) String() string {
	return fmt.Sprintf("%q was locked under %q at %s", e.locked, e.held, e.place)
}

// Observe implements holdfast.Observer.
func (o *orders) Observe(event holdfast.Event) {
	switch event.Kind {
	case holdfast.EventWaiting, holdfast.EventGranted, holdfast.EventPassed:
	default:
		return
	}
	held := heldUnder(event.Context, event.Name)
	if len(held) == 0 {
		return
	}
	place, waits := caller()
	if !waits {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, name := range held {
		o.add(edge{held: name, locked: event.Name, place: place})
	}
}

// heldUnder returns the names that a caller with a context holds besides the name that it locks, in
// order.
func heldUnder(ctx context.Context, name string) (names []string) {
	for lease := range holdfast.LeasesFrom(ctx) {
		if lease.Err() != nil {
			continue
		}
		for held := range lease.Tokens() {
			if held != name {
				names = append(names, held)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// add notes an edge, and tells of the circle that it closes. mu is held.
func (o *orders) add(e edge) {
	from, to := o.nodes(e.held, e.locked)
	if _, known := o.edges[from][to]; known {
		return
	}
	if o.edges[from] == nil {
		o.edges[from] = map[string]edge{}
	}
	o.edges[from][to] = e
	back := o.path(to, from)
	if back == nil || o.over {
		return
	}
	text := []string{"\t" + e.String()}
	nodes := []string{from}
	for _, e := range back {
		text = append(text, "\t"+e.String())
		node, _ := o.nodes(e.held, e.locked)
		nodes = append(nodes, node)
	}
	slices.Sort(nodes)
	circle := strings.Join(nodes, "\x00")
	if o.told[circle] {
		return
	}
	o.told[circle] = true
	o.tb.Errorf("holdfasttest: locks are taken in more than one order, "+
		"so callers can wait for each other for ever:\n%s", strings.Join(text, "\n"))
}

// nodes returns what two names are compared by: their classes, or the names if they are of one
// class.
func (o *orders) nodes(held, locked string) (from, to string) {
	if o.class == nil {
		return held, locked
	}
	from, to = o.class(held), o.class(locked)
	if from == to {
		return "name " + held, "name " + locked
	}
	return "class " + from, "class " + to
}

// path returns the edges that lead from one node to another, the fewest; nil: none do. mu is held.
func (o *orders) path(from, to string) []edge {
	before := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			var path []edge
			for ; at != from; at = before[at] {
				path = append(path, o.edges[before[at]][at])
			}
			slices.Reverse(path)
			return path
		}
		next := make([]string, 0, len(o.edges[at]))
		for node := range o.edges[at] {
			next = append(next, node)
		}
		slices.Sort(next) // so that a test tells the same circle each time
		for _, node := range next {
			if _, met := before[node]; !met {
				before[node] = at
				queue = append(queue, node)
			}
		}
	}
	return nil
}

const (
	root   = "github.com/holdfast-go/holdfast."
	engine = "github.com/holdfast-go/holdfast/internal/engine."
)

// caller returns the place of the call that an event is about: below this function, the observers
// and the library. Waits is false if the call only tries.
func caller() (place string, waits bool) {
	pcs := make([]uintptr, 100)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	inside, waits, directory := false, true, ""
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, root) {
			directory = filepath.Dir(frame.File)
		}
		switch {
		case strings.HasPrefix(frame.Function, engine):
			inside = true
		case inside && filepath.Dir(frame.File) == directory && !strings.HasSuffix(frame.File, "_test.go"):
			// Also a closure of the library that has the name of a caller that it was inlined into.
			waits = waits && !tries(frame.Function)
		case inside && frame.Function != "" && !strings.HasPrefix(frame.Function, "runtime."):
			return fmt.Sprintf("%s:%d", frame.File, frame.Line), waits
		}
		if !more {
			return "a place that is not known", waits
		}
	}
}

// tries reports whether a function of the library asks once and does not wait.
func tries(function string) bool {
	_, method, found := strings.Cut(function, ").")
	return found && strings.HasPrefix(function, root) && (strings.HasPrefix(method, "Try") || method == "Attach")
}
