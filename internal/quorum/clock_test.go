package quorum

import (
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A ceiling ends no hold before trust in it does, however slow the answers were that tell of the
// node's clock. If they were fast it is no later than the end.
func TestCeiling(t *testing.T) {
	const server = 100_000_000
	sent := time.Now()
	for name, test := range map[string]struct{ took, end, margin, want time.Duration }{
		"a fast answer":               {time.Millisecond, 10 * time.Second, 105 * time.Millisecond, 10*time.Second - time.Millisecond},
		"a slow answer":               {400 * time.Millisecond, 10 * time.Second, 300 * time.Millisecond, 9700*time.Millisecond + 97*time.Millisecond},
		"a slow answer, and no trust": {400 * time.Millisecond, 10 * time.Second, 0, 10*time.Second - 400*time.Millisecond},
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
func TestClock(t *testing.T) {
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
		{"fast by one in a hundred", 30 * time.Second, 30 * time.Second, 30*time.Second + 300*time.Millisecond, old, false},
		{"a little ahead", 0, 0, leap, old, false},
		{"ahead", 0, 0, leap + time.Microsecond, old, true},
		{"ahead, and fast", 10 * time.Second, 10 * time.Second, 10*time.Second + 100*time.Millisecond + leap + time.Microsecond, old, true},
		{"decided late", 0, 10 * time.Second, 10 * time.Second, old, false},
		{"ahead, as others know", 10 * time.Second, 10 * time.Second, time.Hour, known + time.Hour.Microseconds() - 1, false},
		{"ahead, and younger", 10 * time.Second, 10 * time.Second, time.Hour, known + 1, true},
		{"ahead, as others know for long", 10 * time.Minute, 10 * time.Minute, 11 * time.Minute, known + 2*time.Minute.Microseconds(), false},
		{"younger, and older than it can be", 10 * time.Minute, 10 * time.Minute, time.Hour, known + 2*time.Minute.Microseconds(), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var c clock
			start := time.Now()
			if c.forward(known, old, start, start.Add(time.Millisecond), leap) {
				t.Fatal("the first answer says nothing")
			}
			now := known + test.now.Microseconds()
			for range 2 { // what is ahead stays so, until it is set
				if got := c.forward(now, test.born, start.Add(test.sent), start.Add(test.received), leap); got != test.want {
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

// A slow answer does not loosen what a quick one said.
func TestTheClosestBoundCounts(t *testing.T) {
	var c clock
	start := time.Now()
	at := func(d time.Duration) time.Time { return start.Add(d) }
	c.forward(time.Minute.Microseconds(), 1, at(0), at(0), leap)
	c.forward((time.Minute + 3*time.Second).Microseconds(), 1, at(0), at(3*time.Second), leap)
	if !c.forward((time.Minute + 4*time.Second).Microseconds(), 1, at(3*time.Second), at(3*time.Second), leap) {
		t.Error("the node is a second ahead")
	}
}

// A clock that is set back and forward again ends what was kept in between, also of a memory that
// began only just before.
func TestSetBackAndForward(t *testing.T) {
	var c clock
	const born = 95_000_000
	start := time.Now()
	for i, show := range []struct {
		now  int64
		want bool
	}{{100_000_000, false}, {50_000_000, false}, {80_000_000, true}} {
		at := start.Add(time.Duration(i) * time.Second)
		if got := c.forward(show.now, born, at, at, leap); got != show.want {
			t.Errorf("%d: got %v", show.now, got)
		}
	}
}

// ahead makes a protocol, behind gates, that knows the clocks of three nodes that count.
func ahead(t *testing.T) (servers []wire.Store, all []*gate, p *Protocol, logged *words) {
	t.Helper()
	servers = start(t)
	founded(t, servers)
	all, behind := gates(servers)
	logged = &words{Handler: slog.NewTextHandler(io.Discard, nil)}
	p = New(behind, Config{Prefix: "q", Process: string(id(78)), MaxTTL: time.Minute, Logger: slog.New(logged)})
	t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
	warm(t, p)
	free(t, p.Bind(protocol.Spec{Name: "warm", Kind: protocol.Mutex}), 1) // all know that script too
	quiet(t, p)
	for range 10 { // the quickest answer says what is known of a clock, also on a slow machine
		if _, err := p.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return servers, all, p, logged
}

// A node whose clock was set forward may have ended a hold early: it does not count until what it
// may have ended is over.
func TestANodeSetForward(t *testing.T) {
	for _, by := range []time.Duration{10 * time.Second, time.Hour} { // a request to a node an hour ahead comes too late at first
		t.Run(by.String(), func(t *testing.T) {
			servers, all, p, logged := ahead(t)
			before := do(t, servers[1], "HGET", "q:{%quorum}", "born")
			all[1].forward(by)
			r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex})
			want(t, "the others are a majority", try(t, r, 1), protocol.Held)
			eventually(t, "it does not count", func() bool { return counts(t, servers) == 2 })
			if do(t, servers[1], "HGET", "q:{%quorum}", "born") == before {
				t.Error("its memory did not begin anew")
			}
			nodes, err := p.Status(t.Context())
			if err != nil || nodes[1].Counts || !nodes[0].Counts || !nodes[2].Counts {
				t.Errorf("got %v, %v", nodes, err)
			}
			all[0].shut()
			if _, err := r.Ask(t.Context(), ask(2)); err == nil {
				t.Error("locked by a node that may have ended a hold")
			}
			if n := logged.count("a node does not count; node=node 2; reason=its clock seems to have been set forward"); n != 1 {
				t.Errorf("got %q", logged.texts)
			}
		})
	}
}

// A node that was not told yet does not count either.
func TestANodeSetForwardIsTold(t *testing.T) {
	servers, all, p, _ := ahead(t)
	all[1].forward(time.Minute)
	all[1].set(func(op string) error {
		if op == "node" {
			return errShut
		}
		return nil
	})
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex})
	want(t, "hold", try(t, r, 1), protocol.Held)
	eventually(t, "it was heard", func() bool { return do(t, servers[1], "EXISTS", "q:{%quorum}:x") == int64(1) })
	all[0].shut()
	if _, err := p.Bind(protocol.Spec{Name: "y", Kind: protocol.Mutex}).Ask(t.Context(), ask(2)); err == nil {
		t.Error("locked by a node that may have ended a hold")
	}
	if counts(t, servers) != 3 {
		t.Error("it was told, through a shut gate")
	}
	quiet(t, p) // while it is being told, no other answer is what it is told by
	all[1].set(nil)
	if _, err := r.Look(t.Context(), nil); err == nil {
		t.Error("two nodes are told as a majority")
	}
	eventually(t, "it was told", func() bool { return counts(t, servers) == 2 })
}

// When all nodes seem to be ahead, it was this machine that stood still, and they go on to count.
func TestThisMachineStoodStill(t *testing.T) {
	servers, all, p, _ := ahead(t)
	for _, g := range all {
		g.forward(time.Minute)
	}
	want(t, "hold", try(t, p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}), 1), protocol.Held)
	nodes, err := p.Status(t.Context())
	if err != nil || !nodes[0].Counts || !nodes[1].Counts || !nodes[2].Counts || counts(t, servers) != 3 {
		t.Errorf("got %v, %v", nodes, err)
	}
}

// An answer that comes after that was found out accuses nobody.
func TestThisMachineStoodStillAndAnAnswerIsLate(t *testing.T) {
	servers, all, p, logged := ahead(t)
	for _, g := range all {
		g.forward(time.Minute)
	}
	late := newOnce()
	all[2].answers(func(op string) error {
		if op == "ask" {
			late.wait()
		}
		return nil
	})
	want(t, "hold", try(t, p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}), 1), protocol.Held)
	close(late.goes)
	p.Close(time.Now().Add(10 * time.Second))
	if counts(t, servers) != 3 || logged.count("does not count") != 0 {
		t.Errorf("got %q", logged.texts)
	}
}

// Of a node that does not count, whose clock is set back meanwhile, the memory begins then: it is
// not kept out for as long as it was ahead.
func TestANodeSetBack(t *testing.T) {
	servers := start(t)
	founded(t, servers)
	p := young(t, servers, false, memory)
	do(t, servers[1], "HDEL", "q:{%quorum}", "counts")
	do(t, servers[1], "HSET", "q:{%quorum}", "born", wire.Digits16(time.Now().Add(time.Hour).UnixMicro()))
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Error("it never counts")
	}
}
