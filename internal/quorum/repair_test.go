package quorum

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// The next renewal tells a master all that it missed of a hold: the hold, its tokens, that it
// shares by now; and never for longer than it may last, nor for shorter.
func TestRenewalRepairs(t *testing.T) {
	const far = 10 * time.Minute
	gone := func(t *testing.T, s wire.Store, _ string) { do(t, s, "DEL", "q:{%quorum}:x") }
	refused := func(t *testing.T, s wire.Store, text string) {
		put(t, 1, text[:16]+strings.Repeat("0", 32)+text[48:], s)
	}
	ceiling := func(p *Protocol, r *protocol.Renewal) { r.Ceiling = p.micros(time.Now().Add(30*time.Second + enough)) }
	for _, c := range []struct {
		name   string
		missed func(t *testing.T, s wire.Store, text string)
		change func(p *Protocol, r *protocol.Renewal)
		ends   time.Duration // from now, at most some seconds less
	}{
		{"the hold", gone, nil, time.Minute},
		{"its tokens", refused, nil, time.Minute},
		{"other tokens", func(t *testing.T, s wire.Store, text string) {
			put(t, 1, text[:16]+strings.Repeat(wire.Digits16(5), 2)+text[48:], s)
		}, nil, time.Minute},
		{"that it shares", func(t *testing.T, s wire.Store, text string) { put(t, 1, text[:2]+"x"+text[3:], s) }, nil,
			time.Minute},
		{"the rest of a min hold", gone,
			func(p *Protocol, r *protocol.Renewal) { r.Floor = p.micros(time.Now().Add(far)) }, far},
		{"the end of a max hold", gone, ceiling, 30 * time.Second},
		// even a late one ends before a max hold does, and it takes nothing from what is confirmed
		{"its tokens, before the end of a max hold", refused, ceiling, 30*time.Second + enough},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, p := startClient(t)
			r := readerOf(p, "")
			held := hold(t, r, servers, 1)
			c.missed(t, servers[0], value(t, servers[1], 1))
			renewal := renewalOf(r, 1, held.Token)
			if c.change != nil {
				c.change(p, &renewal)
			}
			renew(t, p, renewal)
			got, want := value(t, servers[0], 1), value(t, servers[1], 1)
			if got == "" || got[:3] != "3rs" || got[16:48] != strings.Repeat(wire.Digits16(held.Token), 2) ||
				got[16:48] != want[16:48] {
				t.Fatalf("got %q, want %q", got, want)
			}
			if left := time.Until(time.UnixMilli(end(t, got))); left > c.ends || left < c.ends-8*time.Second {
				t.Errorf("for another %v, want %v", left, c.ends)
			}
		})
	}
}

// A repair takes nothing from another.
func TestRepairBesideAnotherHoldSetsNothing(t *testing.T) {
	servers, p := startClient(t)
	r := mutexOf(p)
	held := hold(t, r, servers, 1)
	do(t, servers[0], "DEL", "q:{%quorum}:x")
	put(t, 9, holdValue("3mx", 7, 7), servers[0])
	renew(t, p, renewalOf(r, 1, held.Token))
	if knows(t, servers[0], 1) || !knows(t, servers[0], 9) {
		t.Error("another held there")
	}
}

// A renewal whose last answer comes after the hold went on to the next goroutine sets nothing
// again, also when that has given back what it had.
func TestRepairAfterGiveBackSetsNothing(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *resource){
		"yielded": func(t *testing.T, r *resource) {
			want(t, "the next hold", mustAsk(t, r, yield(2, 1)), protocol.Held)
			free(t, r, 2)
		},
		"released": func(t *testing.T, r *resource) { free(t, r, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			servers, all, p := startGated(t)
			r := mutexOf(p)
			held := hold(t, r, servers, 1)
			do(t, servers[2], "DEL", "q:{%quorum}:x")
			late := newOnce()
			all[2].set(late.holdUp("renew"))
			if renewed := renewOnce(t, p, renewalOf(r, 1, held.Token)); !renewed.Held || renewed.Err != nil {
				t.Errorf("renewed: %+v", renewed)
			}
			<-late.came
			over(t, r)
			untilFree(t, servers, 1)
			untilFree(t, servers, 2)
			close(late.goes)
			waitQuiet(t, p)
			for i, s := range servers {
				if knows(t, s, 1) {
					t.Errorf("master %d keeps what was given back", i+1)
				}
			}
		})
	}
}
