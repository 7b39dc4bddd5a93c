package lockinfo

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Chain says why the waiters of a name wait: its holds, what the callers of these holds wait for
// themselves, the holds of that, and so on to the roots.
type Chain struct {
	Lock  Info   `json:"lock"`  // the name, as Inspect tells it
	Links []Link `json:"links"` // a link comes before those of what its caller waits for
}

// A Link is a hold of a Chain. It keeps the waiters of its name out.
type Link struct {
	Depth int       `json:"depth"` // 0: the hold is of the Chain's Lock
	Name  string    `json:"name"`
	At    time.Time `json:"at"` // the server's time; the other times are of the same clock
	Hold  Hold      `json:"hold"`
	Waits []Wait    `json:"waits"` // of the caller that holds; a root has none
}

// A Wait is what the caller of a Link waits for.
type Wait struct {
	Name   string `json:"name"`
	Waiter Waiter `json:"waiter"`

	// Perhaps: the waiter has the process or the owner of the hold, and nothing else tells that it
	// is the same caller. Else the waiter itself tells what it holds.
	Perhaps bool `json:"perhaps"`

	Holds Location `json:"holds"` // where the Chain has the holds of Name
}

// A Location says where a Chain has the holds that a Wait is for.
type Location string

// The locations of holds in a Chain.
const (
	LocationBelow     Location = "below"     // they follow the Link
	LocationAbove     Location = "above"     // the Link follows them: all between are a cycle
	LocationElsewhere Location = "elsewhere" // another Link is followed by them
)

// Roots returns the links whose callers wait for nothing that is known. If there is none, all that
// is known is cycles.
func (c Chain) Roots() (roots []Link) {
	for _, link := range c.Links {
		if len(link.Waits) == 0 {
			roots = append(roots, link)
		}
	}
	return roots
}

// Waits reports whether a caller of the Chain waits itself.
func (c Chain) Waits() bool {
	return slices.ContainsFunc(c.Links, func(link Link) bool { return len(link.Waits) > 0 })
}

// Cyclic reports whether a caller of the Chain waits for what it keeps from itself.
func (c Chain) Cyclic() bool {
	return slices.ContainsFunc(c.Links, func(link Link) bool {
		return slices.ContainsFunc(link.Waits, func(w Wait) bool { return w.Holds == LocationAbove })
	})
}

// NewChain returns the Chain of a name. All is what is known of other names: those that nobody
// waits for make no difference. Of each name the Chain knows the holds and waiters that its Info
// has.
func NewChain(lock Info, all []Info) Chain {
	w := newChainWalk(append([]Info{lock}, all...))
	return Chain{Lock: lock, Links: w.follow(lock.Name)}
}

// PossibleDeadlocks returns cycles of callers that wait for each other, by what NewChain knows. If
// several cycles have a name in common, it returns at least one of them.
func PossibleDeadlocks(all []Info) []Deadlock {
	w := newChainWalk(all)
	for i := range all {
		if _, seen := w.depth[all[i].Name]; !seen {
			w.follow(all[i].Name)
		}
	}
	return w.cycles
}

// Waits returns a function that returns what the caller of a hold waits for, as NewChain knows it.
// Of each Wait it sets no Holds.
func Waits(all []Info) func(name string, hold Hold) []Wait {
	table := newWaitTable(all)
	return table.waitsOf
}

// A chainWalk goes from names to what the callers of their holds wait for, depth first. A chain may
// have thousands of names, so it does not recurse.
type chainWalk struct {
	waits  waitTable
	links  []Link         // so far
	steps  []chainStep    // that are to be done, the last one first
	depth  map[string]int // of each name whose holds are told
	path   []chainStep    // the way from the first name to the last link, by depth
	cycles []Deadlock
}

// A chainStep is a link that is to be told, or one of its waits that is to be followed.
type chainStep struct {
	link Link
	by   Wait  // that leads to the link; zero: the walk begins there
	next *Wait // of the link, to be followed; nil: the link is to be told
}

func newChainWalk(all []Info) *chainWalk {
	return &chainWalk{waits: newWaitTable(all), depth: make(map[string]int)}
}

// follow returns the links from a name on, except those that were told before.
func (c *chainWalk) follow(name string) []Link {
	c.links = nil
	c.pushHolds(name, 0, Wait{})
	for len(c.steps) > 0 {
		last := len(c.steps) - 1
		step := c.steps[last]
		c.steps = c.steps[:last]
		if step.next == nil {
			c.tellLink(step)
		} else {
			c.followWait(step)
		}
	}
	return c.links
}

// pushHolds makes each hold of a name a step. The one that says most is followed first.
func (c *chainWalk) pushHolds(name string, depth int, by Wait) {
	c.depth[name] = depth
	info, ok := c.waits.infos[name]
	if !ok {
		return
	}
	holds := slices.Clone(info.Holds)
	slices.SortStableFunc(holds, func(x, y Hold) int {
		return cmp.Or(cmp.Compare(y.showRank(), x.showRank()), y.Since.Compare(x.Since))
	})
	for _, hold := range holds {
		link := Link{Depth: depth, Name: name, At: info.At, Hold: hold}
		c.steps = append(c.steps, chainStep{link: link, by: by})
	}
}

