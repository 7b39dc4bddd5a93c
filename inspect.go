package holdfast

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// inspected is how many holds, and how many waiters, an inspection tells.
const inspected = 100

// A LockInfo is what the servers said of a name at one moment. It is for people: nothing may be
// decided by it, as it may be over when it arrives.
type LockInfo struct {
	Name  string
	Class string // what Config.Class makes of the name
	Kind  string // "mutex", "rwmutex", "semaphore", "election" or "latch"; empty if nobody uses the name
	State LockState
	At    time.Time // the server's time; the times below are of the same clock

	// Holds are the first 100 holds, and Queue the first 100 waiters. Client.Queue streams all
	// waiters. A quorum has no queue.
	Holds   []HoldInfo
	Queue   []WaiterInfo
	Holders int // how many holds there are in all, with what remains of holds
	Waiters int // how many wait in all

	Permits int64 // of a semaphore: how many there are
	Taken   int64 // of a semaphore: how many are held
	Count   int64 // of a latch: how many have yet to count down

	Foreign string // what stands at the key, if holdfast did not write it; it is left alone
	// Masters is what each master of a quorum says. Holds are the verdict: what a majority of all
	// masters knows. Masters that do not count or do not answer may know a hold, so a hold is told
	// as well if a majority knows it together with them.
	Masters []MasterInfo
}

// A LockState says how a name is used.
type LockState string

// The states of a name.
const (
	StateFree       LockState = "free"
	StateHeld       LockState = "held"
	StateHandedOver LockState = "handed over" // to a waiter that is not known to have taken it up
	StateMinHold    LockState = "min hold"    // released, and kept from others until its min hold is over
	StateRemainder  LockState = "remainder"   // broken, and kept from others until its holder has stopped
	StateSet        LockState = "set"         // a latch that waits for its count
	StateOpen       LockState = "open"        // a latch whose count is 0
	StateForeign    LockState = "foreign"     // the key is none of ours
	StateUnknown    LockState = "unknown"     // of a quorum: fewer masters than a majority answered, of those that count
)

// A HoldState says what a hold is.
type HoldState string

// The states of a hold. The last two are remainders: they exclude others, but are no leases.
const (
	HoldHeld       HoldState = "held"
	HoldHandedOver HoldState = "handed over"
	HoldMinHold    HoldState = "min hold"
	HoldBroken     HoldState = "broken" // by Client.Break
)

// A HoldMode says beside whom a hold is.
type HoldMode string

// The modes of holds and waiters.
const (
	ModeWrites  HoldMode = "writes"  // alone
	ModeReads   HoldMode = "reads"   // beside other readers
	ModePermits HoldMode = "permits" // of a semaphore
)

// A HoldInfo is one hold of a name, or what remains of one.
type HoldInfo struct {
	State     HoldState
	By        string // the label of the caller that broke the hold
	Owner     string // of WithOwner; else empty
	Label     string
	Host      string // of its process; empty if it is not known
	PID       int    // of its process; 0 if it is not known
	Mode      HoldMode
	Permits   int64         // that it takes of a semaphore
	Token     int64         // the first fencing token of the grant, which Break takes
	LastToken int64         // the last one that the grant reserved; Break takes any between
	Since     time.Time     // of the grant; zero if it is not known
	Remaining time.Duration // until it ends, if it is not prolonged
	TTL       time.Duration
	Fixed     bool      // it is not renewed
	Renewed   time.Time // when it was last prolonged; zero if it is not known

	// Late: it is renewed, and was last prolonged more than half a TTL ago. Its process may be
	// stopped or cut off, or its max hold is nearly over.
	Late bool
}

// Liveness says whether a waiter lives.
type Liveness string

// Whether a waiter lives, as the server knows it.
const (
	AliveYes     Liveness = "yes"     // it asked in time, and listens
	AliveNo      Liveness = "no"      // it did not ask in time, or does not listen
	AliveUnknown Liveness = "unknown" // it asked in time, and the server cannot tell whether it listens, or it has just joined
)

