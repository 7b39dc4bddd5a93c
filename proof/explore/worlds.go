package explore

import "github.com/holdfast-go/holdfast/internal/protocol"

// The callers of the worlds.
var (
	plain            = Caller{Name: "a", Kind: protocol.Mutex}
	otherName        = Caller{Name: "b", Kind: protocol.Mutex}
	crasher          = Caller{Name: "a", Kind: protocol.Mutex, Crashes: true}
	minHolder        = Caller{Name: "a", Kind: protocol.Mutex, Min: 3}
	retainer         = Caller{Name: "a", Kind: protocol.Mutex, Retains: true}
	crashingRetainer = Caller{Name: "a", Kind: protocol.Mutex, Retains: true, Crashes: true}
	retainingReader  = Caller{Name: "a", Kind: protocol.ReadWrite, Shared: true, Retains: true}
	retainingWriter  = Caller{Name: "a", Kind: protocol.ReadWrite, Retains: true}
	yielder          = Caller{Name: "a", Kind: protocol.Mutex, Yields: true}
	detacher         = Caller{Name: "a", Kind: protocol.Mutex, Detaches: true}
	owner            = Caller{Name: "a", Kind: protocol.Mutex, Owner: "me"}
	placeKeeper      = Caller{Name: "a", Kind: protocol.Mutex, Keep: 4}
	candidate        = Caller{Name: "a", Kind: protocol.Election}
	trier            = Caller{Name: "a", Kind: protocol.Mutex, Tries: true}
	deaf             = Caller{Name: "a", Kind: protocol.Mutex, NoMessages: true}
	fixedHolder      = Caller{Name: "a", Kind: protocol.Mutex, Fixed: true}
	reader           = Caller{Name: "a", Kind: protocol.ReadWrite, Shared: true}
	writer           = Caller{Name: "a", Kind: protocol.ReadWrite, Downgrades: true}
	takesOne         = Caller{Name: "a", Kind: protocol.Semaphore, Shared: true, Weight: 1}
	takesTwo         = Caller{Name: "a", Kind: protocol.Semaphore, Shared: true, Weight: 2}
	groupA           = Caller{Name: "a", Kind: protocol.Mutex, Group: 1}
	groupB           = Caller{Name: "b", Kind: protocol.Mutex, Group: 1, Part: true}
	otherGroupA      = Caller{Name: "a", Kind: protocol.Mutex, Group: 2}
	otherGroupB      = Caller{Name: "b", Kind: protocol.Mutex, Group: 2, Part: true}
	latchSetter      = Caller{Name: "a", Kind: protocol.Latch}
	latchCounter     = Caller{Name: "a", Kind: protocol.Latch, Counts: true}
)

// SmallWorlds returns the worlds that are searched in seconds.
func SmallWorlds() []World {
	return withTimes(
		World{Name: "mutex, slow", Slow: true, Breaks: true, Depth: 7, Callers: []Caller{plain, plain}},
		World{Name: "mutex, late", Late: 1, Depth: 9, Callers: []Caller{plain, plain}},
		World{Name: "crashes, breaks, evictions", Evicts: true, Breaks: true, Callers: []Caller{crasher, crasher}},
		World{Name: "min hold", Depth: 9, Callers: []Caller{minHolder, plain}},
		World{Name: "passed on in a request", Callers: []Caller{yielder, plain}},
		World{Name: "retained", Breaks: true, Depth: 9, Callers: []Caller{retainer, retainer}},
		World{Name: "retained by readers", Depth: 9, Callers: []Caller{retainingReader, retainingWriter}},
		World{Name: "tickets", Callers: []Caller{detacher, plain}},
		World{Name: "owners", Callers: []Caller{owner, owner}},
		World{Name: "kept place", Depth: 9, Callers: []Caller{placeKeeper, plain}},
		World{Name: "election", Evicts: true, Callers: []Caller{candidate, candidate}},
		World{Name: "without a queue", NoQueue: true, Late: 1, Callers: []Caller{trier, trier}},
		World{Name: "no message, fixed", Callers: []Caller{deaf, fixedHolder}},
		World{Name: "read and write", Callers: []Caller{writer, reader}},
		World{Name: "a writer and two readers", Depth: 6, Callers: []Caller{writer, reader, reader}},
		World{Name: "two writers", Callers: []Caller{writer, writer}},
		World{Name: "semaphore", Resizes: true, Depth: 6, Callers: []Caller{takesOne, takesTwo}},
		World{Name: "min hold, late", Late: 1, Depth: 6, Callers: []Caller{minHolder, plain}},
		World{Name: "group", Depth: 6, Callers: []Caller{groupA, groupB, otherName}},
		World{Name: "quorum", Masters: 3, Forgets: true, NoQueue: true, Late: 1, Depth: 8,
			Callers: []Caller{trier, trier}},
		World{Name: "latch", Late: 1, Callers: []Caller{latchSetter, latchCounter, latchCounter}},
	)
}

