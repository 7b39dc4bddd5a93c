package lockinfo

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// world is what is known of names, which tests fill.
type world map[string]*Info

func (w world) info(name string) *Info {
	if w[name] == nil {
		w[name] = &Info{Name: name, Kind: KindMutex, At: at}
	}
	return w[name]
}

func (w world) hold(name string, pid int) *Hold {
	i := w.info(name)
	i.Holders++
	i.Holds = append(i.Holds, Hold{State: StateHeld, Label: fmt.Sprint("p", pid), Host: "h", PID: pid,
		Mode: ModeExclusive, Token: int64(i.Holders), Since: at.Add(-time.Minute + time.Duration(i.Holders))})
	return &i.Holds[len(i.Holds)-1]
}

// wait lets a process wait for a name. Under are names that it says it holds.
func (w world) wait(name string, pid int, under ...string) *Waiter {
	i := w.info(name)
	i.Waiters++
	i.Queue = append(i.Queue, Waiter{Place: i.Waiters, Label: fmt.Sprint("p", pid), Host: "h", PID: pid,
		Mode: ModeExclusive, Since: at, Alive: AliveYes, Under: under})
	return &i.Queue[len(i.Queue)-1]
}

func (w world) all() (all []Info) {
	for _, i := range w {
		all = append(all, *i)
	}
	slices.SortFunc(all, func(x, y Info) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// show returns a chain in one line: each link as depth, name, label, and what its caller waits for.
func (c Chain) show() string {
	var out []string
	for _, l := range c.Links {
		text := fmt.Sprintf("%d %s %s", l.Depth, l.Name, l.Hold.Label)
		for _, w := range l.Waits {
			text += " -> " + w.Name
			if w.Perhaps {
				text += "?"
			}
			if w.Holds != LocationBelow {
				text += " " + string(w.Holds)
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

func TestChain(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(world)
		want string
	}{
		"of a name that nobody uses": {func(world) {}, ""},
		"of waiters alone":           {func(w world) { w.wait("a", 1) }, ""},
		"of one holder":              {func(w world) { w.hold("a", 1) }, "0 a p1"},
		"of waiters that tell": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1, "a")
			w.hold("b", 2)
			w.wait("c", 2, "x", "b")
			w.hold("c", 3)
		}, "0 a p1 -> b; 1 b p2 -> c; 2 c p3"},
		"of processes": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1)
			w.wait("b", 9)
			w.hold("b", 2)
		}, "0 a p1 -> b?; 1 b p2"},
		"of a waiter that tells, and not of its process": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1)
			w.wait("c", 1, "a")
			w.wait("d", 1, "e") // it waits with another lease
		}, "0 a p1 -> c"},
		"of a waiter that tells what another process holds, alone": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 2, "a")
		}, "0 a p1 -> b"},
		"of readers": {func(w world) {
			w.hold("a", 1)
			w.hold("a", 2)
			w.wait("b", 2, "a")
			w.hold("b", 3)
		}, "0 a p1; 0 a p2 -> b; 1 b p3"},
		"of an owner": {func(w world) {
			w.hold("a", 1).Owner = "o"
			w.wait("b", 2).Owner = "o"
		}, "0 a p1 -> b?"},
		"of a process that waits for its own name": {func(w world) {
			w.hold("a", 1)
			w.wait("a", 1)
		}, "0 a p1"},
		"of a place where nobody waits": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1).Place = 0
		}, "0 a p1"},
		"of what remains of a hold": {func(w world) {
			w.hold("a", 1).State = StateBroken
			w.wait("b", 1)
		}, "0 a p1"},
		"with a cycle": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1)
			w.hold("b", 2)
			w.wait("a", 2)
		}, "0 a p1 -> b?; 1 b p2 -> a? above"},
		"with what is told before": {func(w world) {
			w.hold("a", 1)
			w.wait("b", 1)
			w.wait("c", 1)
			w.hold("b", 2)
			w.wait("c", 2)
			w.hold("c", 3)
		}, "0 a p1 -> b? -> c? elsewhere; 1 b p2 -> c?; 2 c p3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{}
			c.fill(w)
			if got := NewChain(*w.info("a"), w.all()).show(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Chains are as long as there are names, and each name is in one once.
func TestChainOfTenThousand(t *testing.T) {
	w, last := world{}, 10_000
	for i := range last {
		w.hold(fmt.Sprint(i), i+1)
		w.wait(fmt.Sprint(i+1), i+1)
	}
	chain := NewChain(*w.info("0"), w.all())
	if n := len(chain.Links); n != last || chain.Links[n-1].Depth != last-1 || chain.Cyclic() {
		t.Errorf("%d links", n)
	}
	w.hold(fmt.Sprint(last), last+1)
	w.wait("0", last+1)
	chain = NewChain(*w.info("0"), w.all())
	if !chain.Cyclic() || len(chain.Roots()) != 0 {
		t.Error("the cycle is not seen")
	}
	if found := PossibleDeadlocks(w.all()); len(found) != 1 || len(found[0].Members) != last+1 {
		t.Errorf("%d deadlocks", len(found))
	}
}

// In random worlds a chain has each hold that can be reached, and there is a possible deadlock if
// and only if there is a cycle, each of whose members is as told.
func TestChainOfRandomWorlds(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		w, edges := world{}, map[[2]string]bool{}
		names := 2 + r.IntN(6)
		holder := map[int]int{} // of each name
		for n := range names {
			if r.IntN(4) > 0 {
				holder[n] = 1 + r.IntN(5)
				w.hold(fmt.Sprint(n), holder[n])
			}
		}
		for range r.IntN(2 * names) {
			n, pid := r.IntN(names), 1+r.IntN(5)
			w.wait(fmt.Sprint(n), pid)
			for held, by := range holder {
				if by == pid && held != n {
					edges[[2]string{fmt.Sprint(held), fmt.Sprint(n)}] = true
				}
			}
		}
		reached := reach(edges, "0")
		for _, l := range NewChain(*w.info("0"), w.all()).Links {
			if !reached[l.Name] {
				t.Errorf("seed %d: %s is told, and is not reached, or twice", seed, l.Name)
			}
			delete(reached, l.Name)
		}
		for name := range reached {
			if w.info(name).Holders > 0 {
				t.Errorf("seed %d: %s is not told", seed, name)
			}
		}
		cyclic := false
		for edge := range edges {
			cyclic = cyclic || reach(edges, edge[1])[edge[0]]
		}
		found := PossibleDeadlocks(w.all())
		if len(found) > 0 != cyclic {
			t.Errorf("seed %d: %d deadlocks, and a cycle: %t", seed, len(found), cyclic)
		}
		for _, d := range found {
			for i, m := range d.Members {
				next := d.Members[(i+1)%len(d.Members)]
				if !edges[[2]string{m.Holds, m.Waits}] || m.Waits != next.Holds || !m.Perhaps {
					t.Errorf("seed %d: %v", seed, d)
				}
			}
		}
	}
}

// reach returns the nodes that can be reached from one, with itself.
func reach(edges map[[2]string]bool, from string) map[string]bool {
	reached := map[string]bool{from: true}
	for grown := true; grown; {
		grown = false
		for edge := range edges {
			if reached[edge[0]] && !reached[edge[1]] {
				reached[edge[1]], grown = true, true
			}
		}
	}
	return reached
}
