package quorum

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// hears opens a subscription at all masters.
func hears(t *testing.T, servers []wire.Store, p *Protocol) *nudges {
	t.Helper()
	heard := &nudges{}
	listening, err := p.Listen(t.Context(), heard)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listening.Close)
	heardAt(t, servers, p)
	return heard
}

// A process that listens is told that its hold was broken: when a majority says so, and once more,
// as what came meanwhile may have told it nothing. A holder that cannot hear is told nothing.
func TestHolderIsToldOfABreak(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(7))
	deaf := ask(3)
	deaf.Ticket.NoMessages = true
	quietly := p.Bind(protocol.Spec{Name: "y", Kind: protocol.Mutex, Life: time.Minute})
	silent, err := quietly.Ask(t.Context(), deaf)
	if err != nil {
		t.Fatal(err)
	}
	held := hold(t, mutexOf(p), servers, 1)
	heard := hears(t, servers, p)
	for name, token := range map[string]int64{"x": held.Token, "y": silent.Token} {
		if done, err := other.Break(t.Context(), name, breaks(token)); !done || err != nil {
			t.Fatal(name, done, err)
		}
	}
	eventually(t, "it is told twice", func() bool { return heard.breaks(id(1)) >= 2 })
	if heard.breaks(id(3)) != 0 {
		t.Errorf("told: %q", heard.broken)
	}
}

// The word of a minority is told too, as the messages of others may be lost.
func TestHolderIsToldByOne(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(7))
	held := hold(t, mutexOf(p), servers, 1)
	heard := hears(t, servers, p)
	at := 0 // a master that has not refused the token
	for !strings.Contains(value(t, servers[at], 1), wire.Digits16(held.Token)) {
		at++
	}
	if a := mutexOf(other).(*resource).breakAt(other.nodes[at], id(8), breaks(held.Token), time.Now().Add(enough)); a.err != nil {
		t.Fatal(a.err)
	}
	eventually(t, "it is told", func() bool { return heard.breaks(id(1)) == 1 })
	renew(t, p, protocol.Renewal{Resource: mutexOf(p), Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute})
	if fields(t, servers[at])["-"+string(id(1))] == "" {
		t.Error("a message has ended the remainder")
	}
}

// A message that is none of ours, or of another format, tells nothing.
func TestOtherMessages(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	heard := hears(t, servers, p)
	for _, text := range []string{"N" + string(id(1)) + "0", "R" + string(id(1)), "2N" + string(id(1)) + "0", "2R" + string(id(1)), "3R", "3N" + string(id(1)),
		"3N" + string(id(1)) + "-1", "3X" + string(id(1)) + "0", "4N" + string(id(1)) + "0", "3R" + string(id(1))[:21]} {
		for _, s := range servers {
			do(t, s, "PUBLISH", p.channel, text)
		}
	}
	for _, s := range servers { // each master's messages come in order
		do(t, s, "PUBLISH", p.channel, "3N"+string(id(2))+"0")
	}
	eventually(t, "the last were heard", func() bool { return heard.count(id(2)) == 3 })
	if heard.count(id(1)) != 0 || heard.breaks(id(1)) != 0 {
		t.Errorf("told: %q, %q", heard.ids, heard.broken)
	}
}

// waitsAt waits until all masters know somebody to wait.
func waitsAt(t *testing.T, servers []wire.Store, n int64) {
	t.Helper()
	for _, s := range servers {
		eventually(t, "a master knows who waits", func() bool { return do(t, s, "ZCARD", "q:{%quorum}+x") == n })
	}
}

// When a remainder alone is left, a waiter is told how long it keeps others out, and again when its
// holder has stopped before.
func TestWaiterBehindARemainder(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(7))
	heard, r := hears(t, servers, p), other.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: "o", Life: time.Minute})
	held := hold(t, r, servers, 1)
	want(t, "its owner", try(t, r, 2), protocol.Held)
	quiet(t, other)
	if done, err := doBreak(t, other, held.Token, 0); !done || err != nil {
		t.Fatal(done, err)
	}
	quiet(t, other)
	waits := ask(3)
	waits.Join = true
	answer, err := mutexOf(p).Ask(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "another", answer, protocol.Busy)
	waitsAt(t, servers, 1)
	free(t, r, 2)
	eventually(t, "it is told when the remainder is over", func() bool {
		after, ok := heard.last(id(3))
		return ok && after > 20*time.Second
	})
	quiet(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	if _, err := r.Free(ctx, protocol.Free{Ticket: ask(1).Ticket}); err == nil {
		t.Fatal("given back")
	}
	eventually(t, "it is told that the name is free", func() bool {
		after, _ := heard.last(id(3))
		return after < time.Second
	})
	want(t, "the waiter", try(t, mutexOf(p), 3), protocol.Held)
}

// The last reader tells who waits how long the min hold of another keeps it out.
func TestWaiterBehindAMinHold(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(7))
	heard, r := hears(t, servers, p), reader(other, "")
	want(t, "reader", try(t, r, 1), protocol.Held)
	want(t, "reader", try(t, r, 2), protocol.Held)
	quiet(t, other)
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	if was, err := r.Free(ctx, protocol.Free{Ticket: ask(1).Ticket, Keep: other.micros(time.Now().Add(30 * time.Second))}); !was || err != nil {
		t.Fatal(was, err)
	}
	quiet(t, other)
	waits := ask(3)
	waits.Join = true
	answer, err := writer(p, "").Ask(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	if want(t, "writer", answer, protocol.Busy); answer.Remaining > 31*time.Second || answer.Holders != 1 || answer.Holder.Owner != string(id(2)) {
		t.Errorf("got %+v", answer)
	}
	waitsAt(t, servers, 2) // and that new readers are kept out
	free(t, r, 2)
	eventually(t, "it is told when the min hold is over", func() bool {
		after, ok := heard.last(id(3))
		return ok && after > 5*time.Second && after < 31*time.Second
	})
}

// Beside its own hold an owner reads again while a writer waits, as readers that are in do; others
// wait.
func TestAnOwnerReadsAgain(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	hold(t, reader(p, "o"), servers, 1)
	hold(t, reader(p, ""), servers, 5)
	eventually(t, "both ask within half a second", func() bool {
		asked, waits := time.Now(), ask(2)
		waits.Join = true
		answer, err := writer(p, "p").Ask(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "writer", answer, protocol.Busy)
		quiet(t, p)
		others, again := try(t, reader(p, "q"), 3), try(t, reader(p, "o"), 4)
		if time.Since(asked) > 500*time.Millisecond {
			free(t, reader(p, "q"), 3)
			free(t, reader(p, "o"), 4)
			return false
		}
		want(t, "another reader", others, protocol.Busy)
		want(t, "the owner", again, protocol.Held)
		return true
	})
}
