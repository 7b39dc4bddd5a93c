package quorum

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// startKnown makes a protocol, behind gates, that knows the clocks of three nodes that count.
func startKnown(t *testing.T) (servers []wire.Store, all []*gate, p *Protocol, logged *logger) {
	t.Helper()
	servers = startMasters(t)
	foundQuorum(t, servers)
	all, behind := gates(servers)
	p, logged = knowClocks(t, behind)
	return servers, all, p, logged
}

func knowClocks(t *testing.T, stores []wire.Store) (p *Protocol, logged *logger) {
	t.Helper()
	logged, to := newLogger()
	p = openProtocol(t, stores, Config{Process: "p", MaxTTL: time.Minute, Logger: to})
	warmUp(t, p)
	for range 10 { // the quickest answer says what is known of a clock, also on a slow machine
		mustStatus(t, p)
	}
	return p, logged
}

// mutexNamed returns a mutex of another name than that of the rest of a test.
func mutexNamed(p *Protocol, name string) *resource {
	return p.bind(protocol.Spec{Name: name, Kind: protocol.Mutex})
}

// wantRefused fails unless an ask is refused, as a node that is needed may have ended a hold.
func wantRefused(t *testing.T, r *resource, n int) {
	t.Helper()
	if answer, err := r.Ask(t.Context(), newAsk(n)); err == nil {
		t.Errorf("locked by a node that may have ended a hold: %+v", answer)
	}
}

// untilCounted waits until so many nodes count by their own record: the others were told.
func untilCounted(t *testing.T, servers []wire.Store, n int) {
	t.Helper()
	until(t, "the nodes that were set are told", func() bool { return countCounting(t, servers) == n })
}

// blamesNobody fails if a node was told, or the logger, that its clock was set.
func blamesNobody(t *testing.T, servers []wire.Store, p *Protocol, logged *logger) {
	t.Helper()
	p.Close(time.Now().Add(10 * time.Second))
	if countCounting(t, servers) != 3 || logged.count("does not count") != 0 {
		t.Errorf("got %s", logged)
	}
}

// A node whose clock was set forward may have ended a hold early: it does not count until what it
// may have ended is over.
func TestNodeSetForwardDoesNotCount(t *testing.T) {
	// a request to a node an hour ahead comes too late at first
	for _, by := range []time.Duration{10 * time.Second, time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			servers, all, p, logged := startKnown(t)
			before := command(t, servers[1], "HGET", factsKey, "born")
			all[1].forward(by)
			wantStatus(t, "the others are a majority", tryAsk(t, mutexNamed(p, "x"), 1), protocol.Held)
			untilCounted(t, servers, 2)
			if command(t, servers[1], "HGET", factsKey, "born") == before {
				t.Error("its memory did not begin anew")
			}
			if nodes := mustStatus(t, p); nodes[1].Counts || !nodes[0].Counts || !nodes[2].Counts {
				t.Errorf("got %v", nodes)
			}
			all[0].shut()
			wantRefused(t, mutexNamed(p, "x"), 2)
			if n := logged.count(`a node does not count" node="node 2" reason="its clock seems to have been set forward`); n != 1 {
				t.Errorf("got %s", logged)
			}
		})
	}
}

// A node that was set forward and was not told yet does not count either.
func TestNodeSetForwardAndNotToldDoesNotCount(t *testing.T) {
	servers, all, p, _ := startKnown(t)
	all[1].forward(time.Minute)
	all[1].atRequest(on("node", func() error { return errShut }))
	r := mutexNamed(p, "x")
	wantStatus(t, "hold", tryAsk(t, r, 1), protocol.Held)
	until(t, "it was heard", func() bool { return command(t, servers[1], "EXISTS", stateKey) == int64(1) })
	all[0].shut()
	wantRefused(t, mutexNamed(p, "y"), 2)
	if countCounting(t, servers) != 3 {
		t.Error("it was told, through a shut gate")
	}
	waitQuiet(t, p) // while it is being told, no other answer is what it is told by
	all[1].atRequest(nil)
	if _, err := r.Look(t.Context(), nil); err == nil {
		t.Error("two nodes are told as a majority")
	}
	untilCounted(t, servers, 2)
}