// tellLink tells a link, and makes its waits the next steps.
func (c *chainWalk) tellLink(step chainStep) {
	step.link.Waits = c.waits.waitsOf(step.link.Name, step.link.Hold)
	c.links = append(c.links, step.link)
	for i := len(step.link.Waits) - 1; i >= 0; i-- {
		step.next = &step.link.Waits[i]
		c.steps = append(c.steps, step)
	}
}

// followWait makes the holds of the name that is waited for the next steps, if they are not told.
// The link that was told has the same Waits.
func (c *chainWalk) followWait(step chainStep) {
	c.path = append(c.path[:step.link.Depth], step)
	wait := step.next
	depth, seen := c.depth[wait.Name]
	switch {
	case !seen:
		wait.Holds = LocationBelow
		c.pushHolds(wait.Name, step.link.Depth+1, *wait)
	case depth < len(c.path) && c.path[depth].link.Name == wait.Name:
		wait.Holds = LocationAbove
		c.cycles = append(c.cycles, newCycle(c.path[depth:], *wait))
	default:
		wait.Holds = LocationElsewhere
	}
}

// newCycle returns the cycle of a way whose last caller waits for the first one.
func newCycle(way []chainStep, last Wait) Deadlock {
	members := make([]Member, len(way))
	for i, step := range way {
		next := last
		if i+1 < len(way) {
			next = way[i+1].by
		}
		members[i] = Member{Label: next.Waiter.Label, Host: next.Waiter.Host, PID: next.Waiter.PID,
			Holds: step.link.Name, Token: step.link.Hold.Token, Waits: next.Name, Perhaps: next.Perhaps}
	}
	return Deadlock{Members: members}
}

// A waitTable has the waiters of names by what tells that they hold something else.
type waitTable struct {
	infos     map[string]*Info
	byProcess map[processKey][]Wait
	byOwner   map[string][]Wait
	byHeld    map[string][]Wait // by the names that the waiters hold, as they tell
}

type processKey struct {
	host string
	pid  int
}

func newWaitTable(all []Info) waitTable {
	t := waitTable{infos: make(map[string]*Info, len(all)), byProcess: make(map[processKey][]Wait),
		byOwner: make(map[string][]Wait), byHeld: make(map[string][]Wait)}
	for i := range all {
		info := &all[i]
		if t.infos[info.Name] != nil {
			continue // List may tell a name twice
		}
		t.infos[info.Name] = info
		for _, w := range info.Queue {
			t.add(Wait{Name: info.Name, Waiter: w})
		}
	}
	return t
}

func (t *waitTable) add(wait Wait) {
	w := wait.Waiter
	for _, name := range w.Under {
		t.byHeld[name] = append(t.byHeld[name], wait)
	}
	if len(w.Under) > 0 || w.Place == 0 {
		return // it tells all that it holds, or nobody waits there
	}
	wait.Perhaps = true
	if w.Owner != "" {
		t.byOwner[w.Owner] = append(t.byOwner[w.Owner], wait)
	}
	if key := (processKey{w.Host, w.PID}); key != (processKey{}) {
		t.byProcess[key] = append(t.byProcess[key], wait)
	}
}

// waitsOf returns what the caller of a hold waits for: what waiters tell, or else what their owners
// and processes tell.
func (t *waitTable) waitsOf(name string, hold Hold) (waits []Wait) {
	if hold.Remainder() {
		return nil
	}
	info := t.infos[name]
	holder, alone := processKey{hold.Host, hold.PID}, info != nil && info.Holders == 1
	seen := map[string]bool{name: true}
	add := func(all []Wait, matches func(Waiter) bool) {
		for _, wait := range all {
			if !seen[wait.Name] && matches(wait.Waiter) {
				seen[wait.Name] = true
				waits = append(waits, wait)
			}
		}
	}
	add(t.byHeld[name], func(w Waiter) bool { return alone || processKey{w.Host, w.PID} == holder })
	if len(waits) == 0 {
		anyWaiter := func(Waiter) bool { return true }
		add(t.byOwner[hold.Owner], anyWaiter)
		add(t.byProcess[holder], anyWaiter)
	}
	return waits
}

// A Deadlock is a cycle of callers of which each waits for what the next one holds. The last waits
// for what the first holds. None of them can go on.
type Deadlock struct {
	Members []Member `json:"members"`
}

// A Member is one caller of a Deadlock. It waits for a name while it holds another, which the
// member before it waits for.
type Member struct {
	Label string `json:"label"`          // of the caller
	Host  string `json:"host,omitempty"` // of its process; empty if it is not known
	PID   int    `json:"pid,omitempty"`  // of its process; 0 if it is not known
	Holds string `json:"holds"`          // the name that it holds
	Token int64  `json:"token"`          // the first fencing token of that hold
	Waits string `json:"waits"`          // the name that it waits for

	// Perhaps: the waiter for Waits has the process or the owner of the hold of Holds, and nothing
	// else tells that it is the same caller.
	Perhaps bool `json:"perhaps,omitempty"`
}

// String returns the cycle in one line, with long texts cut.
func (d Deadlock) String() string {
	const longest = 64
	cut := func(text string) string {
		if len(text) <= longest {
			return text
		}
		return fmt.Sprintf("%s... (%d bytes)", text[:40], len(text))
	}
	texts := make([]string, len(d.Members))
	for i, m := range d.Members {
		texts[i] = fmt.Sprintf("%q holds %q and waits for %q", cut(m.Label), cut(m.Holds), cut(m.Waits))
	}
	return strings.Join(texts, ", ")
}
