package dashboard

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/holdfast-go/holdfast/lockinfo"
)

// The bounds of what a page shows of waits: the rest is counted.
const (
	maxLinks = 100 // of why one name is waited for
	maxDrawn = 60  // names in the picture of all waits
)

// contendedInfos returns the names that somebody waits for: first those whose waiters wait longest.
func contendedInfos(names map[string]*entry) (all []lockinfo.Info) {
	for _, e := range names {
		if len(e.info.Queue) > 0 {
			all = append(all, e.info)
		}
	}
	slices.SortFunc(all, func(a, b lockinfo.Info) int {
		return cmp.Or(a.WaitingSince.Compare(b.WaitingSince), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// reasons are why a name is waited for.
type reasons struct {
	Links   []lockinfo.Link `json:"links"`   // of its chain, the first maxLinks
	Omitted int             `json:"omitted"` // links that are not among them
	Roots   []lockinfo.Link `json:"roots"`   // of the whole chain, the first maxLinks
	Cyclic  bool            `json:"cyclic"`
}

func reasonsOf(names map[string]*entry, info lockinfo.Info) reasons {
	chain := lockinfo.NewChain(info, contendedInfos(names))
	links, roots := cut(chain.Links, maxLinks), cut(chain.Roots(), maxLinks)
	return reasons{links, len(chain.Links) - len(links), roots, chain.Cyclic()}
}

// cut returns at most so many of a list, which is not nil.
func cut[T any](list []T, most int) []T {
	return append([]T{}, list[:min(len(list), most)]...)
}

// A waitMap has names that are held by callers who wait for others, and those others.
type waitMap struct {
	Names     []lockinfo.Info `json:"names"`     // their summaries
	Edges     []waitEdge      `json:"edges"`     // between them
	Omitted   int             `json:"omitted"`   // names that belong to the graph, and are not among Names
	Contended int             `json:"contended"` // names that somebody waits for, in the graph or not
}

// A waitEdge says that a caller who holds a name waits for another one.
type waitEdge struct {
	From    int    `json:"from"` // the place of the name that is held
	To      int    `json:"to"`   // the place of the name that is waited for
	Label   string `json:"label"`
	Perhaps bool   `json:"perhaps"` // only the process or the owner tells that it is one caller
	Cycle   bool   `json:"cycle"`
}

// newWaitMap returns the graph of all waits. If it is too large to be drawn, it has the cycles
// first, then what belongs to the longest waits.
func newWaitMap(names map[string]*entry) waitMap {
	contended := contendedInfos(names)
	type pair struct{ from, to string }
	cyclic, seeds := map[pair]bool{}, []string{}
	for _, cycle := range lockinfo.PossibleDeadlocks(contended) {
		for _, m := range cycle.Members {
			cyclic[pair{m.Holds, m.Waits}] = true
			seeds = append(seeds, m.Holds)
		}
	}
	neighbours, waits := map[string][]string{}, map[pair]lockinfo.Wait{}
	for _, link := range lockinfo.Links(contended) {
		for _, wait := range link.Waits {
			edge := pair{link.Name, wait.Name}
			if known, again := waits[edge]; !again || known.Perhaps && !wait.Perhaps {
				waits[edge] = wait
			}
			neighbours[edge.from] = append(neighbours[edge.from], edge.to)
			neighbours[edge.to] = append(neighbours[edge.to], edge.from)
		}
	}
	for _, info := range contended {
		seeds = append(seeds, info.Name)
	}
	out := waitMap{Names: []lockinfo.Info{}, Edges: []waitEdge{}, Contended: len(contended)}
	places := map[string]int{}
	for _, name := range nearest(seeds, neighbours, maxDrawn) {
		places[name] = len(out.Names)
		out.Names = append(out.Names, names[name].info.Summary())
	}
	out.Omitted = len(neighbours) - len(out.Names)
	for edge, wait := range waits {
		from, drawn := places[edge.from]
		to, both := places[edge.to]
		if drawn && both {
			out.Edges = append(out.Edges, waitEdge{from, to, wait.Waiter.Label, wait.Perhaps, cyclic[edge]})
		}
	}
	slices.SortFunc(out.Edges, func(a, b waitEdge) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
	return out
}

// nearest returns at most so many names of a graph: each seed with all that it is joined to, before
// the next seed.
func nearest(seeds []string, neighbours map[string][]string, most int) (found []string) {
	known := map[string]bool{}
	for _, seed := range seeds {
		if len(neighbours[seed]) == 0 || known[seed] {
			continue
		}
		known[seed] = true
		for queue := []string{seed}; len(queue) > 0; queue = queue[1:] {
			if len(found) == most {
				return found
			}
			found = append(found, queue[0])
			for _, next := range neighbours[queue[0]] {
				if !known[next] {
					known[next] = true
					queue = append(queue, next)
				}
			}
		}
	}
	return found
}

// serveWaits sends the graph of all waits, as the last poll found it.
func (h *handler) serveWaits(w http.ResponseWriter, r *http.Request) {
	if names := h.polledNames(w); names != nil {
		h.sendDocument(w, r, func() any { return newWaitMap(names) })
	}
}
