package quorum

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// countWaiters returns how many masters know that a process waits for x. A writer that waits for
// readers counts twice.
func countWaiters(t *testing.T, servers []wire.Store) int64 {
	return countAll(t, servers, "ZCARD", waitersKey)
}

// A writer that waits keeps new readers out, for half a second after each of its asks (trap 23).
func TestReaderBesideWaitingWriterIsKeptOut(t *testing.T) {
	p := newClient(t, startMasters(t), ticketID(0))
	r, w := readerOf(p, ""), writerOf(p, "")
	wantStatus(t, "reader", tryAsk(t, r, 1), protocol.Held)
	until(t, "a reader comes within half a second", func() bool {
		asked := time.Now()
		wantStatus(t, "writer", mustJoin(t, w, 2), protocol.Busy)
		answer := tryAsk(t, r, 3)
		if time.Since(asked) < 500*time.Millisecond {
			wantStatus(t, "a new reader before a writer", answer, protocol.Busy)
		}
		if answer.Status == protocol.Held {
			mustFree(t, r, 3)
		}
		return answer.Status == protocol.Busy
	})
	wantStatus(t, "the reader that is in", tryAsk(t, r, 1), protocol.Held)
	mustFree(t, r, 1)
	wantStatus(t, "writer", tryAsk(t, w, 2), protocol.Held)
}

// A writer that a minority kept out is known to wait there. Its place there goes with its hold, in
// whatever form that is given back, and keeps nobody out meanwhile.
func TestDowngradeLeavesNoPlace(t *testing.T) {
	for name, others := range map[string]bool{"a reader stays there": true, "the reader leaves": false} {
		t.Run(name, func(t *testing.T) {
			servers, p := startClient(t)
			storeHold(t, 9, holdValue("3rs", 7, 7), servers[0])
			wantStatus(t, "a majority holds for the writer", mustJoin(t, writerOf(p, ""), 1), protocol.Held)
			left := func() int64 { return countAll(t, servers[:1], "EXISTS", waitersKey) }
			until(t, "the first master knows it to wait", func() bool { return left() == 1 })
			if !others {
				command(t, servers[0], "DEL", stateKey)
			}
			down, err := readerOf(p, "").Downgrade(t.Context(), newAsk(1))
			if err != nil || down.Status != protocol.Held {
				t.Fatalf("downgrade: %+v, %v", down, err)
			}
			until(t, "the first master forgets", func() bool { return left() == 0 })
			if !mustFree(t, readerOf(p, ""), 1) {
				t.Error("there was no hold")
			}
		})
	}
}

// A release removes the place that a downgrade left at a master that it did not reach.
func TestReleaseRemovesPlaceOfWriter(t *testing.T) {
	servers, p := startClient(t)
	mustHold(t, writerOf(p, ""), servers, 1)
	command(t, servers[0], "ZADD", waitersKey, "1", "!", "2", string(ticketID(1))+"3rx"+"0:"+p.channel)
	mustFree(t, readerOf(p, ""), 1)
	until(t, "the first master forgets", func() bool { return countWaiters(t, servers) == 0 })
}

// The place of a writer that was told and does not come goes, and keeps new readers out no longer.
func TestPlaceOfWriterThatDoesNotComeEnds(t *testing.T) {
	servers, p := startClient(t)
	mustHold(t, readerOf(p, ""), servers, 1)
	wantStatus(t, "writer", mustJoin(t, writerOf(p, ""), 2), protocol.Busy)
	until(t, "the first master knows it to wait", func() bool { return countWaiters(t, servers[:1]) == 2 })
	mustFree(t, readerOf(p, ""), 1)
	until(t, "it is told, or is not there", func() bool { return countWaiters(t, servers[:1]) <= 1 })
	if left := command(t, servers[0], "PTTL", waitersKey).(int64); left > 500 {
		t.Errorf("%v ms are left", left)
	}
}

// A master that missed one of the holders is not what counts them.
func TestBusyCountsAllHolders(t *testing.T) {
	for _, missed := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}} {
		servers, p := startClient(t)
		for reader, at := range missed {
			storeHold(t, 8+reader, holdValue("3rs", 7, 7), slices.Delete(slices.Clone(servers), at, at+1)...)
		}
		busy := tryAsk(t, writerOf(p, ""), 1)
		if wantStatus(t, "writer", busy, protocol.Busy); busy.Holders != 2 {
			t.Errorf("missed %v: %d holders, want 2", missed, busy.Holders)
		}
	}
}

// A hold that nobody gives back, because it was lost, leaves no place either.
func TestLostHoldLeavesNoPlace(t *testing.T) {
	servers, p := startClient(t)
	storeHold(t, 9, holdValue("3mx", 7, 7), servers[0])
	held := mustJoin(t, mutexOf(p), 1)
	wantStatus(t, "hold", held, protocol.Held)
	until(t, "the first master knows it to wait", func() bool { return countWaiters(t, servers[:1]) == 1 })
	command(t, servers[0], "DEL", stateKey)
	mustRenew(t, p, renewalOf(mutexOf(p), 1, held.Token))
	p.Close(time.Now().Add(enough)) // else the place goes when no ask can make another
	until(t, "the first master forgets", func() bool { return countWaiters(t, servers[:1]) == 0 })
	for i, s := range servers {
		if !keepsHold(t, s, 1) {
			t.Errorf("master %d forgot the hold", i+1)
		}
	}
}

// A waiter that has waited for longer than the masters' clocks show is first nevertheless.
func TestWaiterOlderThanClocksIsFirst(t *testing.T) {
	servers, p, other := startTwo(t)
	h := listen(t, servers, p)
	mustHold(t, mutexOf(other), servers, 1)
	for n, waited := range map[int]time.Duration{2: time.Second, 3: 100 * 365 * 24 * time.Hour, 4: 0} {
		for _, node := range p.nodes {
			waits := &acquisition{r: mutexOf(p), ask: newAsk(n), waited: waited, outcome: newOutcome()}
			waits.ask.Join = true
			if a := waits.askNode(node, 1, 1); a.status != 'B' {
				t.Fatalf("got %+v", a)
			}
		}
	}
	mustFree(t, mutexOf(other), 1)
	until(t, "the first is told by all", func() bool { nudges, _ := h.toldTo(3); return len(nudges) == 3 })
	if nudges, _ := h.toldTo(3); nudges[0] != 0 || nudges[2] != 0 {
		t.Errorf("the first is told to ask in %v", nudges)
	}
}