// When all nodes seem to be ahead, it was this machine that stood still, and they go on to count.
// An answer from before says nothing of what the clock shows since, when it comes after that.
func TestAllNodesAheadBlameThisMachine(t *testing.T) {
	servers, all, p, logged := startKnown(t)
	late := newOnce()
	all[2].atAnswer(late.holdUp("ask"))
	wantStatus(t, "hold", tryAsk(t, mutexNamed(p, "y"), 2), protocol.Held)
	<-late.came
	all[2].atAnswer(nil)
	for _, g := range all {
		g.forward(time.Minute)
	}
	wantStatus(t, "hold", tryAsk(t, mutexNamed(p, "x"), 1), protocol.Held)
	close(late.goes)
	waitQuiet(t, p) // it was heard
	if nodes := mustStatus(t, p); !nodes[0].Counts || !nodes[1].Counts || !nodes[2].Counts {
		t.Errorf("got %v", nodes)
	}
	blamesNobody(t, servers, p, logged)
}

// No stop of this machine explains two nodes that are ahead by different times: both were set
// forward, each when it was.
func TestTwoNodesAheadByDifferentTimesDoNotCount(t *testing.T) {
	servers, all, p, _ := startKnown(t)
	all[0].forward(time.Hour)
	all[1].forward(time.Minute)
	wantRefused(t, mutexNamed(p, "x"), 1)
	untilCounted(t, servers, 1)
}

// Where nobody else answers, nothing is known of the clock that seems to be ahead: the node does
// not count by that answer, and the next is looked at again.
func TestNodeAheadBesideSilentNodesDoesNotCount(t *testing.T) {
	servers, all, p, _ := startKnown(t)
	all[1].forward(time.Minute)
	all[1].atRequest(on("ask", func() error { // the others have answered by then
		until(t, "the others hold", func() bool {
			return countAll(t, []wire.Store{servers[0], servers[2]},
				"EXISTS", stateKey) == 2
		})
		all[0].shut()
		all[2].shut()
		return nil
	}))
	all[2].atAnswer(on("ask", func() error { return errShut }))
	wantRefused(t, mutexNamed(p, "x"), 1)
	all[1].atRequest(nil)
	all[0].atRequest(nil)
	wantRefused(t, mutexNamed(p, "y"), 2)
	untilCounted(t, servers, 2)
}

// A server that is seen at two nodes, and whose clock was set forward, is no majority that is ahead
// of our clock: it is the one that was set.
func TestOneServerAheadAtTwoNodesDoesNotCount(t *testing.T) {
	one, other := startMaster(t), startMaster(t)
	foundQuorum(t, []wire.Store{one, other, startMaster(t)})
	all, behind := gates([]wire.Store{other, one, one})
	p, _ := knowClocks(t, behind)
	all[1].forward(time.Hour)
	all[2].forward(time.Hour)
	wantRefused(t, mutexNamed(p, "x"), 1)
	untilCounted(t, []wire.Store{one}, 0)
}

// Of a node that does not count, whose clock is set back meanwhile, the memory begins then: it is
// not kept out for as long as it was ahead.
func TestNodeSetBackCountsAgain(t *testing.T) {
	servers := startMasters(t)
	foundQuorum(t, servers)
	p := openYoung(t, servers, false, memory)
	command(t, servers[1], "HDEL", factsKey, "counts")
	command(t, servers[1], "HSET", factsKey, "born", wire.Digits16(time.Now().Add(time.Hour).UnixMicro()))
	askUntil(t, p, "it counts", allCount(t, servers))
}

// A prompt is a master that answers at once, on a fake clock, grants all, and counts.
type prompt struct {
	ahead  time.Duration
	born   atomic.Int64
	silent bool        // it answers nothing
	told   atomic.Bool // that its memory begins anew
}

