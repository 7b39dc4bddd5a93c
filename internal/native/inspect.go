package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// Inspect implements protocol.Operators.
func (p *Protocol) Inspect(ctx context.Context, name string, page protocol.Page) (protocol.Inspection, error) {
	r := p.bind(protocol.Spec{Name: name})
	s, deadline := &p.scripts.inspect, p.deadline(ctx)
	if err := p.learnTopology(ctx, s.Op, r, deadline); err != nil {
		return protocol.Inspection{}, err
	}
	args := []any{nil, nil, 2, r.keys.state, r.keys.queue, string(format), page.Holds, page.Queue, page.After, r.life}
	reply := p.run(ctx, s, &r.keys, deadline, args)
	out, err := protocol.Inspection{}, r.failureOf(s, reply, wire.KeysIn(args)...)
	if err == nil {
		var ok bool
		if out, ok = r.readInspection(reply.Value, page); !ok {
			err = r.at(reply, r.unreadable(s.Op, reply.Value))
		}
	}
	var failure *protocol.Failure
	if errors.As(err, &failure) {
		failure.Unknown = false // it takes no effect
	}
	return out, err
}

// An inspection is a reply of inspect.lua, taken apart. The texts come in this order.
type inspection struct {
	now, is, value, left, holders, taken, permits string
	queueIs, sample, waiters, closed              string

	holds, open, shut []string
}

// takeApart reads the reply into its texts and lists. It is false if the reply is none.
func (in *inspection) takeApart(reply any) bool {
	texts := []*string{&in.now, &in.is, &in.value, &in.left, &in.holders, &in.taken, &in.permits, &in.queueIs,
		&in.sample, &in.waiters, &in.closed}
	lists := []*[]string{&in.holds, &in.open, &in.shut}
	fields, _ := reply.([]any)
	if len(fields) != len(texts)+len(lists) || !readTexts(fields[:len(texts)], texts) {
		return false
	}
	for i, list := range lists {
		items, ok := fields[len(texts)+i].([]any)
		into := make([]*string, len(items))
		*list = make([]string, len(items))
		for at := range items {
			into[at] = &(*list)[at]
		}
		if !ok || !readTexts(items, into) {
			return false
		}
	}
	return len(in.holds)%3 == 0 && len(in.open)%4 == 0 && len(in.shut)%4 == 0
}

func readTexts(values []any, texts []*string) (ok bool) {
	for i, value := range values {
		if *texts[i], ok = value.(string); !ok {
			return false
		}
	}
	return true
}

// readInspection reads a reply of inspect.lua. It is false if the reply is none.
func (r *resource) readInspection(reply any, page protocol.Page) (out protocol.Inspection, ok bool) {
	var in inspection
	if !in.takeApart(reply) {
		return out, false
	}
	n, ok := numbers([]string{in.now, in.left, in.holders, in.taken, in.permits, in.waiters, in.closed}, 7)
	if !ok {
		return out, false
	}
	now, end, closed := n[0], (n[0]/1000+n[1])*1000, n[6]
	out = protocol.Inspection{Server: now, HoldCount: int(n[2]), QueueCount: int(n[5])}
	holding, foreign := r.foreignState(in.is, in.value)
	if foreign != nil {
		return protocol.Inspection{Server: now, Foreign: foreign}, true
	}
	if holding == protocol.Latch {
		if out, ok = readLatch(now, in.value, end); !ok {
			out = protocol.Inspection{Server: now, Foreign: r.damaged(r.keys.state)}
		}
		return out, true
	}
	waiting, foreign := r.foreignState(in.queueIs, in.sample)
	if out.Foreign = foreign; foreign != nil {
		foreign.Key = r.keys.queue.(string)
	}
	if in.is == "a" {
		out.HoldCount = 1
		in.holds, ok = aloneAsList(in.value, end, page.Holds)
	}
	switch {
	case out.HoldCount > 0:
		out.Kind = holding
	case int64(out.QueueCount)+closed > 0:
		out.Kind = waiting
	}
	if out.Kind == protocol.Semaphore {
		out.Taken, out.Permits = n[3], n[4]
	}
	if !ok || !r.readHolds(in.holds, &out) {
		out.Foreign = r.damaged(r.keys.state)
	}
	if !r.readPlaces(in, page.Queue, &out) {
		out.Foreign = r.damaged(r.keys.queue)
	}
	return out, true
}

// damaged says that a key begins as one of ours, and has in it what none of ours has.
func (r *resource) damaged(key any) *protocol.Foreign {
	return &protocol.Foreign{Op: "inspect", Name: r.spec.Name, Key: key.(string), Found: "damaged", Want: "a lock's"}
}

// aloneAsList is the hold of a string as inspect.lua tells the holds of a set.
func aloneAsList(value string, end int64, room int) ([]string, bool) {
	const head = ticketLength + tokenLength
	if room <= 0 {
		return nil, true
	}
	if len(value) < head {
		return nil, false
	}
	return []string{value[:ticketLength] + value[head:], strconv.FormatInt(end/1000, 10), value[ticketLength:head]},
		true
}

// readHolds reads three texts for each hold.
func (r *resource) readHolds(texts []string, out *protocol.Inspection) bool {
	const shared = 10_000_000_000_000 // what a score has more if the hold shares
	for hold := range slices.Chunk(texts, 3) {
		score, ok := wire.Number(hold[1])
		if !ok || len(hold[0]) < ticketLength {
			return false
		}
		read := r.readHold(hold[0][:ticketLength], hold[2], hold[0][ticketLength:], score%shared*1000, out.Server)
		read.Shared = score >= shared
		out.Holds = append(out.Holds, read)
	}
	return true
}