// LargeWorlds returns the worlds that are searched in minutes.
func LargeWorlds() []World {
	return withTimes(
		World{Name: "mutex, slow, late", Slow: true, Late: 1, Callers: []Caller{plain, plain}},
		World{Name: "mutex, two late, broken", Late: 2, Breaks: true, Callers: []Caller{plain, plain}},
		World{Name: "three mutexes, late", Late: 1, Callers: []Caller{plain, plain, plain}},
		World{Name: "three that crash, breaks, evictions", Evicts: true, Breaks: true,
			Callers: []Caller{crasher, crasher, crasher}},
		World{Name: "min hold, late, broken", Late: 1, Breaks: true, Callers: []Caller{minHolder, minHolder}},
		World{Name: "passed on in a request, late, broken", Late: 1, Breaks: true, Callers: []Caller{yielder, yielder}},
		World{Name: "retained, late, broken", Late: 1, Breaks: true, Callers: []Caller{retainer, retainer}},
		World{Name: "retained, slow", Slow: true, Callers: []Caller{retainer, retainer}},
		World{Name: "retained by two that crash, and another", Depth: 10,
			Callers: []Caller{crashingRetainer, crashingRetainer, plain}},
		World{Name: "retained by a reader and a writer, late", Late: 1,
			Callers: []Caller{retainingReader, retainingWriter}},
		World{Name: "retained by two readers, and a writer", Depth: 9,
			Callers: []Caller{retainingReader, retainingReader, retainingWriter}},
		World{Name: "tickets, late, broken", Late: 1, Breaks: true, Callers: []Caller{detacher, plain}},
		World{Name: "owners and another", Callers: []Caller{owner, owner, plain}},
		World{Name: "kept place, late", Late: 1, Callers: []Caller{placeKeeper, plain}},
		World{Name: "two kept places", Depth: 10, Callers: []Caller{placeKeeper, placeKeeper, plain}},
		World{Name: "read and write, late", Late: 1, Callers: []Caller{writer, reader}},
		World{Name: "a writer and two readers", Breaks: true, Callers: []Caller{writer, reader, reader}},
		World{Name: "two writers and a reader", Callers: []Caller{writer, writer, reader}},
		World{Name: "three with permits", Resizes: true, Depth: 9, Callers: []Caller{takesOne, takesOne, takesTwo}},
		World{Name: "group", Callers: []Caller{groupA, groupB, otherName}},
		World{Name: "quorum", Masters: 3, Forgets: true, NoQueue: true, Depth: 14, Callers: []Caller{trier, trier}},
		World{Name: "two groups", Depth: 12, Callers: []Caller{groupA, groupB, otherGroupA, otherGroupB}},
	)
}

func withTimes(worlds ...World) []World {
	for i := range worlds {
		worlds[i].TTL, worlds[i].Claim, worlds[i].Life = 2, 1, 2
	}
	return worlds
}
