package explore

import "github.com/holdfast-go/holdfast/internal/protocol"

// Worlds returns the worlds that are searched: the small ones in seconds, the others in minutes.
func Worlds(large bool) []World {
	times := World{TTL: 2, Claim: 1, Life: 2}
	world := func(name string, change func(*World), callers ...Caller) World {
		w := times
		w.Name, w.Callers = name, callers
		change(&w)
		return w
	}
	var (
		mutex    = Caller{Name: "a", Kind: protocol.Mutex}
		mortal   = Caller{Name: "a", Kind: protocol.Mutex, Crashes: true}
		minned   = Caller{Name: "a", Kind: protocol.Mutex, Min: 3}
		keeps    = Caller{Name: "a", Kind: protocol.Mutex, Retains: true}
		rekeep   = Caller{Name: "a", Kind: protocol.Mutex, Retains: true, Crashes: true}
		rereads  = Caller{Name: "a", Kind: protocol.ReadWrite, Shared: true, Retains: true}
		rewrites = Caller{Name: "a", Kind: protocol.ReadWrite, Retains: true}
		yields   = Caller{Name: "a", Kind: protocol.Mutex, Yields: true}
		ticket   = Caller{Name: "a", Kind: protocol.Mutex, Detaches: true}
		mine     = Caller{Name: "a", Kind: protocol.Mutex, Owner: "me"}
		kept     = Caller{Name: "a", Kind: protocol.Mutex, Keep: 4}
		leads    = Caller{Name: "a", Kind: protocol.Election}
		polls    = Caller{Name: "a", Kind: protocol.Mutex, Tries: true}
		deaf     = Caller{Name: "a", Kind: protocol.Mutex, NoMessages: true}
		fixed    = Caller{Name: "a", Kind: protocol.Mutex, Fixed: true}
		writes   = Caller{Name: "a", Kind: protocol.ReadWrite, Downgrades: true}
		reads    = Caller{Name: "a", Kind: protocol.ReadWrite, Shared: true}
		one      = Caller{Name: "a", Kind: protocol.Semaphore, Shared: true, Weight: 1}
		both     = Caller{Name: "a", Kind: protocol.Semaphore, Shared: true, Weight: 2}
		group    = Caller{Name: "a", Kind: protocol.Mutex, Group: 1}
		part     = Caller{Name: "b", Kind: protocol.Mutex, Group: 1, Part: true}
		other    = Caller{Name: "b", Kind: protocol.Mutex}
		sets     = Caller{Name: "a", Kind: protocol.Latch}
		counts   = Caller{Name: "a", Kind: protocol.Latch, Counts: true}
	)
	group2, part2 := group, part
	group2.Group, part2.Group = 2, 2
	late := func(w *World) { w.Late = 1 }
	quorum := func(w *World) { w.Masters, w.Forgets, w.NoQueue = 3, true, true }
	if !large {
		return []World{
			world("mutex, slow", func(w *World) { w.Slow, w.Breaks, w.Depth = true, true, 7 }, mutex, mutex),
			world("mutex, late", func(w *World) { w.Late, w.Depth = 1, 9 }, mutex, mutex),
			world("crashes, breaks, evictions", func(w *World) { w.Evicts, w.Breaks = true, true }, mortal, mortal),
			world("min hold", func(w *World) { w.Depth = 9 }, minned, mutex),
			world("passed on in a request", func(*World) {}, yields, mutex),
			world("retained", func(w *World) { w.Breaks, w.Depth = true, 9 }, keeps, keeps),
			world("retained by readers", func(w *World) { w.Depth = 9 }, rereads, rewrites),
			world("tickets", func(*World) {}, ticket, mutex),
			world("owners", func(*World) {}, mine, mine),
			world("kept place", func(w *World) { w.Depth = 9 }, kept, mutex),
			world("election", func(w *World) { w.Evicts = true }, leads, leads),
			world("without a queue", func(w *World) { w.NoQueue, w.Late = true, 1 }, polls, polls),
			world("no message, fixed", func(*World) {}, deaf, fixed),
			world("read and write", func(*World) {}, writes, reads),
			world("a writer and two readers", func(w *World) { w.Depth = 6 }, writes, reads, reads),
			world("two writers", func(*World) {}, writes, writes),
			world("semaphore", func(w *World) { w.Resizes, w.Depth = true, 6 }, one, both),
			world("min hold, late", func(w *World) { w.Late, w.Depth = 1, 6 }, minned, mutex),
			world("group", func(w *World) { w.Depth = 6 }, group, part, other),
			world("quorum", func(w *World) { quorum(w); w.Depth, w.Late = 8, 1 }, polls, polls),
			world("latch", late, sets, counts, counts),
		}
	}
	lateBreaks := func(w *World) { w.Late, w.Breaks = 1, true }
	return []World{
		world("mutex, slow, late", func(w *World) { w.Slow, w.Late = true, 1 }, mutex, mutex),
		world("mutex, two late, broken", func(w *World) { w.Late, w.Breaks = 2, true }, mutex, mutex),
		world("three mutexes, late", late, mutex, mutex, mutex),
		world("three that crash, breaks, evictions", func(w *World) { w.Evicts, w.Breaks = true, true }, mortal, mortal,
			mortal),
		world("min hold, late, broken", lateBreaks, minned, minned),
		world("passed on in a request, late, broken", lateBreaks, yields, yields),
		world("retained, late, broken", lateBreaks, keeps, keeps),
		world("retained, slow", func(w *World) { w.Slow = true }, keeps, keeps),
		world("retained by two that crash, and another", func(w *World) { w.Depth = 10 }, rekeep, rekeep, mutex),
		world("retained by a reader and a writer, late", late, rereads, rewrites),
		world("retained by two readers, and a writer", func(w *World) { w.Depth = 10 }, rereads, rereads, rewrites),
		world("tickets, late, broken", lateBreaks, ticket, mutex),
		world("owners and another", func(*World) {}, mine, mine, mutex),
		world("kept place, late", late, kept, mutex),
		world("two kept places", func(w *World) { w.Depth = 10 }, kept, kept, mutex),
		world("read and write, late", late, writes, reads),
		world("a writer and two readers", func(w *World) { w.Breaks = true }, writes, reads, reads),
		world("two writers and a reader", func(*World) {}, writes, writes, reads),
		world("three with permits", func(w *World) { w.Resizes, w.Depth = true, 10 }, one, one, both),
		world("group", func(*World) {}, group, part, other),
		world("quorum", func(w *World) { quorum(w); w.Depth = 14 }, polls, polls),
		world("two groups", func(w *World) { w.Depth = 12 }, group, part, group2, part2),
	}
}
