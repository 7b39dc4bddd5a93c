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
	return open(t, stores, Config{Process: string(id(77)), MaxTTL: longest, Trust: trust})
}

// counts returns the nodes that count by their own record.
func counts(t *testing.T, servers []wire.Store) int {
	t.Helper()
	return int(countAll(t, servers, "HEXISTS", "q:{%quorum}", "counts"))
}

// during asks all nodes for what they know of themselves, again and again for a while, and reports
// whether a condition held meanwhile.
func during(t *testing.T, p *Protocol, long time.Duration, holds func() bool) bool {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		status(t, p)
		if holds() {
			return true
		}
	}
	return false
}

// foundQuorum lets all masters count, and returns who did that, when it has nothing more on its
// way: a master that forgets meanwhile would be let count again.
func foundQuorum(t *testing.T, servers []wire.Store) *Protocol {
	t.Helper()
	p := openYoung(t, servers, true, memory)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Fatal("they never count")
	}
	waitQuiet(t, p)
	return p
}

// A node that does not answer is not one that forgot: with the one that did it may have been the
// majority that accepted a token, or that knows for how long another client holds.
func TestAdoptWithSilentMasterWaits(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	foundQuorum(t, servers)
	p := openYoung(t, behind, false, memory)
	all[0].shut()
	do(t, servers[1], "DEL", "q:{%quorum}")
	tried := func() bool { // it has asked the others, and told the node what came of it
		n := p.nodes[1]
		n.mu.Lock()
		defer n.mu.Unlock()
		return !n.adopted.IsZero()
	}
	if !during(t, p, 30*time.Second, tried) {
		t.Fatal("nobody tried to let it count")
	}
	if counts(t, servers[1:2]) == 1 {
		t.Error("it counts, and what it forgot is known to nobody who was asked")
	}
	all[0].set(nil)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Error("it never counts")
	}
}

// When a majority forgot, all of them count from one moment on, also when the others do not answer.
func TestAdoptAfterMajorityForgotTakesMemory(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := openYoung(t, behind, false, 3*memory)
	all[2].shut()
	all[1].shut()
	if during(t, p, memory, func() bool { return counts(t, servers) > 0 }) {
		t.Fatal("one node counts, and two have not been asked")
	}
	before := time.Now()
	all[1].set(nil) // its memory begins later
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers[:2]) == 2 }) {
		t.Fatal("they never count")
	}
	if took := time.Since(before); took < 3*memory {
		t.Errorf("they count after %v, and others may hold for %v", took, 3*memory)
	}
	all[2].set(nil)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Error("the third never counts")
	}
}

// A node that forgot does not count before the longest TTL of any client is over. The node is told
// of that TTL with the hold itself: all that it has lost with it is over then.
func TestAskTellsLongestTTL(t *testing.T) {
	servers := start(t)
	founder := foundQuorum(t, servers)
	gates, behind := gates(servers)
	p := openYoung(t, behind, true, time.Hour)
	r := mutexOf(p)
	hold(t, r, servers, 1) // the scripts are there from then on
	free(t, r, 1)
	waitQuiet(t, p)
	do(t, servers[1], "DEL", "q:{%quorum}")
	status(t, founder) // it finds the scripts there, and says what it knows
	// A look, a moment later, would tell it too.
	gates[1].set(on("node", func() error { return errShut }))
	hold(t, r, servers, 2)
	if got := do(t, servers[1], "HGET", "q:{%quorum}", "longest"); got != "3600000" {
		t.Errorf("got %v", got)
	}
	if status(t, founder); founder.memory() != time.Hour {
		t.Errorf("another client lets it count after %v", founder.memory())
	}
}

// The logger is told once of each node that does not count, why, and that it counts again. An
// answer that is overtaken by the next tells it nothing.
func TestLoggerTellsOnceWhichNodesCount(t *testing.T) {
	logged, to := newLogger()
	p := open(t, start(t), Config{Process: string(id(1)), MaxTTL: memory, Logger: to})
	n := p.nodes[0]
	old, sent, err := n.askFacts(time.Now().Add(enough), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if !during(t, p, 30*time.Second, func() bool { return logged.count("a node counts again") == 3 }) {
		t.Errorf("got %q", logged.texts)
	}
	n.judgeFacts(&old, sent, time.Now(), time.Now().Add(enough))
	if n := logged.count("a node does not count; node=node 2; reason=its memory began "); n != 1 ||
		logged.count("does not count") != 3 {
		t.Errorf("got %q", logged.texts)
	}
}
