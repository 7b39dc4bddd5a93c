package ticketcode

import (
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/engine"
	"github.com/holdfast-go/holdfast/internal/limits"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
)

func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// someHolds are holds in which no field is zero that may be set.
func someHolds() []engine.Detached {
	one := engine.Detached{
		Prefix: "p\n",
		Spec: protocol.Spec{Name: "n\x00 \xff", Kind: protocol.Semaphore, Owner: "o", Label: "l\n", Shared: true,
			Permits: 7},
		Options: engine.Options{
			TTL: 15 * time.Second, MinHold: time.Nanosecond, MaxHold: time.Hour, Fixed: true,
		},
		Ticket: protocol.Ticket{ID: protocol.NewID(), Block: 1000, Weight: 3, NoMessages: true, Keep: time.Minute},
		Origin: "n3123:pchannel", Token: 1<<53 - 1, GrantToken: 12, Lasts: time.Minute,
	}
	two := one
	two.Spec.Name, two.Spec.Kind, two.Ticket.NoMessages = strings.Repeat("x", limits.MaxText), protocol.Mutex, false
	return []engine.Detached{one, two}
}

func TestTicketTextKeepsEveryField(t *testing.T) {
	for n := 1; n <= 2; n++ {
		holds := someHolds()[:n]
		text := Encode(Hold, holds)
		if strings.ContainsAny(text, " \n\r\t") {
			t.Errorf("%q", text)
		}
		_, read, err := Decode(text)
		if err != nil || !reflect.DeepEqual(read, holds) {
			t.Errorf("%v\n%+v\n%+v", err, read, holds)
		}
	}
}

// A ticket that was cut, or in which one character was changed, is none.
func TestTicketTextCutOrChanged(t *testing.T) {
	text := Encode(Hold, someHolds()[:1])
	for i := range text {
		if _, _, err := Decode(text[:i]); err == nil {
			t.Errorf("cut at %d it is a ticket", i)
		}
		changed := []byte(text)
		if changed[i]++; strings.ContainsRune("0123456789", rune(text[i])) && i < len(mark)+1 {
			continue // another format
		}
		if _, _, err := Decode(string(changed)); err == nil {
			t.Errorf("changed at %d it is a ticket", i)
		}
	}
	for _, bad := range []string{
		"", "x", text + "A", text + "\n", " " + text, mark + ".", mark + format + ".", mark + "1x." + text[18:]} {
		if _, _, err := Decode(bad); !errors.Is(err, ErrNoTicket) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}

func TestTicketTextOfAnotherFormat(t *testing.T) {
	for _, other := range []string{"1", "12"} { // the one before, and a later one
		for _, kind := range []Kind{Hold, Place} {
			text := mark + other + strings.TrimPrefix(Encode(kind, someHolds()[:1]), mark+format)
			_, _, err := Decode(text)
			if !errors.Is(err, ErrFormat) {
				t.Errorf("format %s, %c: %v", other, kind, err)
			}
		}
	}
}

// Values that no lock of this library has are refused, although the checksum is right.
func TestTicketTextOfNoLock(t *testing.T) {
	for name, change := range map[string]func(d *engine.Detached){
		"no name":     func(d *engine.Detached) { d.Spec.Name = "" },
		"long name":   func(d *engine.Detached) { d.Spec.Name = strings.Repeat("x", limits.MaxText+1) },
		"a latch":     func(d *engine.Detached) { d.Spec.Kind = protocol.Latch },
		"no id":       func(d *engine.Detached) { d.Ticket.ID = "" },
		"no block":    func(d *engine.Detached) { d.Ticket.Block = 0 },
		"no TTL":      func(d *engine.Detached) { d.Options.TTL = 0 },
		"long TTL":    func(d *engine.Detached) { d.Options.TTL = limits.MaxTTL + 1 },
		"large token": func(d *engine.Detached) { d.Token = 1 << 53 },
		"short keep":  func(d *engine.Detached) { d.Ticket.Keep = time.Millisecond },
		"negative":    func(d *engine.Detached) { d.Lasts = -1 },

		"long min hold":         func(d *engine.Detached) { d.Options.MinHold = limits.MaxTTL + 1 },
		"short max hold":        func(d *engine.Detached) { d.Options.MaxHold = limits.MinTTL - 1 },
		"large block":           func(d *engine.Detached) { d.Ticket.Block = 1 << 53 },
		"long owner":            func(d *engine.Detached) { d.Spec.Owner = strings.Repeat("x", limits.MaxText+1) },
		"long label":            func(d *engine.Detached) { d.Spec.Label = strings.Repeat("x", limits.MaxText+1) },
		"token before the hold": func(d *engine.Detached) { d.GrantToken = d.Token + 1 },
	} {
		holds := someHolds()[:1]
		change(&holds[0])
		if _, _, err := Decode(Encode(Hold, holds)); !errors.Is(err, ErrNoTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The ticket of a place is of one place, which is kept, and has no times of its own.
func TestTicketTextOfAPlace(t *testing.T) {
	place := someHolds()[:1]
	place[0].Options = engine.Options{TTL: time.Minute}
	text := Encode(Place, place)
	if of, read, err := Decode(text); err != nil || of != Place || !reflect.DeepEqual(read, place) {
		t.Errorf("%v\n%+v\n%+v", err, read, place)
	}
	changed := func(change func(d *engine.Detached)) string {
		own := []engine.Detached{place[0]}
		change(&own[0])
		return Encode(Place, own)
	}
	for name, text := range map[string]string{
		"of neither": Encode('x', place),
		"two":        Encode(Place, someHolds()),
		"not kept":   changed(func(d *engine.Detached) { d.Ticket.Keep = 0 }),
		"min hold":   changed(func(d *engine.Detached) { d.Options.MinHold = time.Second }),
		"max hold":   changed(func(d *engine.Detached) { d.Options.MaxHold = time.Minute }),
		"fixed":      changed(func(d *engine.Detached) { d.Options.Fixed = true }),
	} {
		if _, _, err := Decode(text); !errors.Is(err, ErrNoTicket) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzTicketText: no text makes it panic, and a text that is a ticket is the only one of its holds.
func FuzzTicketText(f *testing.F) {
	f.Add(Encode(Hold, someHolds()))
	f.Add(mark + format + ".")
	f.Fuzz(func(t *testing.T, text string) {
		if of, holds, err := Decode(text); err == nil && Encode(of, holds) != text {
			t.Errorf("%q", text)
		}
	})
}
