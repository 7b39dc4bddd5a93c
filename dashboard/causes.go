package dashboard

import (
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// The bounds of a tree of causes: a longer chain is cut.
const (
	mostDepth = 32
	mostPaths = 100
)

// A node is a hold. Its children hold something while they wait for it.
type node struct {
	Name       string        `json:"name"`
	NameBase64 []byte        `json:"name_base64,omitempty"`
	Hold       lockinfo.Hold `json:"hold"`
	Cycle      bool          `json:"cycle,omitempty"` // it waits for a hold further down
	Children   []node        `json:"children,omitempty"`
}

// causes are the trees of holds that keep a name from being free. The root of each is a hold whose
// holder waits for nothing, as far as it is known. The holds of the name itself are the leaves.
func causes(seen map[string]*entry, name string) []node {
	walk := walk{seen: seen, waits: waitsUnder(seen)}
	walk.up(name, nil)
	var roots []node
	for _, path := range walk.paths {
		slices.Reverse(path)
		roots = graft(roots, path)
	}
	if roots == nil {
		roots = []node{}
	}
	return roots
}

// A place is that of a caller who waits while it holds a name.
type place struct {
	held        string
	host, label string
	pid         int
}

// waitsUnder are the names that callers wait for, by what they hold meanwhile.
func waitsUnder(seen map[string]*entry) map[place][]string {
	out := map[place][]string{}
	for name, e := range seen {
		for _, w := range e.info.Queue {
			for _, held := range w.Under {
				at := place{held, w.Host, w.Label, w.PID}
				if !slices.Contains(out[at], name) {
					out[at] = append(out[at], name)
				}
			}
		}
	}
	for _, names := range out {
		slices.Sort(names)
	}
	return out
}

type walk struct {
	seen  map[string]*entry
	waits map[place][]string
	paths [][]node
}

// up follows each holder of a name to what it waits for.
func (w *walk) up(name string, path []node) {
	e := w.seen[name]
	if e == nil || len(e.info.Holds) == 0 {
		w.end(path)
		return
	}
	for _, h := range e.info.Holds {
		if len(w.paths) == mostPaths {
			return
		}
		step := nodeOf(name, h)
		next := w.waits[place{name, h.Host, h.Label, h.PID}]
		switch {
		case slices.ContainsFunc(path, func(n node) bool { return n.same(step) }):
			cut := slices.Clone(path)
			cut[len(cut)-1].Cycle = true
			w.end(cut)
		case len(next) == 0 || len(path) == mostDepth || h.Host == "":
			w.end(append(slices.Clone(path), step))
		default:
			for _, waited := range next {
				w.up(waited, append(slices.Clone(path), step))
			}
		}
	}
}

func (w *walk) end(path []node) {
	if len(path) > 0 && len(w.paths) < mostPaths {
		w.paths = append(w.paths, path)
	}
}

func nodeOf(name string, h lockinfo.Hold) node {
	return node{Name: name, NameBase64: bytesOf(name), Hold: h}
}

// same reports whether two nodes are of one hold.
func (n node) same(as node) bool { return n.Name == as.Name && n.Hold.Token == as.Hold.Token }

// graft adds a path, from its root on, to trees.
func graft(trees []node, path []node) []node {
	if len(path) == 0 {
		return trees
	}
	i := slices.IndexFunc(trees, func(n node) bool { return n.same(path[0]) })
	if i < 0 {
		trees = append(trees, path[0])
		i = len(trees) - 1
	}
	trees[i].Children = graft(trees[i].Children, path[1:])
	return trees
}

// A use is a hold or a wait of a process.
type use struct {
	Name       string           `json:"name"`
	NameBase64 []byte           `json:"name_base64,omitempty"`
	Kind       lockinfo.Kind    `json:"kind,omitempty"`
	Hold       *lockinfo.Hold   `json:"hold,omitempty"`
	Waiter     *lockinfo.Waiter `json:"waiter,omitempty"`
}

// A uses document is all that a process holds and waits for.
type uses struct {
	Holds []use `json:"holds"`
	Waits []use `json:"waits"`
}

func processOf(seen map[string]*entry, host string, pid int) uses {
	out := uses{Holds: []use{}, Waits: []use{}}
	for name, e := range seen {
		for _, h := range e.info.Holds {
			if h.Host == host && h.PID == pid {
				out.Holds = append(out.Holds, use{Name: name, NameBase64: bytesOf(name), Kind: e.info.Kind, Hold: &h})
			}
		}
		for _, w := range e.info.Queue {
			if w.Host == host && w.PID == pid {
				out.Waits = append(out.Waits, use{Name: name, NameBase64: bytesOf(name), Kind: e.info.Kind, Waiter: &w})
			}
		}
	}
	byName := func(a, b use) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(out.Holds, byName)
	slices.SortStableFunc(out.Waits, byName)
	return out
}
