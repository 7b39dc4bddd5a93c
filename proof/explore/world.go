package explore

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A World is a few callers, and what may happen to them.
type World struct {
	Name    string
	Callers []Caller

	TTL   int64 // all times are in ticks
	Claim int64
	Life  int64 // of a place without a sign of life
	Slow  bool  // a request or an answer may take until the next tick
	Late  int   // how many requests at most are late at one moment
	Depth int   // states that take more moves to reach are not visited; 0: all are

	Masters int  // of a quorum; 0: one server
	Forgets bool // one master of the quorum forgets all, and again once all count
	NoQueue bool // the protocol has no queue
	Breaks  bool // an operator may break any hold
	Evicts  bool // an operator may evict any place
	Resizes bool // an operator may set the permits to 1 and to 2
}

// A Caller is one that locks a name again and again. Those that are equal are interchangeable.
type Caller struct {
	Name   string
	Kind   protocol.Kind
	Owner  string
	Shared bool
	Weight int64
	Min    int64 // the min hold, in ticks
	Keep   int64 // of a kept place, in ticks; 0: an ordinary place
	Group  int   // not 0: it wants its name and that of the next caller together
	Part   bool  // it is the second of such a group

	NoMessages bool // no message reaches it
	Fixed      bool // its hold is not renewed
	Tries      bool // it asks without joining the queue
	Retains    bool // it may keep its hold without using it
	Yields     bool // it may give its hold back in the request that asks for the next
	Downgrades bool
	Detaches   bool
	Crashes    bool
	Counts     bool // of a latch: it counts down; else it sets the latch
}

// Tick is how long a tick lasts where a story is replayed.
const Tick = time.Second

const (
	tick        = Tick
	patience    = 1 // ticks: a caller waits so long for an answer, and an ask takes no effect later
	most        = 5 // callers
	mostPermits = 2 // of a semaphore, and it has so many at first
	countDowns  = 2 // of a latch
	block       = 2 // how many tokens a grant reserves for a caller that retains
	first       = 9 // the tick at which a world begins: what counts from none of its ticks is long over
)

// begin is the first moment of each world.
var begin = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// ids are the tickets of each caller.
var ids = func() (all [most][10]protocol.ID) {
	for who := range all {
		for number := range all[who] {
			all[who][number] = protocol.ID(fmt.Sprintf("%020d%d%d", 0, who, number))
		}
	}
	return all
}()

func callerOf(id protocol.ID) int    { return int(id[20] - '0') }
func numberOf(id protocol.ID) int8   { return int8(id[21] - '0') }
func ticks(n int64) time.Duration    { return time.Duration(n) * tick }
func micros(n int64) int64           { return n * tick.Microseconds() }
func serverTime(at int64) int64      { return begin.UnixMicro() + micros(at) }
func ticksOf(serverTime int64) int64 { return ceil(serverTime-begin.UnixMicro(), micros(1)) }
func ceil(a, b int64) int64          { return (a + b - 1) / b }

// spec is what a caller is at the server.
func (w *World) spec(c *Caller, shared bool, permits int64) protocol.Spec {
	spec := protocol.Spec{Name: c.Name, Kind: c.Kind, Owner: c.Owner, Label: "explore", Shared: c.Shared || shared,
		TTL: ticks(w.TTL), Fixed: c.Fixed, Claim: ticks(w.Claim), Life: ticks(w.Life)}
	if c.Kind == protocol.Semaphore {
		spec.Shared, spec.Permits = true, permits
	}
	return spec
}

// ticket is one of a caller's.
func (w *World) ticket(who, number int8) protocol.Ticket {
	c := &w.Callers[who]
	out := protocol.Ticket{ID: ids[who][number], Block: 1, Weight: c.Weight, NoMessages: c.NoMessages,
		Keep: ticks(c.Keep), Retain: c.Retains}
	if c.Retains {
		out.Block = block
	}
	return out
}

// conflict reports whether two callers exclude each other, unless there are permits enough.
func (c *Caller) conflict(other *Caller, shared, otherShared bool) bool {
	return c.Name == other.Name && (c.Owner == "" || c.Owner != other.Owner) && !(shared && otherShared)
}