// readPlaces reads four texts for each place, and keeps the first ones in order. It is false if a
// place cannot be read: the others are kept all the same.
func (r *resource) readPlaces(in inspection, room int, out *protocol.Inspection) bool {
	whole := true
	for place := range slices.Chunk(in.open, 4) {
		ticket, text := place[0][:min(ticketLength, len(place[0]))], place[0][min(ticketLength, len(place[0])):]
		read, ok := r.readPlace(ticket, place[1], place[2], text, out.Server)
		if !ok {
			whole = false
			continue
		}
		read.Heard = map[string]protocol.ListenState{"1": protocol.HeardYes, "0": protocol.HeardNo}[place[3]]
		out.Queue = append(out.Queue, read)
	}
	for place := range slices.Chunk(in.shut, 4) {
		read, ok := r.readPlace(place[0], place[1], place[2], place[3], out.Server)
		if !ok {
			whole = false
			continue
		}
		read.Kept, read.Closed, read.Heard = true, true, protocol.HeardNo
		out.Queue = append(out.Queue, read)
	}
	slices.SortFunc(out.Queue, func(a, b protocol.Place) int {
		if a.Order == b.Order && a.Closed != b.Closed { // a ticket that joins looks at open places only
			return map[bool]int{true: -1, false: 1}[a.Closed]
		}
		return cmp.Compare(a.Order, b.Order)
	})
	room = min(len(out.Queue), max(room, 0))
	// the next page begins behind
	for room > 0 && room < len(out.Queue) && out.Queue[room].Order == out.Queue[room-1].Order {
		room++
	}
	out.Queue = out.Queue[:room]
	return whole
}

// foreignState is the kind of what stands at a key, from what inspect.lua says of it, or that it is
// none of ours. The kind is 0 if there is nothing.
func (r *resource) foreignState(what, starts string) (protocol.Kind, *protocol.Foreign) {
	foreign := &protocol.Foreign{Op: "inspect", Name: r.spec.Name, Key: r.keys.state.(string), Found: "of another type",
		Want: "a lock's"}
	switch what {
	case "":
		return 0, nil
	case "T":
		return 0, foreign
	}
	starts = starts[:min(len(starts), 4)]
	if what != "F" && len(starts) == 4 {
		switch kind := protocol.Kind(starts[1]); kind {
		case protocol.Mutex, protocol.ReadWrite, protocol.Semaphore, protocol.Latch, protocol.Election:
			return kind, nil
		}
	}
	foreign.Found, foreign.Want = whatStarts(starts), fmt.Sprintf("a lock of format %c", format)
	return 0, foreign
}

// readHold reads a hold, or what remains of one, that ends at a server time.
func (r *resource) readHold(ticket, token, text string, end, now int64) protocol.Hold {
	p, _ := readPayload(text) // what cannot be read stays empty: it is for people only
	out := protocol.Hold{
		ID: idOf(ticket), State: protocol.HoldTaken, Party: p.party(ticket), Process: p.process(r.p.config.Prefix),
		Weight: p.weight, Block: p.block, Until: end, TTL: p.ttl, Fixed: p.fixed,
	}
	out.Token, _ = wire.Number(token)
	// A token is the time of its grant, unless the clock was set back. Where several grants follow
	// each other at once it may be a few blocks ahead.
	const ahead = 1_000_000
	if out.Token < now+ahead {
		out.Since = min(out.Token, now)
	}
	if ticket[2] == '-' {
		out.State, out.By = remainderOf(p)
		return out
	}
	// A hand-over that is not taken up ends with its claim. A hold that was asked for or renewed
	// ends later: a TTL is at least two claims. The server may stand still within a script, between
	// the time of the grant and that from which the claim counts.
	if p.ttl > 0 {
		out.Renewed = min(now, end-p.ttl.Microseconds())
	}
	if out.Since > 0 && end <= out.Token+p.claim.Microseconds()*3/2 {
		out.State, out.Renewed = protocol.HoldOffered, out.Since
	}
	out.Renewed = max(out.Renewed, out.Since)
	return out
}

// remainderOf is what a remainder says of itself: why it is there, and by whom.
func remainderOf(p payload) (protocol.HoldState, string) {
	if p.extra("why") == "b" {
		return protocol.HoldBroken, p.extra("by")
	}
	return protocol.HoldMinHold, ""
}

// readPlace reads a place in the queue. It is false of one that was damaged. The payload of a
// closed place may be missing.
func (r *resource) readPlace(ticket, place, life, text string, now int64) (out protocol.Place, ok bool) {
	order, ok := wire.Number(place)
	if !ok || len(ticket) != ticketLength {
		return out, false
	}
	p, ok := readPayload(text)
	if !ok && text != "" {
		return out, false
	}
	ends, _ := wire.Number(life)
	out = protocol.Place{
		ID: idOf(ticket), Party: p.party(ticket), Process: p.process(r.p.config.Prefix), Shared: ticket[2] == 's',
		Weight: p.weight,
		Order:  order, Until: min(ends, math.MaxInt64/1000) * 1000, Kept: p.extra("keep") != "",
	}
	if order <= now { // a place is the time when the ticket joined, unless the clock was set back
		out.Since = order
	}
	out.Under, out.More = readEvidence(p.extra("under"))
	return out, true
}

// readLatch reads the state of a latch: front, id, standing, count and TTL.
func readLatch(now int64, value string, end int64) (out protocol.Inspection, ok bool) {
	if len(value) <= ticketLength {
		return out, false
	}
	count, _, _ := strings.Cut(value[ticketLength+1:], ":")
	out = protocol.Inspection{Server: now, Kind: protocol.Latch, Latch: protocol.LatchSet, Until: end}
	if value[ticketLength] == 'o' {
		out.Latch = protocol.LatchOpen
	}
	out.Count, ok = wire.Number(count)
	return out, ok
}
