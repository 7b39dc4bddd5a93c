package quorum

import (
	"cmp"
	"maps"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// renews renews a hold at the master alone.
func (h *half) renews(t *testing.T, n int, ttl time.Duration) *renewalReply {
	t.Helper()
	all := &renewalRound{p: h.p, deadline: time.Now().Add(enough),
		renewals: []protocol.Renewal{{Resource: h.r, Ticket: ask(n).Ticket, Token: h.token, TTL: ttl}}}
	a := all.ask(h.n)
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}

// The remainder of a hold at a master is no hold: no request of the former holder, late or twice,
// makes it one, prolongs it or leaves a place; nor does a late give-back of an earlier round end
// it, nor the release of the caller that took over.
func TestRemainderIsNoHold(t *testing.T) {
	refused := func(t *testing.T, a *reply) {
		t.Helper()
		if a.status != 'B' {
			t.Errorf("got %q, want busy", a.status)
		}
	}
	requests := map[string]func(t *testing.T, h *half){
		"ask":              func(t *testing.T, h *half) { refused(t, h.asks(t, h.r, 1, nil)) },
		"ask to wait":      func(t *testing.T, h *half) { refused(t, h.asks(t, h.r, 1, func(t *acquisition) { t.ask.Join = true })) },
		"repair":           func(t *testing.T, h *half) { refused(t, h.asks(t, h.r, 1, func(t *acquisition) { t.repair = true })) },
		"resume by itself": func(t *testing.T, h *half) { refused(t, h.asks(t, h.r, 1, takesOver("o", h.token))) },
		"resume":           func(t *testing.T, h *half) { refused(t, h.asks(t, h.r, 3, takesOver("o", h.token))) },
		"ask that gives another hold back": func(t *testing.T, h *half) {
			refused(t, h.asks(t, h.r, 1, func(t *acquisition) { t.ask.Release = &protocol.Ticket{ID: id(9), Block: 1} }))
		},
		"renewal": func(t *testing.T, h *half) {
			for _, ttl := range []time.Duration{0, time.Hour} {
				if a := h.renews(t, 1, ttl); a.text != "R" || a.by[0].label != "of o" {
					t.Errorf("for %v: %q by %v", ttl, a.text, a.by)
				}
			}
		},
		"downgrade": func(t *testing.T, h *half) {
			asked := ask(1)
			if a := h.r.downgradeAt(h.n, &asked); a.status != 'R' || a.by.label != "of o" {
				t.Errorf("got %+v", a)
			}
		},
		"look": func(t *testing.T, h *half) {
			s := h.r.lookAt(h.n, "", time.Now().Add(enough))
			want := nameHeld
			if value(t, h.server, 2) == "" {
				want = nameRemaindersOnly
			}
			if s.err != nil || s.Holders != 1 || s.state != want || want != nameHeld && (s.id != "" || s.Token != 0 || s.Holder != protocol.Party{}) {
				t.Errorf("got %+v", s)
			}
		},
		"give-back of an earlier round": func(t *testing.T, h *half) {
			for _, how := range []byte("quw") {
				if was, _ := h.frees(t, 1, how, 5, 0); was != '0' {
					t.Errorf("%c: got %c", how, was)
				}
			}
		},
		"waits no more": func(t *testing.T, h *half) {
			if was, _ := h.frees(t, 1, 'p', endless, 0); was != '0' {
				t.Errorf("got %c", was)
			}
		},
		"release of what took over": func(t *testing.T, h *half) { h.frees(t, 2, 'f', endless, 0) },
	}
	for what, request := range requests {
		for _, gone := range []bool{false, true} {
			name := what
			if gone {
				name += ", and the resumer has given back"
			}
			t.Run(name, func(t *testing.T) {
				h := halfResumed(t, time.Minute, time.Minute)
				if gone {
					h.frees(t, 2, 'f', endless, 0)
				}
				before := h.remainder(t)
				for range 2 {
					request(t, h)
				}
				if after := h.remainder(t); after != before || before == "" {
					t.Errorf("the remainder is %q, was %q", after, before)
				}
				if value(t, h.server, 1) != "" || value(t, h.server, 3) != "" {
					t.Errorf("a hold came back: %q", h.all(t))
				}
				if places := do(t, h.server, "EXISTS", "q:{%quorum}+x"); places != int64(0) {
					t.Error("it left a place")
				}
			})
		}
	}
}

// A remainder excludes as the hold did, but not the caller that took over. No caller enters it;
// beside a hold of its owner it does where all that is left of others is of that owner too.
func TestRemainderExcludes(t *testing.T) {
	for _, c := range []struct {
		name               string
		former, next, asks string // owners
		gone               bool   // the caller that took over has given back
		enters             bool
	}{
		{"another", "", "", "", false, false},
		{"another, where it alone is left", "", "", "", true, false},
		{"an owner, where it alone is left", "o", "o", "o", true, false},
		{"another owner, where it alone is left", "o", "o", "p", true, false},
		{"its owner, beside the next hold", "o", "o", "o", false, true},
		{"another owner, beside the next hold", "o", "o", "p", false, false},
		{"the next owner, beside what is left of another's", "o", "p", "p", false, false},
		{"the next owner, beside what is left of nobody's", "", "p", "p", false, false},
		{"the former owner", "o", "p", "o", false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := halfResumedBy(t, c.former, c.next, time.Minute, 3*time.Minute)
			if c.gone {
				h.frees(t, 2, 'f', endless, 0)
			}
			a := h.asks(t, h.of(c.asks), 3, nil)
			if a.won() != c.enters {
				t.Fatalf("got %c, want to enter: %v", a.status, c.enters)
			}
			if !c.enters && c.gone && (a.party != protocol.Party{} || !onlyRemainders(a.holder) || a.token != 0) {
				t.Errorf("held by %+v, %q, token %d", a.party, a.holder, a.token)
			}
			if !c.enters && !c.gone && (a.party.Label != "of "+c.next || a.holder != id(2) || a.token != h.next) {
				t.Errorf("held by %+v, %q, token %d, want %d", a.party, a.holder, a.token, h.next)
			}
			least := 30 * time.Second // of the remainder
			if !c.gone && c.asks != c.next || c.next == "" && !c.gone {
				least = 2 * time.Minute // of the hold
			}
			if !c.enters && (a.holders != 1 || a.remaining < least || a.remaining > 2*least) {
				t.Errorf("%d hold for %v, want %v or more", a.holders, a.remaining, least)
			}
			if h.frees(t, 1, 'f', endless, 0); c.enters {
				return
			}
			if a := h.asks(t, h.of(c.asks), 3, nil); a.won() != (c.gone || c.asks != "" && c.asks == c.next) {
				t.Errorf("once its former holder has stopped: got %c", a.status)
			}
		})
	}
}

