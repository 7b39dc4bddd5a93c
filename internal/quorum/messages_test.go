package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A process that listens is told that its hold was broken: when a majority says so, and once more,
// as what came meanwhile may have told it nothing. A holder that cannot hear is told nothing.
func TestHolderOfBrokenHoldIsToldTwice(t *testing.T) {
	servers, p, other := startTwo(t)
	deaf := ask(3)
	deaf.Ticket.NoMessages = true
	silent := mustAsk(t, mutexNamed(p, "y"), deaf)
	held := hold(t, mutexOf(p), servers, 1)
	h := listen(t, servers, p)
	for name, token := range map[string]int64{"x": held.Token, "y": silent.Token} {
		if done, err := other.Break(t.Context(), name, breaks(token)); !done || err != nil {
			t.Fatal(name, done, err)
		}
	}
	until(t, "it is told twice", func() bool { _, breaks := h.of(1); return breaks >= 2 })
	if _, breaks := h.of(3); breaks != 0 {
		t.Error("told")
	}
}

// A message that is none of ours, or of another format, tells nothing.
func TestForeignMessagesAreDropped(t *testing.T) {
	servers, p := startClient(t)
	h := listen(t, servers, p)
	for _, text := range []string{"N" + string(id(1)) + "0", "R" + string(id(1)), "2N" + string(id(1)) + "0", "2R" +
		string(id(1)), "3R", "3N" + string(id(1)),
		"3N" + string(id(1)) + "-1", "3X" + string(id(1)) + "0", "4N" + string(id(1)) + "0", "3R" +
			string(id(1))[:21]} {
		doAll(t, servers, "PUBLISH", p.channel, text)
	}
	doAll(t, servers, "PUBLISH", p.channel, "3N"+string(id(2))+"0") // each master's messages come in order
	until(t, "the last were heard", func() bool { nudges, _ := h.of(2); return len(nudges) == 3 })
	if nudges, breaks := h.of(1); len(nudges) != 0 || breaks != 0 {
		t.Errorf("told: %v, %d times", nudges, breaks)
	}
}

// untilTold waits until a waiter was last told to ask after so long.
func untilTold(t *testing.T, h *heard, n int, least, most time.Duration) {
	t.Helper()
	until(t, "the waiter is told", func() bool {
		nudges, _ := h.of(n)
		return len(nudges) > 0 && nudges[len(nudges)-1] >= least && nudges[len(nudges)-1] < most
	})
}

// When a remainder alone is left, a waiter is told how long it keeps others out, and again when its
// holder has stopped before.
func TestWaiterBehindRemainderIsToldItsEnd(t *testing.T) {
	servers, p, other := startTwo(t)
	h, r := listen(t, servers, p), ownedBy(other, "o")
	held := hold(t, r, servers, 1)
	want(t, "its owner", tryAsk(t, r, 2), protocol.Held)
	waitQuiet(t, other)
	if done, err := doBreak(t, other, held.Token, 0); !done || err != nil {
		t.Fatal(done, err)
	}
	waitQuiet(t, other)
	want(t, "another", join(t, mutexOf(p), 3), protocol.Busy)
	until(t, "all masters know who waits", func() bool { return places(t, servers) == 3 })
	free(t, r, 2)
	untilTold(t, h, 3, 20*time.Second, time.Hour) // when the remainder is over
	waitQuiet(t, other)
	if _, err := freeKeeping(t, r, 1, 0); err == nil {
		t.Fatal("given back")
	}
	untilTold(t, h, 3, 0, time.Second)
	want(t, "the waiter", tryAsk(t, mutexOf(p), 3), protocol.Held)
}
