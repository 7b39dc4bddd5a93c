package holdfast

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/deadlock"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// maxInspected is how many holds, and how many waiters, an inspection returns.
const maxInspected = 100

// Inspect returns what the server knows of a name: its holders, its queue, and what keeps others
// out, the first 100 of each. Holds whose time is over are left out. It takes nothing and writes
// nothing, and a holder does not notice it. What it tells may be over when it arrives: it is for
// people, and nothing may be decided by it. It lasts at most the smaller of ctx and 1 s. The errors
// are those of every call.
func (c *Client) Inspect(ctx context.Context, name string) (lockinfo.Info, error) {
	if err := c.checkCall(ctx, "Client.Inspect", name); err != nil {
		return lockinfo.Info{}, err
	}
	return c.inspect(ctx, name)
}

func (c *Client) inspect(ctx context.Context, name string) (lockinfo.Info, error) {
	in, err := c.engine.Inspect(ctx, name, protocol.Page{Holds: maxInspected, Queue: maxInspected})
	if err != nil {
		return lockinfo.Info{}, operatorError("inspect", name, err)
	}
	out := newInfo(name, in)
	out.Class = c.classes.Of(name)
	return out, nil
}

// Queue streams all waiters of a name in order, a page at a time. A waiter that joins meanwhile is
// told, as it joins at the end. The stream ends after an error, which is as for Inspect.
func (c *Client) Queue(ctx context.Context, name string) iter.Seq2[lockinfo.Waiter, error] {
	return func(yield func(lockinfo.Waiter, error) bool) {
		if err := c.checkCall(ctx, "Client.Queue", name); err != nil {
			yield(lockinfo.Waiter{}, err)
			return
		}
		place := 0
		for in, err := range c.inspectQueue(ctx, name) {
			if err != nil {
				yield(lockinfo.Waiter{}, operatorError("inspect", name, err))
				return
			}
			for _, p := range in.Queue {
				if !yield(newWaiter(p, in, &place), nil) {
					return
				}
			}
		}
	}
}

// inspectQueue streams inspections with the queue of a name, a page each, up to an error.
func (c *Client) inspectQueue(ctx context.Context, name string) iter.Seq2[protocol.Inspection, error] {
	return func(yield func(protocol.Inspection, error) bool) {
		for page := (protocol.Page{Queue: maxInspected}); ; {
			in, err := c.engine.Inspect(ctx, name, page)
			if !yield(in, err) || err != nil || len(in.Queue) < page.Queue {
				return
			}
			page.After = in.Queue[len(in.Queue)-1].Order
		}
	}
}

// checkCall refuses a call that is about a name, and has bad arguments.
func (c *Client) checkCall(ctx context.Context, call, name string) error {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New or NewQuorum")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	bad.check(name != "" && len(name) <= limits.MaxText, "name", shorten(name), "1 byte to 1 KiB")
	return bad.err(call)
}

func newInfo(name string, in protocol.Inspection) lockinfo.Info {
	out := lockinfo.Info{
		Name: name, At: serverTime(in.Server), Holders: in.HoldCount, Waiters: in.QueueCount, Holds: newHolds(in),
		Permits: in.Permits, Taken: in.Taken, Count: in.Count, Foreign: foreignText(in),
	}
	if in.Kind != 0 {
		out.Kind = lockinfo.Kind(in.Kind.String())
	}
	place := 0
	for _, p := range in.Queue {
		w := newWaiter(p, in, &place)
		out.Queue = append(out.Queue, w)
		if w.Place > 0 && (out.WaitingSince.IsZero() || w.Since.Before(out.WaitingSince)) {
			out.WaitingSince = w.Since
		}
	}
	for _, n := range in.Nodes {
		master := newMaster(n, publicError("inspect", name, n.Err))
		master.Holds, master.Foreign = newHolds(n.Inspection), foreignText(n.Inspection)
		out.Masters = append(out.Masters, master)
	}
	return out
}

// foreignText returns what stands at a key that is none of ours.
func foreignText(in protocol.Inspection) string {
	if in.Foreign == nil {
		return ""
	}
	return in.Foreign.Text()
}

// newMaster returns what a master says of itself. Err is the documented form of its error.
func newMaster(n protocol.Node, err error) lockinfo.Master {
	if err != nil {
		n.Counts, n.Why = false, innerText(err)
		if failed, ok := err.(*StoreError); ok {
			n.Why = failed.failureText()
		}
	}
	return lockinfo.Master{Node: n.Name, Counts: n.Counts, Why: n.Why, SameAs: n.SameAs, Err: err}
}

// holdStates are the states of holds.
var holdStates = map[protocol.HoldState]lockinfo.State{
	protocol.HoldTaken: lockinfo.StateHeld, protocol.HoldOffered: lockinfo.StateHandedOver,
	protocol.HoldMinHold: lockinfo.StateMinHold, protocol.HoldBroken: lockinfo.StateBroken,
}