// A remainder does not keep out the caller that took over, nor the next that takes over from it. A
// Resume that is undone leaves the hold as it was.
func TestRemainderGoesOn(t *testing.T) {
	t.Run("of an owner", func(t *testing.T) { remainderGoesOn(t, "o") })
	t.Run("of nobody", func(t *testing.T) { remainderGoesOn(t, "") })
}

func remainderGoesOn(t *testing.T, owner string) {
	h := halfResumedBy(t, owner, owner, time.Minute, time.Minute)
	r := h.of(owner)
	states := []map[string]string{h.all(t)}
	for n := 3; n < 6; n++ {
		token, _ := wire.Number(value(t, h.server, n-1)[16:32])
		for range 2 { // and a replay
			if a := h.asks(t, r, n, takesOver(cmp.Or(owner, string(id(n-1))), token)); !a.won() {
				t.Fatalf("%d takes over: %c", n, a.status)
			}
		}
		before := value(t, h.server, n)
		do(t, h.server, "HDEL", "q:{%quorum}:x", string(id(n)))
		if a := h.asks(t, r, n, func(t *acquisition) { t.repair = true }); !a.won() {
			t.Errorf("%d is set again: %c", n, a.status)
		}
		do(t, h.server, "HSET", "q:{%quorum}:x", string(id(n)), before)
		states = append(states, h.all(t))
	}
	if len(states[3]) != 5 {
		t.Errorf("got %q, want a hold and four remainders", states[3])
	}
	for n := 5; n >= 2; n-- {
		if got := h.all(t); !maps.Equal(got, states[n-2]) {
			t.Errorf("got %q, want %q", got, states[n-2])
		}
		h.frees(t, n, 'u', int64(n), 0)
	}
	if got := h.all(t); len(got) != 1 || got[string(id(1))] != h.held {
		t.Errorf("got %q, want %q", got, h.held)
	}
}

// A hold that was taken over twice does not come back to the first holder when the hold in between
// was released.
func TestRemainderDoesNotComeBackToAnother(t *testing.T) {
	h := halfResumed(t, time.Minute, time.Minute)
	if a := h.asks(t, h.r, 3, takesOver("o", h.next)); !a.won() {
		t.Fatalf("got %c", a.status)
	}
	h.frees(t, 2, 'f', endless, 0)
	h.frees(t, 3, 'u', 3, 0)
	if got := h.all(t); len(got) != 1 || h.remainder(t) == "" {
		t.Errorf("got %q, want a remainder", got)
	}
}

