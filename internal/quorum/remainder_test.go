package quorum

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// An atOne is a hold with id 1, and one of its masters, which is asked alone from then on.
type atOne struct {
	p      *Protocol
	r      *resource
	n      *node // that master
	server master
	token  int64
	next   int64 // larger than all tokens that the master knows
	later  int64 // how many more were proposed
	held   string
}

// heldAtOne holds for an owner.
func heldAtOne(t *testing.T, owner string) *atOne {
	t.Helper()
	servers := startMasters(t)
	h := &atOne{p: newClient(t, servers, ticketID(0))}
	h.r = h.ownedBy(owner)
	held := tryAsk(t, h.r, 1)
	wantStatus(t, "hold", held, protocol.Held)
	h.token = held.Token
	until(t, "a master holds, with the token", func() bool { // one that knew of a larger token has refused it
		for i := range servers {
			h.n, h.server = h.p.nodes[i], servers[i].(master)
			if strings.Contains(storedHold(t, h.server, 1), wire.Digits16(held.Token)) {
				return true
			}
		}
		return false
	})
	waitQuiet(t, h.p)
	h.held, h.next = storedHold(t, h.server, 1), h.token+1e9
	return h
}

func (h *atOne) ownedBy(owner string) *resource {
	return h.p.bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: owner, Label: "of " + owner,
		TTL: time.Minute, Life: time.Minute})
}

// ask asks the master alone, with larger tokens than before.
func (h *atOne) ask(t *testing.T, r *resource, n int, change func(*acquisition)) *reply {
	t.Helper()
	next := &acquisition{r: r, ask: newAsk(n), outcome: newOutcome()}
	if change != nil {
		change(next)
	}
	h.later++
	a := next.askNode(h.n, int64(n), h.next+h.later)
	fatal.If(t, a.err)
	return a
}

// free gives an id back at the master alone.
func (h *atOne) free(t *testing.T, n int, how byte, round int64, keep time.Duration) (was byte, by string) {
	t.Helper()
	d := &cleanup{resource: h.r, id: ticketID(n), round: round, how: how}
	if keep > 0 {
		d.keep = time.Now().Add(keep)
	}
	was, by, err := h.n.freeHold(d, time.Now().Add(enough))
	fatal.If(t, err)
	return was, by
}

// renew renews a hold at the master alone.
func (h *atOne) renew(t *testing.T, n int, ttl time.Duration) *reply {
	t.Helper()
	all := &renewalRound{tally: tally{p: h.p}, deadline: time.Now().Add(enough),
		renewals: []protocol.Renewal{{Resource: h.r, Ticket: newAsk(n).Ticket, Token: h.token, TTL: ttl}}}
	a := all.askNode(h.n)
	fatal.If(t, a.err)
	return a
}

func (h *atOne) breakHold(t *testing.T, n int) { breakNode(t, h.r, h.n.index, n, breakOf(h.token)) }

// remainder returns what is left of the hold at the master.
func (h *atOne) remainder(t *testing.T) string {
	t.Helper()
	return h.stored(t)[brokenField(1)]
}

// stored returns what the master keeps of the name.
func (h *atOne) stored(t *testing.T) map[string]string {
	t.Helper()
	return storedFields(t, h.server)
}

// breakAtOne returns a hold of owner "o" that the master alone has made a remainder of, for the
// Break with id 7.
func breakAtOne(t *testing.T) *atOne {
	t.Helper()
	h := heldAtOne(t, "o")
	h.breakHold(t, 7)
	return h
}

