package explore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A phase is where a caller is.
type phase byte

const (
	idle     phase = iota // nothing is left of its tickets
	fresh                 // it has asked, and knows of nothing at the server
	placed                // its kept place is there, and nobody waits
	waiting               // the server knows its ticket
	holding               // its hold is trusted
	unused                // its hold is retained, and trusted; its code does not run
	lost                  // its hold is not to be trusted any more, or was broken; its code may run
	detached              // its hold has left the process
	leaving               // it gives everything back, until that is certain
	crashed
	over // of a latch: it has had its answer
)

// A mode is how the hold of a caller that may downgrade is held.
type mode byte

const (
	whole mode = iota
	changing
	shares
)

// An attempt is what one caller knows of its present ticket.
type attempt struct {
	phase   phase
	mode    mode
	inLine  bool
	listens bool // of a kept place: a process waits with the ticket
	alone   bool // of a group: it asked for this name alone
	number  int8 // of the ticket
	old     int8 // the ticket that the next ask gives back; -1: none

	trust   int64 // the tick at which trust ends
	permits int64 // of a semaphore, as the ticket names them
	until   int64 // the last tick at which an ask without an answer may take effect
	granted int64 // the tick of the grant, of a caller with a min hold
	grant   int64 // the tick of a hand-over of which the message is under way; -1: none
	token   int64 // of the hold of a caller that retains
	entries int64 // how often that hold was entered since its grant
	recall  bool  // the message that another asks for that hold is under way
	wanted  bool  // that message came: the hold is not retained any more
	out     Request
}

// acts reports whether the code of the caller may act on its hold.
func (a *attempt) acts(now int64) bool {
	return now < a.trust && (a.phase == holding || a.phase == lost)
}

// A server is the protocol in memory in one state. It is never changed.
type server struct {
	*memory.Server
	records []memory.Record
}

// A state is one state of a world. A change makes a copy.
type state struct {
	now      int64
	server   *server
	attempts [most]attempt
	late     []Request
	largest  int64 // the largest token of a hold
	permits  int64
	reserved int64 // the tick at which the last min hold is over
	reserver int8  // whose it is
}

// A search goes through the states of a world.
type search struct {
	*World
	now      time.Time // what the clock of all servers shows
	told     []protocol.Grant
	recalled []protocol.ID
	calm     map[key]struct{} // of what calmEnd has judged

	parts [most][]byte
	buf   []byte
}

// A key is what tells two states apart.
type key [16]byte

// Granted implements protocol.Sink.
func (x *search) Granted(g protocol.Grant) { x.told = append(x.told, g) }

// Recall implements protocol.Sink.
func (x *search) Recall(id protocol.ID) { x.recalled = append(x.recalled, id) }

// Nudge, Broken and Gap implement protocol.Sink. A caller may ask at any moment, so that it need
// not be told to.
func (x *search) Nudge(protocol.ID, time.Duration) {}
func (x *search) Broken(protocol.ID)               {}
func (x *search) Gap()                             {}

func (x *search) clock() time.Time { return x.now }

func (x *search) start() *state {
	x.now = begin
	out := &state{now: first, permits: mostPermits, server: &server{
		Server: memory.NewAt(protocol.Features{Queue: !x.NoQueue}, x.clock)}}
	for i := range x.Callers {
		_, _ = out.server.Connect(x.World.Name).Listen(context.Background(), x)
		out.attempts[i] = attempt{old: -1, grant: -1}
	}
	return out
}

// key returns what tells a state from those from which something else may come. Times count from
// now, tickets are named in the order of their captions, and equal callers change places.
func (x *search) key(s *state) key {
	for who := range x.Callers {
		x.parts[who] = x.encode(x.parts[who][:0], s, int8(who))
	}
	order := x.parts[:len(x.Callers)]
	for i := 0; i < len(order); {
		n := i + 1
		for n < len(order) && x.Callers[n] == x.Callers[i] {
			n++
		}
		slices.SortFunc(order[i:n], bytes.Compare)
		i = n
	}
	x.buf = append(x.buf[:0], byte(s.permits))
	for _, part := range order {
		x.buf = append(append(x.buf, byte(len(part))), part...)
	}
	if x.Resizes {
		for _, r := range s.server.records {
			if r.State == memory.RecordName {
				x.buf = append(x.buf, byte(r.Count))
			}
		}
	}
	sum := sha256.Sum256(x.buf)
	return key(sum[:16])
}