// A hold that was released while another had taken it over does not come back when that is undone:
// what its min hold leaves stays a remainder.
func TestRemainderOfAMinHoldDoesNotComeBack(t *testing.T) {
	for _, twice := range []bool{false, true} {
		h := halfResumed(t, time.Minute, time.Minute)
		last := 2
		if twice {
			if last = 3; !h.asks(t, h.r, 3, takesOver("o", h.next)).won() {
				t.Fatal("not taken over")
			}
		}
		h.frees(t, 1, 'f', endless, 30*time.Second)
		for n := last; n >= 2; n-- {
			h.frees(t, n, 'u', endless, 0)
		}
		if got := h.all(t); len(got) != 1 || h.remainder(t) == "" {
			t.Errorf("got %q, want a remainder", got)
		}
		if a := h.asks(t, h.of("o"), 4, nil); a.won() {
			t.Error("entered")
		}
	}
}

// The remainder of a min hold belongs to its owner: beside another hold of that owner the owner
// enters, and beside what is left alone nobody does.
func TestMinHoldOfAnOwner(t *testing.T) {
	for _, other := range []string{"o", "p"} {
		h := halfResumed(t, time.Minute, time.Minute)
		h.undo(t)
		if !h.asks(t, h.of("o"), 3, nil).won() {
			t.Fatal("not beside its owner")
		}
		h.frees(t, 1, 'f', endless, 30*time.Second)
		if a := h.asks(t, h.of(other), 4, nil); a.won() != (other == "o") {
			t.Errorf("%q, beside a hold of \"o\": %c", other, a.status)
		}
		h.frees(t, 3, 'f', endless, 10*time.Second)
		h.frees(t, 4, 'f', endless, 0)
		if a := h.asks(t, h.of(other), 4, nil); a.won() || !onlyRemainders(a.holder) || a.remaining < 15*time.Second {
			t.Errorf("%q, beside what is left: %+v", other, a)
		}
	}
}

// A late undoing of an earlier try leaves what was agreed on since.
func TestRemainderStaysWithALaterRound(t *testing.T) {
	h := halfResumed(t, time.Minute, time.Minute)
	h.asks(t, h.r, 2, takesOver("o", h.token)) // round 2
	before := h.all(t)
	if h.undo(t); !maps.Equal(h.all(t), before) {
		t.Errorf("got %q, was %q", h.all(t), before)
	}
	h.frees(t, 2, 'f', endless, 0)
	if h.frees(t, 2, 'u', 2, 0); len(h.all(t)) != 1 || h.remainder(t) == "" {
		t.Errorf("got %q, want a remainder", h.all(t))
	}
}

// A caller that takes over from one of several holds of an owner has the others against it, and
// what remains of them.
func TestResumeBesideARemainder(t *testing.T) {
	for owner, enters := range map[string]bool{"o": true, "p": false, "": false} {
		t.Run(owner, func(t *testing.T) {
			h := halfResumed(t, time.Minute, time.Minute)
			beside := h.asks(t, h.of("o"), 3, nil)
			if !beside.won() {
				t.Fatalf("beside its owner: %c", beside.status)
			}
			if a := h.asks(t, h.of(owner), 4, takesOver("o", beside.first)); a.won() != enters {
				t.Errorf("beside another hold: %c", a.status)
			}
			h.frees(t, 4, 'u', endless, 0)
			h.frees(t, 2, 'f', endless, 0)
			if a := h.asks(t, h.of(owner), 4, takesOver("o", beside.first)); a.won() != enters {
				t.Errorf("beside what remains of another hold: %c", a.status)
			}
			h.frees(t, 4, 'u', endless, 0)
			h.frees(t, 1, 'f', endless, 0)
			if a := h.asks(t, h.of(owner), 4, takesOver("o", beside.first)); !a.won() {
				t.Errorf("alone: %c", a.status)
			}
		})
	}
}