// A remainder excludes as the hold did. No caller enters it; beside another hold of its owner the
// owner enters.
func TestRemainderExcludesAsHold(t *testing.T) {
	for _, c := range []struct {
		name         string
		former, asks string // owners
		beside       bool   // another hold of the owner is there
		enters       bool
	}{
		{"another", "", "", false, false},
		{"an owner, where it alone is left", "o", "o", false, false},
		{"another owner, where it alone is left", "o", "p", false, false},
		{"its owner, beside another hold", "o", "o", true, true},
		{"another owner, beside another hold", "o", "p", true, false},
		{"nobody, beside another hold", "o", "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := heldAtOne(t, c.former)
			least := 30 * time.Second // of the remainder
			var beside *reply
			if c.beside {
				beside = h.ask(t, h.ownedBy(c.former), 2, func(t *acquisition) { t.ask.TTL = 3 * time.Minute })
				least = 2 * time.Minute // of the hold
			}
			h.breakHold(t, 7)
			a := h.ask(t, h.ownedBy(c.asks), 3, nil)
			switch {
			case a.holds() != c.enters:
				t.Fatalf("got %c, want to enter: %v", a.status, c.enters)
			case c.enters:
				return
			case c.beside && (a.party.Label != "of "+c.former || a.holder != ticketID(2) || a.token != beside.first):
				t.Errorf("held by %+v, %q, token %d, want %d", a.party, a.holder, a.token, beside.first)
			case !c.beside && (a.party != protocol.Party{} || !onlyRemainders(a.holder) || a.token != 0):
				t.Errorf("held by %+v, %q, token %d", a.party, a.holder, a.token)
			case a.holders != 1 || a.remaining < least || a.remaining > 2*least:
				t.Errorf("%d hold for %v, want %v or more", a.holders, a.remaining, least)
			}
			h.free(t, 1, 'f', endless, 0)
			if a := h.ask(t, h.ownedBy(c.asks), 3, nil); a.holds() == c.beside {
				t.Errorf("once the holder has stopped: got %c", a.status)
			}
		})
	}
}

// The remainder of a min hold belongs to its owner: beside another hold of that owner the owner
// enters, and beside what is left alone nobody does.
func TestMinHoldOfOwnerLetsOwnerIn(t *testing.T) {
	for _, other := range []string{"o", "p"} {
		h := heldAtOne(t, "o")
		if !h.ask(t, h.ownedBy("o"), 3, nil).holds() {
			t.Fatal("not beside its owner")
		}
		h.free(t, 1, 'f', endless, 30*time.Second)
		if a := h.ask(t, h.ownedBy(other), 4, nil); a.holds() != (other == "o") {
			t.Errorf("%q, beside a hold of \"o\": %c", other, a.status)
		}
		h.free(t, 3, 'f', endless, 10*time.Second)
		h.free(t, 4, 'f', endless, 0)
		a := h.ask(t, h.ownedBy(other), 4, nil)
		if a.holds() || !onlyRemainders(a.holder) || a.remaining < 15*time.Second {
			t.Errorf("%q, beside what is left: %+v", other, a)
		}
	}
}

// The holder's next ask ends the remainder, and so does the release of an ask that failed. Taking
// the break back brings nothing back then.
func TestRemainderReleasedByHolderEnds(t *testing.T) {
	t.Run("with the next ask", func(t *testing.T) {
		h := breakAtOne(t)
		for range 2 {
			a := h.ask(t, h.r, 3, func(t *acquisition) { t.ask.Release = &protocol.Ticket{ID: ticketID(1), Block: 1} })
			if !a.holds() || len(h.stored(t)) != 1 {
				t.Errorf("got %c, %q", a.status, h.stored(t))
			}
		}
		if h.free(t, 7, 'b', endless, 0); len(h.stored(t)) != 1 || storedHold(t, h.server, 3) == "" {
			t.Errorf("taken back: %q", h.stored(t))
		}
	})
	t.Run("as a try that failed", func(t *testing.T) {
		h := breakAtOne(t)
		if was, _ := h.free(t, 1, 'q', endless, 0); was != '0' || h.remainder(t) != "" {
			t.Errorf("got %c, %q", was, h.stored(t))
		}
	})
}

