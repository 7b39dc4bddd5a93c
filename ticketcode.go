package holdfast

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The text of a ticket is ticketMark, the number of its format, "." and base64url of the body and
// its CRC-32. A change to what is in the body needs another number, and so does a change to how a
// payload is made of it (package native).
const (
	ticketMark   = "holdfast-ticket-"
	ticketFormat = "2"

	// The first byte of the body says what the ticket is of.
	ticketOfHold  = 'h'
	ticketOfPlace = 'p'
)

// errNoTicket says that a text is not a ticket, or not a whole one.
var errNoTicket = errors.New("not a ticket")

// maxBlock is more than the tokens that any grant reserves.
const maxBlock = 1 << 20

// Flags of a hold in a ticket.
const (
	flagShared = 1 << iota
	flagFixed
	flagNoMessages
)

// encodeTicket writes the holds of a lease down, one or those of a group, or a place.
func encodeTicket(of byte, holds []engine.Detached) Ticket {
	w := ticketWriter{of}
	w.text(holds[0].Prefix)
	w.number(int64(len(holds)))
	for i := range holds {
		w.hold(&holds[i])
	}
	w = binary.BigEndian.AppendUint32(w, crc32.ChecksumIEEE(w))
	return Ticket(ticketMark + ticketFormat + "." + base64.RawURLEncoding.EncodeToString(w))
}

// decodeTicket reads what a ticket is of, and its holds, or its place. The error is errNoTicket or
// a *TicketError.
func decodeTicket(ticket Ticket) (of byte, holds []engine.Detached, err error) {
	body, err := ticketBody(ticket)
	if err != nil {
		return 0, nil, err
	}
	r := ticketReader{rest: body}
	of = r.byte()
	r.check(of == ticketOfHold || of == ticketOfPlace)
	prefix, count := r.text(), r.number()
	r.check(count >= 1 && count <= maxGroup)
	for ; count > 0 && !r.bad; count-- {
		holds = append(holds, r.hold(prefix))
	}
	if r.bad || len(r.rest) > 0 || of == ticketOfPlace && !onePlace(holds) {
		return 0, nil, errNoTicket
	}
	return of, holds, nil
}

// onePlace reports whether a ticket is of one place. A place has no times of its own.
func onePlace(holds []engine.Detached) bool {
	return len(holds) == 1 && holds[0].Ticket.Keep > 0 && holds[0].Options == engine.Options{TTL: holds[0].Options.TTL}
}

// ticketBody reads the text of a ticket, without what is only there to recognise it. The errors are
// those of decodeTicket.
func ticketBody(ticket Ticket) ([]byte, error) {
	text, ok := strings.CutPrefix(string(ticket), ticketMark)
	format, text, cut := strings.Cut(text, ".")
	switch {
	case !ok || !cut || format == "" || strings.Trim(format, "0123456789") != "":
		return nil, errNoTicket
	case format != ticketFormat:
		return nil, &TicketError{Reason: TicketFormat}
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(body) < 4 || strings.ContainsAny(text, "\r\n") {
		return nil, errNoTicket
	}
	body, sum := body[:len(body)-4], body[len(body)-4:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return nil, errNoTicket
	}
	return body, nil
}

// A ticketWriter writes the body of a ticket.
type ticketWriter []byte

func (w *ticketWriter) number(n int64) { *w = binary.AppendUvarint(*w, uint64(n)) }

func (w *ticketWriter) text(s string) {
	w.number(int64(len(s)))
	*w = append(*w, s...)
}

func (w *ticketWriter) hold(d *engine.Detached) {
	flags := byte(0)
	if d.Spec.Shared {
		flags |= flagShared
	}
	if d.Options.Fixed {
		flags |= flagFixed
	}
	if d.Ticket.NoMessages {
		flags |= flagNoMessages
	}
	*w = append(*w, byte(d.Spec.Kind), flags)
	for _, s := range []string{d.Spec.Name, d.Spec.Owner, d.Spec.Label, string(d.Ticket.ID), string(d.Origin)} {
		w.text(s)
	}
	for _, n := range []int64{d.Spec.Permits, d.Ticket.Weight, d.Ticket.Block, d.Token, d.GrantToken} {
		w.number(n)
	}
	for _, duration := range []time.Duration{d.Options.TTL, d.Options.MinHold, d.Options.MaxHold, d.Lasts, d.Ticket.Keep} {
		w.number(int64(duration))
	}
}

// A ticketReader reads the body of a ticket. Once it is bad, all that it reads is zero.
type ticketReader struct {
	rest []byte
	bad  bool
}

func (r *ticketReader) check(ok bool) { r.bad = r.bad || !ok }

func (r *ticketReader) take(n int) []byte {
	if r.check(n <= len(r.rest)); r.bad {
		return make([]byte, min(n, 1))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *ticketReader) byte() byte { return r.take(1)[0] }

func (r *ticketReader) number() int64 {
	n, size := binary.Uvarint(r.rest)
	if r.check(size > 0 && n < 1<<63); r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *ticketReader) text() string {
	n := r.number()
	r.check(n <= int64(len(r.rest)))
	if r.bad {
		return ""
	}
	return string(r.take(int(n)))
}

func (r *ticketReader) duration() time.Duration { return time.Duration(r.number()) }

// hold reads a hold, and checks what a lock of this library has for certain.
func (r *ticketReader) hold(prefix string) engine.Detached {
	d := engine.Detached{Prefix: prefix}
	kind, flags := protocol.Kind(r.byte()), r.byte()
	d.Spec.Kind, d.Spec.Shared = kind, flags&flagShared != 0
	d.Options.Fixed, d.Ticket.NoMessages = flags&flagFixed != 0, flags&flagNoMessages != 0
	d.Spec.Name, d.Spec.Owner, d.Spec.Label = r.text(), r.text(), r.text()
	d.Ticket.ID, d.Origin = protocol.ID(r.text()), protocol.Origin(r.text())
	d.Spec.Permits, d.Ticket.Weight, d.Ticket.Block = r.number(), r.number(), r.number()
	d.Token, d.GrantToken = r.number(), r.number()
	d.Options.TTL, d.Options.MinHold, d.Options.MaxHold, d.Lasts = r.duration(), r.duration(), r.duration(), r.duration()
	r.check(kind == protocol.Mutex || kind == protocol.ReadWrite || kind == protocol.Semaphore || kind == protocol.Election)
	r.check(d.Spec.Name != "" && len(d.Spec.Name) <= maxText && len(d.Ticket.ID) == 22 && d.Ticket.Block >= 1)
	d.Ticket.Keep = r.duration()
	r.check(d.Ticket.Keep == 0 || validKeep(d.Ticket.Keep))
	r.check(d.Options.TTL >= minTTL && d.Options.TTL <= maxMaxTTL && d.Options.MinHold <= maxMaxTTL)
	r.check(d.Options.MaxHold == 0 || d.Options.MaxHold >= max(minTTL, d.Options.MinHold))
	r.check(d.GrantToken <= d.Token && d.Token < 1<<53 && d.Ticket.Block <= maxBlock)
	r.check(len(d.Spec.Owner) <= maxText && len(d.Spec.Label) <= maxText)
	return d
}