// The former holder's release ends the remainder, at the end of its min hold if that is sooner; a
// replay finds what the first left.
func TestRemainderIsGivenBack(t *testing.T) {
	t.Run("at once", func(t *testing.T) {
		h := halfResumed(t, time.Minute, time.Minute)
		if was, by := h.frees(t, 1, 'f', endless, 0); was != 'R' || by != "of o" {
			t.Errorf("got %c by %q", was, by)
		}
		if was, _ := h.frees(t, 1, 'f', endless, 0); was != '0' || len(h.all(t)) != 1 || value(t, h.server, 2) == "" {
			t.Errorf("replay: %c, %q", was, h.all(t))
		}
	})
	t.Run("after a min hold", func(t *testing.T) {
		h := halfResumed(t, time.Minute, time.Minute)
		before := end(t, h.remainder(t))
		var ends []int64
		for _, keep := range []time.Duration{30 * time.Second, 30 * time.Second, time.Hour} {
			if was, by := h.frees(t, 1, 'f', endless, keep); was != 'R' || by != "of o" {
				t.Errorf("got %c by %q", was, by)
			}
			ends = append(ends, end(t, h.remainder(t)))
		}
		if ends[0] >= before || ends[0] < before-35_000 || ends[1] != ends[0] && ends[1] > ends[0] || ends[2] != ends[1] {
			t.Errorf("it ends at %d, was %d", ends, before)
		}
		if a := h.renews(t, 1, time.Hour); a.text != "R" {
			t.Errorf("renewed: %q", a.text)
		}
		h.frees(t, 2, 'f', endless, 0)
		if a := h.asks(t, h.of("p"), 3, nil); a.won() || a.remaining > 30*time.Second {
			t.Errorf("got %c for %v", a.status, a.remaining)
		}
	})
	t.Run("with the next ask", func(t *testing.T) {
		h := halfResumed(t, time.Minute, time.Minute)
		h.frees(t, 2, 'f', endless, 0)
		for range 2 {
			a := h.asks(t, h.r, 3, func(t *acquisition) { t.ask.Release = &protocol.Ticket{ID: id(1), Block: 1} })
			if !a.won() || len(h.all(t)) != 1 {
				t.Errorf("got %c, %q", a.status, h.all(t))
			}
		}
	})
	t.Run("as a try that failed", func(t *testing.T) {
		h := halfResumed(t, time.Minute, time.Minute)
		if was, _ := h.frees(t, 1, 'q', endless, 0); was != '0' || h.remainder(t) != "" {
			t.Errorf("got %c, %q", was, h.all(t))
		}
	})
	t.Run("by itself", func(t *testing.T) {
		h := halfResumed(t, 2*time.Second, time.Minute)
		h.frees(t, 2, 'f', endless, 0)
		eventually(t, "nothing is left", func() bool { return do(t, h.server, "EXISTS", "q:{%quorum}:x") == int64(0) })
	})
}

// Any bytes in labels and owners leave all that is written readable.
func TestRemainderOfAnyName(t *testing.T) {
	for _, odd := range []string{"a:1:b", "why:1:k", "0:0:0:", "\x00\n\r\n%d}", "\xff\xfe", "to:23:" + string(id(2)) + "0"} {
		h := halfResumedBy(t, odd, odd, time.Minute, time.Minute)
		if a := h.renews(t, 1, time.Second); a.text != "R" || a.by[0].label != "of "+odd {
			t.Errorf("%q: got %q by %v", odd, a.text, a.by)
		}
		if a := h.asks(t, h.of("p"), 3, nil); a.party != (protocol.Party{Owner: odd, Label: "of " + odd}) {
			t.Errorf("%q: held by %+v", odd, a.party)
		}
		h.undo(t)
		if got := h.all(t); len(got) != 1 || got[string(id(1))] != h.held {
			t.Errorf("%q: got %q, want %q", odd, got, h.held)
		}
	}
}

// A repair of tokens that is on its way while the hold is taken over sets nothing.
func TestRemainderIsNotRepaired(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	spec := protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: "o", Life: time.Minute} // its holds do not exclude each other
	r := p.Bind(spec)
	held := hold(t, r, servers, 1)
	text := value(t, servers[0], 1)
	do(t, servers[0], "HSET", "q:{%quorum}:x", string(id(1)), text[:16]+wire.Digits16(5)+wire.Digits16(5)+text[48:])
	late := newOnce()
	all[0].set(func(op string) error {
		if op == "ask" {
			late.wait()
		}
		return nil
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute})
	}()
	<-late.came
	other := client(t, servers, true, id(7))
	takes := &acquisition{r: other.Bind(spec).(*resource), ask: ask(2), owner: "o", token: wire.Digits16(5), outcome: newOutcome()}
	if a := takes.askAt(other.nodes[0], 1, held.Token+1); !a.won() {
		t.Errorf("resume at one master: %+v", a)
	}
	close(late.goes)
	<-done
	for range 2 { // and at once, where the master says what became of the hold
		if knows(t, servers[0], 1) || !knows(t, servers[0], 2) || fields(t, servers[0])["-"+string(id(1))] == "" {
			t.Errorf("got %q", fields(t, servers[0]))
		}
		renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute})
	}
}