func (s *prompt) answer(ctx context.Context, r wire.Request) wire.Reply {
	if s.silent {
		return staySilent(ctx)
	}
	now := time.Now().Add(s.ahead).UnixMicro()
	if r.Args[1] == digests["node"] && r.Args[6] == "a" {
		s.told.Store(true)
		s.born.Store(now)
	}
	head := wire.Digits16(now) + wire.Digits16(s.born.Load()) + nameless + "1"
	switch r.Args[1] {
	case digests["node"]:
		return wire.Reply{Value: "N" + head + wire.Digits16(0) + "1000"}
	case digests["ask"]:
		return wire.Reply{Value: "H" + head + r.Args[15].(string) + r.Args[14].(string) + r.Args[15].(string)}
	}
	return wire.Reply{Value: "1"}
}

// onPrompts runs a test on a fake clock, with a protocol that knows the clocks of three masters.
func onPrompts(t *testing.T, f func(t *testing.T, p *Protocol, all []*prompt, logged *logger)) {
	synctest.Test(t, func(t *testing.T) {
		var stores []wire.Store
		var all []*prompt
		for range 3 {
			s := &prompt{}
			s.born.Store(time.Now().Add(-time.Hour).UnixMicro())
			stores, all = append(stores, fake(s.answer)), append(all, s)
		}
		logged, to := newLogger()
		p := openProtocol(t, stores, Config{Prefix: usual, Process: "p", MaxTTL: time.Minute, Logger: to})
		wantStatus(t, "all are met", tryAsk(t, mutexNamed(p, "warm"), 9), protocol.Held)
		<-time.After(time.Second)
		synctest.Wait() // the third has answered
		f(t, p, all, logged)
	})
}

// A clock of ours that runs too slowly for a while, as while it is slewed back, finds one node
// after the other ahead, and the next nearly so. An answer that is late by as much as is missing
// shows nothing, so all come at once.
func TestNodesNearlyAheadBlameThisMachine(t *testing.T) {
	onPrompts(t, func(t *testing.T, p *Protocol, all []*prompt, logged *logger) {
		all[0].ahead, all[1].ahead, all[2].ahead = leap-5*time.Millisecond, leap+15*time.Millisecond,
			leap-5*time.Millisecond
		wantStatus(t, "hold", tryAsk(t, mutexNamed(p, "x"), 1), protocol.Held)
		p.Close(time.Now().Add(10 * time.Second))
		if all[0].told.Load() || all[1].told.Load() || all[2].told.Load() || logged.count("does not count") != 0 {
			t.Errorf("got %s", logged)
		}
	})
}

