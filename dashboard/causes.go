package dashboard

import (
	"maps"
	"slices"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// The bounds of a tree of causes: a longer chain is cut.
const (
	maxDepth = 32
	maxPaths = 100
)

// A node is a hold. Its children hold something while they wait for it.
type node struct {
	Name       string        `json:"name"`
	NameBase64 []byte        `json:"name_base64,omitempty"`
	Hold       lockinfo.Hold `json:"hold"`
	Cycle      bool          `json:"cycle,omitempty"` // it waits for a hold further down
	Children   []node        `json:"children,omitempty"`
}

// causeTrees returns the trees of holds that keep a name from being free. The root of each is a
// hold whose holder waits for nothing, as far as it is known. The holds of the name itself are the
// leaves.
func causeTrees(names map[string]*entry, name string) []node {
	walk := causeWalk{names: names, waits: waitsByHolder(names)}
	walk.followHolders(name, nil)
	roots := []node{}
	for _, path := range walk.paths {
		slices.Reverse(path)
		roots = mergePath(roots, path)
	}
	return roots
}

// A holderKey is a caller who waits while it holds a name.
type holderKey struct {
	held        string
	host, label string
	pid         int
}

// waitsByHolder returns the names that callers wait for, by what they hold meanwhile.
func waitsByHolder(names map[string]*entry) map[holderKey][]string {
	out := map[holderKey][]string{}
	for name, e := range names {
		for _, w := range e.info.Queue {
			for _, held := range w.Under {
				at := holderKey{held, w.Host, w.Label, w.PID}
				if !slices.Contains(out[at], name) {
					out[at] = append(out[at], name)
				}
			}
		}
	}
	for _, waited := range out {
		slices.Sort(waited)
	}
	return out
}

type causeWalk struct {
	names map[string]*entry
	waits map[holderKey][]string
	paths [][]node
}

// followHolders follows each holder of a name to what it waits for.
func (w *causeWalk) followHolders(name string, path []node) {
	e := w.names[name]
	if e == nil || len(e.info.Holds) == 0 {
		w.addPath(path)
		return
	}
	for _, h := range e.info.Holds {
		if len(w.paths) == maxPaths {
			return
		}
		step := newNode(name, h)
		next := w.waits[holderKey{name, h.Host, h.Label, h.PID}]
		switch {
		case slices.ContainsFunc(path, func(n node) bool { return n.isSameHold(step) }):
			cut := slices.Clone(path)
			cut[len(cut)-1].Cycle = true
			w.addPath(cut)
		case len(next) == 0 || len(path) == maxDepth || h.Host == "":
			w.addPath(append(slices.Clone(path), step))
		default:
			for _, waited := range next {
				w.followHolders(waited, append(slices.Clone(path), step))
			}
		}
	}
}

func (w *causeWalk) addPath(path []node) {
	if len(path) > 0 && len(w.paths) < maxPaths {
		w.paths = append(w.paths, path)
	}
}

func newNode(name string, h lockinfo.Hold) node {
	return node{Name: name, NameBase64: nonTextBytes(name), Hold: h}
}

// isSameHold reports whether two nodes are of one hold.
func (n node) isSameHold(as node) bool { return n.Name == as.Name && n.Hold.Token == as.Hold.Token }

// mergePath adds a path, from its root on, to trees.
func mergePath(trees, path []node) []node {
	if len(path) == 0 {
		return trees
	}
	i := slices.IndexFunc(trees, func(n node) bool { return n.isSameHold(path[0]) })
	if i < 0 {
		trees = append(trees, path[0])
		i = len(trees) - 1
	}
	trees[i].Children = mergePath(trees[i].Children, path[1:])
	return trees
}

// A processUse is a hold or a wait of a process.
type processUse struct {
	Name       string           `json:"name"`
	NameBase64 []byte           `json:"name_base64,omitempty"`
	Kind       lockinfo.Kind    `json:"kind,omitempty"`
	Hold       *lockinfo.Hold   `json:"hold,omitempty"`
	Waiter     *lockinfo.Waiter `json:"waiter,omitempty"`
}

// processUses are all that a process holds and waits for.
type processUses struct {
	Holds []processUse `json:"holds"`
	Waits []processUse `json:"waits"`
}

func usesOfProcess(names map[string]*entry, host string, pid int) processUses {
	out := processUses{Holds: []processUse{}, Waits: []processUse{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		info := names[name].info
		use := processUse{Name: name, NameBase64: nonTextBytes(name), Kind: info.Kind}
		for _, h := range info.Holds {
			if h.Host == host && h.PID == pid {
				held := use
				held.Hold = &h
				out.Holds = append(out.Holds, held)
			}
		}
		for _, w := range info.Queue {
			if w.Host == host && w.PID == pid {
				waits := use
				waits.Waiter = &w
				out.Waits = append(out.Waits, waits)
			}
		}
	}
	return out
}
