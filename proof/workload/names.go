package workload

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/history"
)

// Names are what the locks of a run are called. A name keeps its type; groups are made of mutexes.
type Names map[history.Type][]string

// EveryType has names of each type: few, so that all processes meet.
func EveryType() Names {
	return Names{
		history.Mutex:     {"red", "green", "blue"},
		history.ReadWrite: {"book", "page"},
		history.Semaphore: {"seats"},
		history.Election:  {"chair"},
		history.Latch:     {"gate"},
	}
}

// weights are how often a step is about a type, as far as the run has such names.
var weights = []struct {
	history.Type
	weight int
}{
	{history.Mutex, 32},
	{history.ReadWrite, 28},
	{history.Semaphore, 14},
	{history.Group, 10},
	{history.Election, 8},
	{history.Latch, 8},
}

// ofType gives the names of a type.
func (n Names) ofType(t history.Type) []string {
	if t == history.Group {
		t = history.Mutex
	}
	return n[t]
}

// draw chooses what a step is about: a type, and a name of it, or of a group two or more.
func (n Names) draw(d dice) (history.Type, []string) {
	var sum int
	for _, w := range weights {
		if len(n.ofType(w.Type)) > 0 {
			sum += w.weight
		}
	}
	roll := d.IntN(sum)
	for _, w := range weights {
		names := n.ofType(w.Type)
		if len(names) == 0 {
			continue
		}
		if roll -= w.weight; roll >= 0 {
			continue
		}
		if w.Type == history.Group {
			names = slices.Clone(names)
			d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			return w.Type, names[:min(len(names), 1+d.IntN(len(names)))]
		}
		return w.Type, []string{names[d.IntN(len(names))]}
	}
	panic("workload: the weights do not add up")
}