func newHolds(in protocol.Inspection) []lockinfo.Hold {
	var out []lockinfo.Hold
	for _, h := range in.Holds {
		hold := lockinfo.Hold{
			State: holdStates[h.State], By: h.By, Owner: namedOwner(h.Party), Label: h.Party.Label,
			Mode:    newMode(in.Kind, h.Shared),
			Permits: h.Weight, Token: h.Token, LastToken: h.Token + max(h.Block, 1) - 1, Since: serverTime(h.Since),
			Remaining: time.Duration(h.Until-in.Server) * time.Microsecond, TTL: h.TTL, Fixed: h.Fixed,
			Renewed: serverTime(h.Renewed), Ticket: h.Party.Kept, Retains: h.Party.Retains,
		}
		hold.Host, hold.PID = parseProcess(h.Process)
		unrenewed := time.Duration(in.Server-h.Renewed) * time.Microsecond
		hold.Late = h.State == protocol.HoldTaken && !h.Fixed && h.Renewed > 0 && unrenewed > h.TTL/2
		out = append(out, hold)
	}
	return out
}

// newWaiter translates a place. Before is the number of the last place that was told.
func newWaiter(p protocol.Place, in protocol.Inspection, before *int) lockinfo.Waiter {
	out := lockinfo.Waiter{
		ID: waiterID(p.ID), Owner: namedOwner(p.Party), Label: p.Party.Label, Mode: newMode(in.Kind, p.Shared),
		Permits: p.Weight, Since: serverTime(p.Since), Alive: lockinfo.AliveUnknown, Kept: p.Kept,
	}
	out.Host, out.PID = parseProcess(p.Process)
	if !p.Closed {
		*before++
		out.Place = *before
	}
	const joining = 1_000_000 // a ticket joins before its process has subscribed
	switch {
	case p.Closed || p.Until <= in.Server || p.Heard == protocol.HeardNo && in.Server-p.Since > joining:
		out.Alive = lockinfo.AliveNo
	case p.Heard == protocol.HeardYes:
		out.Alive = lockinfo.AliveYes
	}
	for _, lease := range p.Under {
		out.Under = append(out.Under, lease.Name)
	}
	return out
}

// waiterID names a ticket without its id, which is a secret: with it, the scripts can be run on the
// ticket.
func waiterID(id protocol.ID) string {
	sum := sha256.Sum256([]byte(id))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:16]
}

func newMode(kind protocol.Kind, shared bool) lockinfo.Mode {
	switch {
	case kind == protocol.Semaphore:
		return lockinfo.ModePermits
	case shared:
		return lockinfo.ModeReads
	case kind == protocol.ReadWrite:
		return lockinfo.ModeWrites
	}
	return lockinfo.ModeExclusive
}

// parseProcess reads host/pid/random.
func parseProcess(process string) (host string, pid int) {
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

// serverTime returns a server time in UTC; the zero time if it is not known.
func serverTime(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Deadlocks returns the deadlocks that WithDeadlockCheck sees, the first 1,000, and ends none of
// them. It looks at all names of the servers, so it needs the permission to SCAN, and lasts as long
// as that takes. If there seem to be deadlocks, it waits for up to 10 s and looks at these again:
// it returns those in which all callers still wait. The errors are as for Inspect. A quorum refuses
// it with an *ArgumentError.
func (c *Client) Deadlocks(ctx context.Context) ([]lockinfo.Deadlock, error) {
	var bad problems
	bad.check(c != nil && c.engine != nil, "Client", nil, "made by New")
	bad.check(ctx != nil, "ctx", nil, "not nil")
	if len(bad) == 0 {
		bad.check(c.engine.Queues(), "Client", "made by NewQuorum", "made by New: a quorum has no queue")
	}
	if err := bad.err("Client.Deadlocks"); err != nil {
		return nil, err
	}
	found, err := c.engine.Deadlocks(ctx)
	if err != nil {
		return nil, operatorError("inspect", "", err)
	}
	out := make([]lockinfo.Deadlock, len(found))
	for i, d := range found {
		out[i] = newDeadlock(d)
	}
	return out, nil
}

func newDeadlock(found *deadlock.Cycle) (d lockinfo.Deadlock) {
	for i := range found.Members {
		m := &found.Members[i]
		member := lockinfo.Member{Label: m.Place.Party.Label, Holds: m.Holds, Token: m.Hold.Token, Waits: m.Waits}
		member.Host, member.PID = parseProcess(m.Place.Process)
		d.Members = append(d.Members, member)
	}
	return d
}

// Why returns why a name is waited for: who holds it, what these holders wait for themselves, who
// holds that, and so on. A waiter WithDeadlockCheck tells what it holds. Of any other, its process
// and its owner are compared with those of the holds, and the Chain says Perhaps.
//
// It looks at all names as List does, so it needs the permission to SCAN, lasts as long as that
// takes, and is no picture of one moment: nothing may be decided by it. It keeps what it knows of
// the names that are waited for, the first 100 holds and waiters of each. A quorum has no queue, so
// there the Chain has the holds of the name alone. The errors are as for List.
func (c *Client) Why(ctx context.Context, name string) (lockinfo.Chain, error) {
	if err := c.checkCall(ctx, "Client.Why", name); err != nil {
		return lockinfo.Chain{}, err
	}
	first, err := c.Inspect(ctx, name)
	if err != nil {
		return lockinfo.Chain{}, err
	}
	var all []lockinfo.Info
	if c.engine.Queues() {
		for info, err := range c.List(ctx, ListOptions{Contended: true}) {
			if err != nil {
				return lockinfo.Chain{}, err
			}
			all = append(all, info)
		}
	}
	return lockinfo.NewChain(first, all), nil
}