// left is how many ticks are left until a tick.
func left(at, now int64) byte { return byte(max(0, at-now)) }

// encode appends all that is about one caller.
func (x *search) encode(buf []byte, s *state, who int8) []byte {
	a := &s.attempts[who]
	buf = append(buf, byte(a.phase)|byte(a.mode)<<4|bit(a.inLine)<<6|bit(a.listens)<<7,
		left(a.trust, s.now), left(a.until+1, s.now), left(a.grant+x.Claim, s.now))
	if x.Resizes || x.Callers[who].Group > 0 {
		buf = append(buf, byte(a.permits), bit(a.alone))
	}
	if c := &x.Callers[who]; c.Min > 0 {
		buf = append(buf, left(a.granted+c.Min, s.now), left(s.reserved, s.now)*bit(s.reserver == who))
	}
	if x.Callers[who].Retains {
		next := a.token + a.entries + 1 - s.largest // that there is a larger one matters, and not which
		buf = append(buf, byte(a.entries), bit(a.recall)|bit(a.wanted)<<1, byte(max(0, min(next, block))))
	}
	if a.out.op != noOp {
		buf = appendRequest(append(buf, 1), &a.out, s.now)
		buf = append(buf, bit(a.out.answered), byte(a.out.answer), left(a.out.sent+x.TTL, s.now))
		if c := &x.Callers[who]; c.Min > 0 {
			buf = append(buf, left(a.out.server+c.Min, s.now))
		}
	}
	buf = x.encodeTicket(append(buf, 255), s, who, a.number)
	var olds [10][]byte
	n := 0
	used := s.tickets(who) &^ (1 << a.number)
	for number := int8(0); used>>number > 0; number++ {
		if text := x.encodeTicket(nil, s, who, number); len(text) > 0 {
			olds[n] = append(text, bit(number == a.old))
			n++
		}
	}
	slices.SortFunc(olds[:n], bytes.Compare)
	for _, text := range olds[:n] {
		buf = append(append(buf, 254), text...)
	}
	return buf
}

// tickets are the numbers of a caller's tickets that the server or the network has.
func (s *state) tickets(who int8) (set uint16) {
	for i := range s.server.records {
		if id := s.server.records[i].ID; id != "" && callerOf(id) == int(who) {
			set |= 1 << numberOf(id)
		}
	}
	for i := range s.late {
		if s.late[i].Who == who {
			set |= 1 << s.late[i].number
		}
	}
	return set
}

// encodeTicket appends what the server and the network have of a ticket.
func (x *search) encodeTicket(buf []byte, s *state, who, number int8) []byte {
	id := ids[who][number]
	var all [8][8]byte
	n := 0
	for i := range s.server.records {
		r := &s.server.records[i]
		if r.ID != id {
			continue
		}
		rest := left(ticksOf(r.Until), s.now)
		if rest == 0 && (r.State < memory.RecordPlace || r.State == memory.RecordEvicted) {
			continue
		}
		all[n] = [8]byte{byte(r.State), byte(r.Place), rest, byte(r.Count), bit(r.Shared), bit(r.Closed)}
		n++
	}
	slices.SortFunc(all[:n], func(a, b [8]byte) int { return bytes.Compare(a[:], b[:]) })
	for _, text := range all[:n] {
		buf = append(buf, text[:6]...)
	}
	var requests [4][]byte
	n = 0
	for i := range s.late {
		if r := &s.late[i]; r.Who == who && r.number == number {
			requests[n] = appendRequest(nil, r, s.now)
			n++
		}
	}
	slices.SortFunc(requests[:n], bytes.Compare)
	for _, text := range requests[:n] {
		buf = append(append(buf, 253), text...)
	}
	return buf
}

// appendRequest appends a request without what names tickets.
func appendRequest(buf []byte, r *Request, now int64) []byte {
	return append(buf, byte(r.op), bit(r.join)|bit(r.inLine)<<1|bit(r.leaving)<<2|bit(r.shared)<<3|bit(r.both)<<4|
		bit(r.old >= 0)<<5, left(r.sent+patience+1, now), left(r.keep, now), byte(r.permits))
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}
