// Package ticketcode writes a lease that has left its process, or a place in a queue, as the text
// of a ticket, and reads it.
package ticketcode

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// The text of a ticket is mark, the number of its format, "." and base64url of the body and its
// CRC-32. A change to what is in the body needs another number, and so does a change to how a
// payload is made of it (package native).
const (
	mark   = "holdfast-ticket-"
	format = "2"
)

// A Kind says what a ticket is of. It is the first byte of the body.
type Kind byte

// The kinds of tickets.
const (
	Hold  Kind = 'h'
	Place Kind = 'p'
)

// Errors of Decode.
var (
	ErrNoTicket = errors.New("not a ticket") // or not a whole one
	ErrFormat   = errors.New("a ticket of another format")
)

// maxBlock is more than the tokens that any grant reserves.
const maxBlock = 1 << 20

// Flags of a hold in a ticket.
const (
	flagShared = 1 << iota
	flagFixed
	flagNoMessages
)

// Encode writes the holds of a lease down, one or those of a group, or a place.
func Encode(kind Kind, holds []engine.Detached) string {
	w := writer{byte(kind)}
	w.addText(holds[0].Prefix)
	w.addNumber(int64(len(holds)))
	for i := range holds {
		w.addHold(&holds[i])
	}
	w = binary.BigEndian.AppendUint32(w, crc32.ChecksumIEEE(w))
	return mark + format + "." + base64.RawURLEncoding.EncodeToString(w)
}

// Decode reads what a ticket is of, and its holds, or its place. The error is ErrNoTicket or
// ErrFormat.
func Decode(ticket string) (kind Kind, holds []engine.Detached, err error) {
	body, err := decodeBody(ticket)
	if err != nil {
		return 0, nil, err
	}
	r := reader{rest: body}
	kind = Kind(r.readByte())
	r.check(kind == Hold || kind == Place)
	prefix, count := r.readText(), r.readNumber()
	r.check(count >= 1 && count <= limits.MaxGroup)
	for ; count > 0 && !r.bad; count-- {
		holds = append(holds, r.readHold(prefix))
	}
	if r.bad || len(r.rest) > 0 || kind == Place && !isOnePlace(holds) {
		return 0, nil, ErrNoTicket
	}
	return kind, holds, nil
}

// isOnePlace reports whether a ticket is of one place. A place has no times of its own.
func isOnePlace(holds []engine.Detached) bool {
	if len(holds) != 1 || holds[0].Ticket.Keep == 0 {
		return false
	}
	o := holds[0].Options
	return !o.Fixed && o.MinHold == 0 && o.MaxHold == 0
}

// decodeBody reads the text of a ticket, without what is only there to recognise it. The errors are
// those of Decode.
func decodeBody(ticket string) ([]byte, error) {
	text, ok := strings.CutPrefix(ticket, mark)
	has, text, cut := strings.Cut(text, ".")
	switch {
	case !ok || !cut || has == "" || strings.Trim(has, "0123456789") != "":
		return nil, ErrNoTicket
	case has != format:
		return nil, ErrFormat
	}
	body, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(body) < 4 || strings.ContainsAny(text, "\r\n") {
		return nil, ErrNoTicket
	}
	body, sum := body[:len(body)-4], body[len(body)-4:]
	if crc32.ChecksumIEEE(body) != binary.BigEndian.Uint32(sum) {
		return nil, ErrNoTicket
	}
	return body, nil
}

// A writer writes the body of a ticket.
type writer []byte

func (w *writer) addNumber(n int64) { *w = binary.AppendUvarint(*w, uint64(n)) }

func (w *writer) addText(s string) {
	w.addNumber(int64(len(s)))
	*w = append(*w, s...)
}

func (w *writer) addHold(d *engine.Detached) {
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
		w.addText(s)
	}
	for _, n := range []int64{d.Spec.Permits, d.Ticket.Weight, d.Ticket.Block, d.Token, d.GrantToken} {
		w.addNumber(n)
	}
	for _, duration := range []time.Duration{
		d.Options.TTL, d.Options.MinHold, d.Options.MaxHold, d.Lasts, d.Ticket.Keep} {
		w.addNumber(int64(duration))
	}
}

// A reader reads the body of a ticket. Once it is bad, all that it reads is zero.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) check(ok bool) { r.bad = r.bad || !ok }

func (r *reader) readBytes(n int) []byte {
	if r.check(n <= len(r.rest)); r.bad {
		return make([]byte, min(n, 1))
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) readByte() byte { return r.readBytes(1)[0] }

func (r *reader) readNumber() int64 {
	n, size := binary.Uvarint(r.rest)
	if r.check(size > 0 && n < 1<<63); r.bad {
		return 0
	}
	r.rest = r.rest[size:]
	return int64(n)
}

func (r *reader) readText() string {
	n := r.readNumber()
	r.check(n <= int64(len(r.rest)))
	if r.bad {
		return ""
	}
	return string(r.readBytes(int(n)))
}

func (r *reader) readDuration() time.Duration { return time.Duration(r.readNumber()) }

// readHold reads a hold, and checks what a lock of this library has for certain.
func (r *reader) readHold(prefix string) engine.Detached {
	d := engine.Detached{Prefix: prefix}
	kind, flags := protocol.Kind(r.readByte()), r.readByte()
	d.Spec.Kind, d.Spec.Shared = kind, flags&flagShared != 0
	d.Options.Fixed, d.Ticket.NoMessages = flags&flagFixed != 0, flags&flagNoMessages != 0
	d.Spec.Name, d.Spec.Owner, d.Spec.Label = r.readText(), r.readText(), r.readText()
	d.Ticket.ID, d.Origin = protocol.ID(r.readText()), protocol.Origin(r.readText())
	d.Spec.Permits, d.Ticket.Weight, d.Ticket.Block = r.readNumber(), r.readNumber(), r.readNumber()
	d.Token, d.GrantToken = r.readNumber(), r.readNumber()
	d.Options.TTL, d.Options.MinHold, d.Options.MaxHold, d.Lasts = r.readDuration(), r.readDuration(), r.readDuration(),
		r.readDuration()
	r.check(kind == protocol.Mutex || kind == protocol.ReadWrite || kind == protocol.Semaphore ||
		kind == protocol.Election)
	r.check(d.Spec.Name != "" && len(d.Spec.Name) <= limits.MaxText && len(d.Ticket.ID) == 22 && d.Ticket.Block >= 1)
	d.Ticket.Keep = r.readDuration()
	r.check(d.Ticket.Keep == 0 || limits.IsKeep(d.Ticket.Keep))
	r.check(d.Options.TTL >= limits.MinTTL && d.Options.TTL <= limits.MaxTTL && d.Options.MinHold <= limits.MaxTTL)
	r.check(d.Options.MaxHold == 0 || d.Options.MaxHold >= max(limits.MinTTL, d.Options.MinHold))
	r.check(d.GrantToken <= d.Token && d.Token < 1<<53 && d.Ticket.Block <= maxBlock)
	r.check(len(d.Spec.Owner) <= limits.MaxText && len(d.Spec.Label) <= limits.MaxText)
	return d
}
