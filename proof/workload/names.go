package workload

import (
	"slices"

	"github.com/holdfast-go/holdfast/proof/history"
)

// Names are what the locks of a run are called, some of each type but groups, which are made of
// mutexes. A name keeps its type.
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

// draw chooses what a step is about: a type, and a name of it, or of a group some.
func (n Names) draw(d dice) (history.Type, []string) {
	var typ history.Type
	switch roll := d.IntN(100); {
	case roll < 32:
		typ = history.Mutex
	case roll < 60:
		typ = history.ReadWrite
	case roll < 74:
		typ = history.Semaphore
	case roll < 84:
		names := slices.Clone(n[history.Mutex])
		d.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		return history.Group, names[:1+d.IntN(len(names))]
	case roll < 92:
		typ = history.Election
	default:
		typ = history.Latch
	}
	return typ, []string{n[typ][d.IntN(len(n[typ]))]}
}