// A try takes no longer than its deadline, also while the others are asked whose clock is wrong.
func TestAskEndsInTimeDuringClockCheck(t *testing.T) {
	onPrompts(t, func(t *testing.T, p *Protocol, all []*prompt, _ *logger) {
		all[1].ahead, all[2].silent = time.Minute, true
		asks := newAsk(1)
		asks.Deadline = time.Now().Add(300 * time.Millisecond) // the check takes a second
		began := time.Now()
		if _, err := mutexNamed(p, "x").Ask(t.Context(), asks); err == nil {
			t.Error("locked by a node that may have ended a hold")
		}
		if took := time.Since(began); took > 400*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A ceiling ends no hold before trust in it does, however slow the answers were that tell of the
// node's clock. If they were fast it is no later than the end.
func TestClockCeilingIsNotBeforeEndOfTrust(t *testing.T) {
	const server = 100_000_000
	sent := time.Now()
	for name, test := range map[string]struct{ took, end, margin, want time.Duration }{
		"a fast answer": {time.Millisecond, 10 * time.Second, 105 * time.Millisecond,
			10*time.Second - time.Millisecond},
		"a slow answer": {400 * time.Millisecond, 10 * time.Second, 300 * time.Millisecond,
			9700*time.Millisecond + 97*time.Millisecond},
		"a slow answer, and no trust": {400 * time.Millisecond, 10 * time.Second, 0,
			10*time.Second - 400*time.Millisecond},
	} {
		var c clock
		if c.forward(server, 1, sent, sent.Add(test.took), leap) {
			t.Fatal("the first answer says nothing")
		}
		end, trusted := sent.Add(test.end), time.Time{}
		if test.margin > 0 {
			trusted = end.Add(-test.margin)
		}
		if got, want := c.ceiling(end, trusted), wire.Digits16(server+test.want.Microseconds()); got != want {
			t.Errorf("%s: the ceiling is %s, want %s", name, got, want)
		}
	}
	if got := new(clock).ceiling(sent, sent); got != "" {
		t.Errorf("of an unknown clock: %q", got)
	}
}

// An answer may show at most the time of an earlier one, plus the time since that was sent.
func TestClockForwardByMoreThanLeap(t *testing.T) {
	const old, known = 1_000_000, 100_000_000 // microseconds of the node
	for _, test := range []struct {
		name           string
		sent, received time.Duration // since the answer that is known was asked for
		now            time.Duration // since what that said
		born           int64
		want           bool
	}{
		{"in time", 10 * time.Second, 10 * time.Second, 10 * time.Second, old, false},
		{"slow", 10 * time.Second, 10 * time.Second, 9 * time.Second, old, false},
		{"set back", 10 * time.Second, 10 * time.Second, -time.Hour, old, false},
		{"fast by one in a hundred", 30 * time.Second, 30 * time.Second, 30*time.Second + 300*time.Millisecond, old,
			false},
		{"a little ahead", 0, 0, leap, old, false},
		{"ahead", 0, 0, leap + time.Microsecond, old, true},
		{"ahead, and fast", 10 * time.Second, 10 * time.Second, 10*time.Second + 100*time.Millisecond + leap +
			time.Microsecond, old, true},
		{"decided late", 0, 10 * time.Second, 10 * time.Second, old, false},
		{"ahead, as others know", 10 * time.Second, 10 * time.Second, time.Hour, known + time.Hour.Microseconds() - 1,
			false},
		{"ahead, and younger", 10 * time.Second, 10 * time.Second, time.Hour, known + 1, true},
		{"ahead, as others know for long", 10 * time.Minute, 10 * time.Minute, 11 * time.Minute,
			known + 2*time.Minute.Microseconds(), false},
		{"younger, and older than it can be", 10 * time.Minute, 10 * time.Minute, time.Hour,
			known + 2*time.Minute.Microseconds(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c clock
			start := time.Now()
			if c.forward(known, old, start, start.Add(time.Millisecond), leap) {
				t.Fatal("the first answer says nothing")
			}
			now := known + test.now.Microseconds()
			for range 2 { // what is ahead stays so, until it is set
				got := c.forward(now, test.born, start.Add(test.sent), start.Add(test.received), leap)
				if got != test.want {
					t.Errorf("got %v", got)
				}
			}
			c.set(now, test.born, start.Add(test.sent))
			if c.forward(now, test.born, start.Add(test.sent), start.Add(test.received), leap) {
				t.Error("it is ahead of itself")
			}
		})
	}
}

// Answers that follow each other, of a memory that began only just before the first.
func TestClockForwardAfterAnswers(t *testing.T) {
	const known, born = 100_000_000, 95_000_000
	for name, answers := range map[string][]struct {
		sent, received, now time.Duration // since those of the first
		want                bool
	}{
		"a slow one does not loosen what a quick one said": {{0, 0, 0, false},
			{0, 3 * time.Second, 3 * time.Second, false}, {3 * time.Second, 3 * time.Second, 4 * time.Second, true}},
		"set back, and forward again": {{0, 0, 0, false}, {time.Second, time.Second, -50 * time.Second, false},
			{2 * time.Second, 2 * time.Second, -20 * time.Second, true}},
	} {
		var c clock
		start := time.Now()
		for i, a := range answers {
			got := c.forward(known+a.now.Microseconds(), born, start.Add(a.sent), start.Add(a.received), leap)
			if got != a.want {
				t.Errorf("%s: answer %d: got %v", name, i+1, got)
			}
		}
	}
}