// A WaiterInfo is one place in the queue of a name.
type WaiterInfo struct {
	ID      string // names the waiter for Client.Evict; it is of no other use
	Place   int    // from 1; 0 of a kept place where nobody waits
	Owner   string
	Label   string
	Host    string
	PID     int
	Mode    HoldMode
	Permits int64
	Since   time.Time // when it joined the queue
	Alive   Liveness
	Kept    bool     // a place that stays while no process waits there
	Under   []string // names that it holds while it waits, of WithDeadlockCheck
}

// A MasterInfo is what one master of a quorum says of a name.
type MasterInfo struct {
	Node    string // "node 1" is the first store given to NewQuorum
	Counts  bool   // whether it counts towards a majority
	Why     string // why it does not count, if it answered
	Holds   []HoldInfo
	Foreign string // what stands at the key, if holdfast did not write it
	Err     error  // why it did not answer
}

// Inspect tells what the server knows of a name: its holders, its queue, and what keeps others out.
// It takes nothing and writes nothing, and a holder does not notice it. Holds whose time is over
// are not told. It lasts at most the smaller of ctx and 1 s.
//
// The errors are:
//
//   - A *StoreError, or a *QuorumError of a quorum: the server could not be asked or refused.
//   - ErrClosed: the client is closed.
//   - An error that matches the end of ctx.
//   - An *ArgumentError: an argument is bad.
func (c *Client) Inspect(ctx context.Context, name string) (LockInfo, error) {
	if err := c.operates(ctx, "Client.Inspect", name); err != nil {
		return LockInfo{}, err
	}
	in, err := c.engine.Inspect(ctx, name, protocol.Page{Holds: inspected, Queue: inspected})
	if err != nil {
		return LockInfo{}, operated("inspect", name, err)
	}
	return c.lockInfo(name, in), nil
}

// Queue streams all waiters of a name in order, a page at a time. A waiter that joins meanwhile is
// told, as it joins at the end. The stream ends after an error, which is as for Inspect.
func (c *Client) Queue(ctx context.Context, name string) iter.Seq2[WaiterInfo, error] {
	return func(yield func(WaiterInfo, error) bool) {
		if err := c.operates(ctx, "Client.Queue", name); err != nil {
			yield(WaiterInfo{}, err)
			return
		}
		place := 0
		for page := (protocol.Page{Queue: inspected}); ; {
			in, err := c.engine.Inspect(ctx, name, page)
			if err != nil {
				yield(WaiterInfo{}, operated("inspect", name, err))
				return
			}
			for _, p := range in.Queue {
				if !yield(waiterInfo(p, in, &place), nil) {
					return
				}
				page.After = p.Order
			}
			if len(in.Queue) < page.Queue {
				return
			}
		}
	}
}

// operates refuses a call that is about a name, and has bad arguments.
func (c *Client) operates(ctx context.Context, call, name string) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	bad.check(name != "" && len(name) <= maxText, "name", shortened(name), "1 byte to 1 KiB")
	return bad.err(call)
}

// lockInfo reads an inspection by this client.
func (c *Client) lockInfo(name string, in protocol.Inspection) LockInfo {
	out := lockInfo(name, in)
	out.Class = c.classes.class(name)
	return out
}

// lockInfo reads an inspection.
func lockInfo(name string, in protocol.Inspection) LockInfo {
	out := LockInfo{
		Name: name, At: time.UnixMicro(in.Server), Holders: in.HoldCount, Waiters: in.QueueCount,
		Permits: in.Permits, Taken: in.Taken, Count: in.Count,
	}
	if in.Kind != 0 {
		out.Kind = in.Kind.String()
	}
	out.Holds = holdInfos(in)
	place := 0
	for _, p := range in.Queue {
		out.Queue = append(out.Queue, waiterInfo(p, in, &place))
	}
	if in.Foreign != nil {
		out.Foreign = in.Foreign.Text()
	}
	out.State = lockState(in, out)
	for _, n := range in.Nodes {
		master := MasterInfo{Node: n.Node, Counts: n.Counts, Why: n.Why, Holds: holdInfos(n.Inspection), Err: public("inspect", name, n.Err)}
		if n.Inspection.Foreign != nil {
			master.Foreign = n.Inspection.Foreign.Text()
		}
		out.Masters = append(out.Masters, master)
	}
	return out
}