// A repair of tokens that is on its way while the hold is broken sets nothing.
func TestRepairOfRemainderSetsNothing(t *testing.T) {
	servers, all, p := startGated(t)
	// its holds do not exclude each other
	r := ownedBy(p, "o")
	held := mustHold(t, r, servers, 1)
	text := storedHold(t, servers[0], 1)
	storeHold(t, 1, withTokens(text, 5, 5), servers[0])
	late := newOnce()
	all[0].atRequest(late.holdUp("ask"))
	done := make(chan struct{})
	go func() {
		defer close(done)
		mustRenew(t, p, renewalOf(r, 1, held.Token))
	}()
	<-late.came
	other := ownedBy(newClient(t, servers, ticketID(7)), "o")
	beside := &acquisition{r: other, ask: newAsk(2), outcome: newOutcome()}
	if a := beside.askNode(other.p.nodes[0], 1, held.Token+1); !a.holds() {
		t.Errorf("beside its owner: %+v", a)
	}
	breakNode(t, other, 0, 8, breakOf(5))
	close(late.goes)
	<-done
	for range 2 { // and at once, where the master says what became of the hold
		got := storedFields(t, servers[0])
		if got[holdField(1)] != "" || got[holdField(2)] == "" || got[brokenField(1)] == "" {
			t.Errorf("got %q", got)
		}
		mustRenew(t, p, renewalOf(r, 1, held.Token))
	}
}

// The next renewal tells a master all that it missed of a hold: the hold, its tokens, that it
// shares by now; and never for longer than it may last, nor for shorter.
func TestRenewalRepairs(t *testing.T) {
	const far = 10 * time.Minute
	gone := func(t *testing.T, s wire.Store, _ string) { command(t, s, "DEL", stateKey) }
	refused := func(t *testing.T, s wire.Store, text string) {
		storeHold(t, 1, withTokens(text, 0, 0), s)
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
			storeHold(t, 1, withTokens(text, 5, 5), s)
		}, nil, time.Minute},
		{"that it shares", func(t *testing.T, s wire.Store, text string) {
			storeHold(t, 1, text[:endAt-1]+"x"+text[endAt:], s)
		}, nil, time.Minute},
		{"the rest of a min hold", gone,
			func(p *Protocol, r *protocol.Renewal) { r.Floor = p.micros(time.Now().Add(far)) }, far},
		{"the end of a max hold", gone, ceiling, 30 * time.Second},
		// even a late one ends before a max hold does, and it takes nothing from what is confirmed
		{"its tokens, before the end of a max hold", refused, ceiling, 30*time.Second + enough},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, p := startClient(t)
			r := readerOf(p, "")
			held := mustHold(t, r, servers, 1)
			c.missed(t, servers[0], storedHold(t, servers[1], 1))
			renewal := renewalOf(r, 1, held.Token)
			if c.change != nil {
				c.change(p, &renewal)
			}
			mustRenew(t, p, renewal)
			got, want := storedHold(t, servers[0], 1), storedHold(t, servers[1], 1)
			if got == "" || got[:endAt] != "3rs" || tokensOf(got) != strings.Repeat(wire.Digits16(held.Token), 2) ||
				tokensOf(got) != tokensOf(want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			if left := time.Until(expiryOf(t, got)); left > c.ends || left < c.ends-8*time.Second {
				t.Errorf("for another %v, want %v", left, c.ends)
			}
		})
	}
}

// A repair takes nothing from another.
func TestRepairBesideAnotherHoldSetsNothing(t *testing.T) {
	servers, p := startClient(t)
	r := mutexOf(p)
	held := mustHold(t, r, servers, 1)
	command(t, servers[0], "DEL", stateKey)
	storeHold(t, 9, holdValue("3mx", 7, 7), servers[0])
	mustRenew(t, p, renewalOf(r, 1, held.Token))
	if keepsHold(t, servers[0], 1) || !keepsHold(t, servers[0], 9) {
		t.Error("another held there")
	}
}

// A renewal whose last answer comes after the hold went on to the next goroutine sets nothing
// again, also when that has given back what it had.
func TestRepairAfterGiveBackSetsNothing(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *resource){
		"yielded": func(t *testing.T, r *resource) {
			wantStatus(t, "the next hold", mustAsk(t, r, newYield(2, 1)), protocol.Held)
			mustFree(t, r, 2)
		},
		"released": func(t *testing.T, r *resource) { mustFree(t, r, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			servers, all, p := startGated(t)
			r := mutexOf(p)
			held := mustHold(t, r, servers, 1)
			command(t, servers[2], "DEL", stateKey)
			late := newOnce()
			all[2].atRequest(late.holdUp("renew"))
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
				if keepsHold(t, s, 1) {
					t.Errorf("master %d keeps what was given back", i+1)
				}
			}
		})
	}
}
