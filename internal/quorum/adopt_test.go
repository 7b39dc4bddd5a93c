package quorum

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/wire"
)

const memory = 100 * time.Millisecond // for which a node that forgot does not count, here

// openYoung makes a protocol that waits for so long.
func openYoung(t *testing.T, stores []wire.Store, trust bool, longest time.Duration) *Protocol {
	t.Helper()
	return openProtocol(t, stores, Config{Process: "adopts", MaxTTL: longest, Trust: trust})
}

// countCounting returns the nodes that count by their own record.
func countCounting(t *testing.T, servers []wire.Store) int {
	t.Helper()
	return int(countAll(t, servers, "HEXISTS", factsKey, "counts"))
}

// askUntil asks all nodes for what they know of themselves until a condition holds.
func askUntil(t *testing.T, p *Protocol, what string, holds func() bool) {
	t.Helper()
	until(t, what, func() bool { mustStatus(t, p); return holds() })
}

// allCount reports whether all masters count by their own record.
func allCount(t *testing.T, servers []wire.Store) func() bool {
	return func() bool { return countCounting(t, servers) == len(servers) }
}

// foundQuorum lets all masters count, and returns who did that, when it has nothing more on its
// way: a master that forgets meanwhile would be let count again.
func foundQuorum(t *testing.T, servers []wire.Store) *Protocol {
	t.Helper()
	p := openYoung(t, servers, true, memory)
	askUntil(t, p, "they count", allCount(t, servers))
	waitQuiet(t, p)
	return p
}

// A node that does not answer is not one that forgot: with the one that did it may have been the
// majority that accepted a token, or that knows for how long another client holds.
func TestAdoptWithSilentMasterWaits(t *testing.T) {
	servers := startMasters(t)
	all, behind := gates(servers)
	foundQuorum(t, servers)
	p := openYoung(t, behind, false, memory)
	all[0].shut()
	command(t, servers[1], "DEL", factsKey)
	tried := func() bool { // it has asked the others, and told the node what came of it
		n := p.nodes[1]
		n.mu.Lock()
		defer n.mu.Unlock()
		return !n.adopted.IsZero()
	}
	askUntil(t, p, "somebody tries to let it count", tried)
	if countCounting(t, servers[1:2]) == 1 {
		t.Error("it counts, and what it forgot is known to nobody who was asked")
	}
	all[0].atRequest(nil)
	askUntil(t, p, "it counts", allCount(t, servers))
}

// When a majority forgot, all of them count from one moment on, also when the others do not answer.
func TestAdoptAfterMajorityForgotTakesMemory(t *testing.T) {
	servers := startMasters(t)
	all, behind := gates(servers)
	p := openYoung(t, behind, false, 3*memory)
	all[2].shut()
	all[1].shut()
	before := time.Now()
	askUntil(t, p, "the memory is over", func() bool { return time.Since(before) > memory })
	if countCounting(t, servers) > 0 {
		t.Fatal("one node counts, and two have not been asked")
	}
	before = time.Now()
	all[1].atRequest(nil) // its memory begins later
	askUntil(t, p, "they count", allCount(t, servers[:2]))
	if took := time.Since(before); took < 3*memory {
		t.Errorf("they count after %v, and others may hold for %v", took, 3*memory)
	}
	all[2].atRequest(nil)
	askUntil(t, p, "the third counts", allCount(t, servers))
}

// A node that forgot does not count before the longest TTL of any client is over. The node is told
// of that TTL with the hold itself: all that it has lost with it is over then.
func TestAskTellsLongestTTL(t *testing.T) {
	servers := startMasters(t)
	founder := foundQuorum(t, servers)
	gates, behind := gates(servers)
	p := openYoung(t, behind, true, time.Hour)
	r := mutexOf(p)
	mustHold(t, r, servers, 1) // the scripts are there from then on
	mustFree(t, r, 1)
	waitQuiet(t, p)
	command(t, servers[1], "DEL", factsKey)
	mustStatus(t, founder) // it finds the scripts there, and says what it knows
	// A look, a moment later, would tell it too.
	gates[1].atRequest(on("node", func() error { return errShut }))
	mustHold(t, r, servers, 2)
	if got := command(t, servers[1], "HGET", factsKey, "longest"); got != "3600000" {
		t.Errorf("got %v", got)
	}
	if mustStatus(t, founder); founder.memory() != time.Hour {
		t.Errorf("another client lets it count after %v", founder.memory())
	}
}