// lockState is that of the first hold that is no remainder, or else of the first.
func lockState(in protocol.Inspection, out LockInfo) LockState {
	switch {
	case in.Foreign != nil:
		return StateForeign
	case in.Latch == protocol.LatchSet:
		return StateSet
	case in.Latch == protocol.LatchOpen:
		return StateOpen
	}
	state := StateFree
	if len(out.Holds) == 0 && tooFew(in.Nodes) {
		return StateUnknown
	}
	for _, h := range out.Holds {
		switch h.State {
		case HoldHeld:
			return StateHeld
		case HoldHandedOver:
			state = StateHandedOver
		case HoldMinHold:
			if state == StateFree {
				state = StateMinHold
			}
		case HoldBroken:
			if state != StateHandedOver {
				state = StateRemainder
			}
		}
	}
	return state
}

// tooFew tells whether fewer masters of a quorum than a majority answered, of those that count.
func tooFew(nodes []protocol.NodeInspect) bool {
	count := 0
	for _, n := range nodes {
		if n.Counts {
			count++
		}
	}
	return len(nodes) > 0 && count <= len(nodes)/2
}

func holdInfos(in protocol.Inspection) []HoldInfo {
	states := map[protocol.HoldState]HoldState{
		protocol.HoldTaken: HoldHeld, protocol.HoldOffered: HoldHandedOver, protocol.HoldMinHold: HoldMinHold,
		protocol.HoldBroken: HoldBroken,
	}
	out := make([]HoldInfo, 0, len(in.Holds))
	for _, h := range in.Holds {
		info := HoldInfo{
			State: states[h.State], By: h.By, Owner: namedOwner(h.Party), Label: h.Party.Label, Mode: modeOf(in.Kind, h.Shared),
			Permits: h.Weight, Token: h.Token, LastToken: h.Token + max(h.Block, 1) - 1, Since: timeOf(h.Since),
			Remaining: time.Duration(h.Until-in.Server) * time.Microsecond, TTL: h.TTL, Fixed: h.Fixed, Renewed: timeOf(h.Renewed),
		}
		info.Host, info.PID = processOf(h.Process)
		unrenewed := time.Duration(in.Server-h.Renewed) * time.Microsecond
		info.Late = h.State == protocol.HoldTaken && !h.Fixed && h.Renewed > 0 && unrenewed > h.TTL/2
		out = append(out, info)
	}
	return out
}

// waiterInfo reads a place. Before is the number of the last place that was told.
func waiterInfo(p protocol.Place, in protocol.Inspection, before *int) WaiterInfo {
	info := WaiterInfo{
		ID: digestOf(p.ID), Owner: namedOwner(p.Party), Label: p.Party.Label, Mode: modeOf(in.Kind, p.Shared), Permits: p.Weight,
		Since: timeOf(p.Since), Alive: AliveUnknown, Kept: p.Kept,
	}
	info.Host, info.PID = processOf(p.Process)
	if !p.Closed {
		*before++
		info.Place = *before
	}
	const joining = 1_000_000 // a ticket joins before its process has subscribed
	switch {
	case p.Closed || p.Until <= in.Server || p.Heard == protocol.HeardNo && in.Server-p.Since > joining:
		info.Alive = AliveNo
	case p.Heard == protocol.HeardYes:
		info.Alive = AliveYes
	}
	for _, lease := range p.Under {
		info.Under = append(info.Under, lease.Name)
	}
	return info
}

// digestOf names a ticket without its id, which is a secret: with it, the scripts can be run on the
// ticket.
func digestOf(id protocol.ID) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:16]
}

func modeOf(kind protocol.Kind, shared bool) HoldMode {
	switch {
	case kind == protocol.Semaphore:
		return ModePermits
	case shared:
		return ModeReads
	}
	return ModeWrites
}

// processOf reads host/pid/random.
func processOf(process string) (host string, pid int) {
	host, rest, ok := strings.Cut(process, "/")
	if !ok {
		return "", 0
	}
	number, _, _ := strings.Cut(rest, "/")
	pid, err := strconv.Atoi(number)
	if err != nil {
		return "", 0
	}
	return host, pid
}

// timeOf is a server time; the zero time if it is not known.
func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros)
}
