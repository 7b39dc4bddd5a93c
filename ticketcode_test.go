package holdfast

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// someHolds are holds in which no field is zero that may be set.
func someHolds() []engine.Detached {
	one := engine.Detached{
		Prefix: "p\n",
		Spec:   protocol.Spec{Name: "n\x00 \xff", Kind: protocol.Semaphore, Owner: "o", Label: "l\n", Shared: true, Permits: 7},
		Options: engine.Options{
			TTL: 15 * time.Second, MinHold: time.Nanosecond, MaxHold: time.Hour, Fixed: true,
		},
		Ticket: protocol.Ticket{ID: protocol.NewID(), Block: 1000, Weight: 3, NoMessages: true, Keep: time.Minute},
		Origin: "n3123:pchannel", Token: 1<<53 - 1, GrantToken: 12, Lasts: time.Minute,
	}
	two := one
	two.Spec.Name, two.Spec.Kind, two.Ticket.NoMessages = strings.Repeat("x", maxText), protocol.Mutex, false
	return []engine.Detached{one, two}
}

func TestTicketTextKeepsEveryField(t *testing.T) {
	for n := 1; n <= 2; n++ {
		holds := someHolds()[:n]
		text := encodeTicket(ticketOfHold, holds)
		if strings.ContainsAny(string(text), " \n\r\t") {
			t.Errorf("%q", text)
		}
		_, read, err := decodeTicket(text)
		if err != nil || !reflect.DeepEqual(read, holds) {
			t.Errorf("%v\n%+v\n%+v", err, read, holds)
		}
	}
}

// A ticket that was cut, or in which one character was changed, is none.
func TestTicketTextCutOrChanged(t *testing.T) {
	text := string(encodeTicket(ticketOfHold, someHolds()[:1]))
	for i := range text {
		if _, _, err := decodeTicket(Ticket(text[:i])); err == nil {
			t.Errorf("cut at %d it is a ticket", i)
		}
		changed := []byte(text)
		if changed[i]++; strings.ContainsRune("0123456789", rune(text[i])) && i < len(ticketMark)+1 {
			continue // another format
		}
		if _, _, err := decodeTicket(Ticket(changed)); err == nil {
			t.Errorf("changed at %d it is a ticket", i)
		}
	}
	for _, bad := range []string{"", "x", text + "A", text + "\n", " " + text, ticketMark + ".", ticketMark + ticketFormat + ".", ticketMark + "1x." + text[18:]} {
		if _, _, err := decodeTicket(Ticket(bad)); !errors.Is(err, errNoTicket) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func TestTicketTextOfAnotherFormat(t *testing.T) {
	for _, format := range []string{"1", "12"} { // the one before, and a later one
		for _, of := range []byte{ticketOfHold, ticketOfPlace} {
			text := ticketMark + format + strings.TrimPrefix(string(encodeTicket(of, someHolds()[:1])), ticketMark+ticketFormat)
			_, _, err := decodeTicket(Ticket(text))
			var refused *TicketError
			if !errors.As(err, &refused) || refused.Reason != TicketFormat || !errors.Is(err, ErrTicket) {
				t.Errorf("format %s, %c: %v", format, of, err)
			}
		}
	}
}

// Values that no lock of this library has are refused, although the checksum is right.
func TestTicketTextOfNoLock(t *testing.T) {
	for name, change := range map[string]func(d *engine.Detached){
		"no name":     func(d *engine.Detached) { d.Spec.Name = "" },
		"long name":   func(d *engine.Detached) { d.Spec.Name = strings.Repeat("x", maxText+1) },
		"a latch":     func(d *engine.Detached) { d.Spec.Kind = protocol.Latch },
		"no id":       func(d *engine.Detached) { d.Ticket.ID = "" },
		"no block":    func(d *engine.Detached) { d.Ticket.Block = 0 },
		"no TTL":      func(d *engine.Detached) { d.Options.TTL = 0 },
		"long TTL":    func(d *engine.Detached) { d.Options.TTL = maxMaxTTL + 1 },
		"large token": func(d *engine.Detached) { d.Token = 1 << 53 },
		"short keep":  func(d *engine.Detached) { d.Ticket.Keep = time.Millisecond },
		"negative":    func(d *engine.Detached) { d.Lasts = -1 },

		"long min hold":         func(d *engine.Detached) { d.Options.MinHold = maxMaxTTL + 1 },
		"short max hold":        func(d *engine.Detached) { d.Options.MaxHold = minTTL - 1 },
		"large block":           func(d *engine.Detached) { d.Ticket.Block = 1 << 53 },
		"long owner":            func(d *engine.Detached) { d.Spec.Owner = strings.Repeat("x", maxText+1) },
		"long label":            func(d *engine.Detached) { d.Spec.Label = strings.Repeat("x", maxText+1) },
		"token before the hold": func(d *engine.Detached) { d.GrantToken = d.Token + 1 },
	} {
		holds := someHolds()[:1]
		change(&holds[0])
		if _, _, err := decodeTicket(encodeTicket(ticketOfHold, holds)); !errors.Is(err, errNoTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The ticket of a place is of one place, which is kept, and has no times of its own.
func TestTicketTextOfAPlace(t *testing.T) {
	place := someHolds()[:1]
	place[0].Options = engine.Options{TTL: time.Minute}
	text := encodeTicket(ticketOfPlace, place)
	if of, read, err := decodeTicket(text); err != nil || of != ticketOfPlace || !reflect.DeepEqual(read, place) {
		t.Errorf("%v\n%+v\n%+v", err, read, place)
	}
	forgetful := []engine.Detached{place[0]}
	forgetful[0].Ticket.Keep = 0
	for name, err := range map[string]error{
		"of neither": third(decodeTicket(encodeTicket('x', place))),
		"two":        third(decodeTicket(encodeTicket(ticketOfPlace, someHolds()))),
		"not kept":   third(decodeTicket(encodeTicket(ticketOfPlace, forgetful))),
	} {
		if !errors.Is(err, errNoTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(o *engine.Options){
		"min hold": func(o *engine.Options) { o.MinHold = time.Second },
		"max hold": func(o *engine.Options) { o.MaxHold = time.Minute },
		"fixed":    func(o *engine.Options) { o.Fixed = true },
	} {
		own := []engine.Detached{place[0]}
		change(&own[0].Options)
		if _, _, err := decodeTicket(encodeTicket(ticketOfPlace, own)); !errors.Is(err, errNoTicket) {
			t.Errorf("a place with %s: %v", name, err)
		}
	}
}

func third(_ byte, _ []engine.Detached, err error) error { return err }

// FuzzTicketText: no text makes it panic, and a text that is a ticket is the only one of its holds.
func FuzzTicketText(f *testing.F) {
	f.Add(string(encodeTicket(ticketOfHold, someHolds())))
	f.Add(ticketMark + ticketFormat + ".")
	f.Fuzz(func(t *testing.T, text string) {
		if of, holds, err := decodeTicket(Ticket(text)); err == nil && encodeTicket(of, holds) != Ticket(text) {
			t.Errorf("%q", text)
		}
	})
}
