package quorum

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

func breakOf(token int64) protocol.Break {
	return protocol.Break{Kind: protocol.Mutex, Token: token, By: "breaker"}
}

// doBreak breaks the hold of x with this token. So many nodes do not answer. It asks again if a
// node that lives does not answer in time, on a machine that stands still now and then.
func doBreak(t *testing.T, p *Protocol, token int64, dead int) (done bool, err error) {
	t.Helper()
	lives := func(n protocol.Node) bool { return n.Err == nil }
	until(t, "all that live answer in time", func() bool {
		done, err = p.Break(t.Context(), "x", breakOf(token))
		waitQuiet(t, p)
		var none *NoMajority
		return !errors.As(err, &none) || len(slices.DeleteFunc(slices.Clone(none.Nodes), lives)) <= dead
	})
	return done, err
}

// A Break is done when a majority has the remainder. Otherwise nothing is left of it, and the hold
// is as it was. A hold that a majority does not know is nobody's lease.
func TestBreakIsDoneByMajority(t *testing.T) {
	saidBy := map[byte]string{'h': "by:7:breakerof:22:", 'r': "by:2:byof:44:"} // 'r' was broken before, and by both now
	eachArrangement(t, map[string]string{
		"done":   "hhh hhd h-h hht hhr rrr rrh hhhdd hhh--",
		"none":   "h-- --- --d r-- tth hh---",
		"failed": "hdd h-d ddd r-d hhd-- hhddd hhdd-",
	}, func(t *testing.T, masters, want string) {
		servers, p := arrangeMasters(t, masters, "3mx")
		var before []map[string]string
		for _, s := range servers {
			before = append(before, storedFields(t, s))
		}
		done, err := doBreak(t, p, 7, strings.Count(masters, "d"))
		got := "none"
		var failure *protocol.Failure
		switch {
		case done && err == nil:
			got = "done"
		case !done && errors.As(err, &failure) && errors.As(err, new(*NoMajority)):
			got = "failed"
			if marked := strings.ContainsAny(masters, "hr"); failure.Unknown != marked {
				t.Errorf("it may have taken effect: %v, want %v", failure.Unknown, marked)
			}
		case err != nil:
			got = err.Error()
		}
		if got != want {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
		waitQuiet(t, p)
		for i, s := range servers {
			all := storedFields(t, s)
			hold, remainder := all[holdField(1)], all[brokenField(1)]
			was := cmp.Or(before[i][holdField(1)], before[i][brokenField(1)])
			ok := maps.Equal(all, before[i])
			if said := saidBy[masters[i]]; want == "done" && said != "" {
				ok = hold == "" && remainder[:payloadAt] == was[:payloadAt] && strings.Contains(remainder, said)
			}
			if !ok {
				t.Errorf("master %d has %q, had %q", i+1, all, before[i])
			}
		}
	})
}

// Any token of the hold's block will do, and no other. A second Break changes nothing but that it
// is one more.
func TestBreakEndsHoldOfToken(t *testing.T) {
	for token, want := range map[int64]bool{-1: false, 0: false, 6: false, 7: true, 8: true, 9: true, 10: false,
		1 << 53: false, 1<<63 - 1: false} {
		servers, p := arrangeMasters(t, "---", "3mx")
		storeHold(t, 1, holdValue("3mx", 7, 9), servers...)
		storeHold(t, 2, holdValue("3mx", 0, 0), servers...)
		before := storedFields(t, servers[0])
		for range 2 {
			if done, err := doBreak(t, p, token, 0); done != want || err != nil {
				t.Errorf("token %d: got %v, %v", token, done, err)
			}
			waitQuiet(t, p)
			after := storedFields(t, servers[0])
			if !want && !maps.Equal(after, before) {
				t.Errorf("token %d: got %q, was %q", token, after, before)
			}
			if _, remains := after[brokenField(1)]; remains != want ||
				after[holdField(2)] != before[holdField(2)] {
				t.Errorf("token %d: got %q", token, after)
			}
		}
	}
}

// The remainder that a Break leaves at a master is no hold: no request of the holder, late or
// twice, makes it one, prolongs it or leaves a place. A release of an earlier round leaves it.
func TestRemainderOfBreakIsNoHold(t *testing.T) {
	h := breakAtOne(t)
	before := h.stored(t)
	for range 2 {
		asked := newAsk(1)
		for what, a := range map[string]*reply{
			"ask":         h.ask(t, h.r, 1, nil),
			"ask to wait": h.ask(t, h.r, 1, func(t *acquisition) { t.ask.Join = true }),
			"downgrade":   h.r.downgradeAt(h.n, &asked),
		} {
			if a.status != 'R' || a.by != "breaker" {
				t.Errorf("%s: got %q by %v", what, a.status, a.by)
			}
		}
		h.free(t, 1, 'q', 0, 0)
		h.free(t, 1, 'w', 0, 0)
		h.free(t, 1, 'p', endless, 0)
		h.breakHold(t, 7)
		h.free(t, 8, 'b', endless, 0) // what never came
	}
	if after := h.stored(t); !maps.Equal(after, before) || len(after) != 1 {
		t.Errorf("got %q, was %q", after, before)
	}
	if places := command(t, h.server, "EXISTS", waitersKey); places != int64(0) {
		t.Error("it left a place")
	}
}

// A Break that is taken back leaves the hold as it was, with the end that it had. A hold that
// another Break has ended too comes back when both are taken back, in any order and twice.
func TestBreakTakenBackRestoresHold(t *testing.T) {
	for name, order := range map[string][]int{"one": {7}, "twice": {7, 7}, "two": {7, 8}, "the second first": {8, 7},
		"one of two, twice": {7, 7, 8}, "three": {8, 9, 7}} {
		t.Run(name, func(t *testing.T) {
			h := breakAtOne(t)
			left := map[int]bool{}
			for _, n := range order {
				h.breakHold(t, n)
				left[n] = true
			}
			for _, n := range order {
				if got := h.stored(t); got[holdField(1)] != "" || h.remainder(t) == "" {
					t.Fatalf("before %d is taken back: %q", n, got)
				}
				h.free(t, n, 'b', endless, 0)
				if delete(left, n); len(left) == 0 {
					break
				}
			}
			if got := h.stored(t); len(got) != 1 || got[holdField(1)] != h.held {
				t.Errorf("got %q, want %q", got, h.held)
			}
			if ttl := command(t, h.server, "PTTL", stateKey).(int64); ttl <= 0 {
				t.Errorf("the key lives for %d ms", ttl)
			}
			if a := h.renew(t, 1, time.Minute); a.letters != "1" {
				t.Errorf("a renewal is told %q", a.letters)
			}
		})
	}
}

// The release of the holder ends what a Break left, or shortens it to its min hold, and is told who
// did it. From then on nothing brings the hold back: neither a Break that comes again, nor taking
// it back.
func TestReleaseOfBrokenHoldIsFinal(t *testing.T) {
	for name, keep := range map[string]time.Duration{"at once": 0, "min hold": 30 * time.Second} {
		t.Run(name, func(t *testing.T) {
			h := breakAtOne(t)
			if was, by := h.free(t, 1, 'f', endless, keep); was != 'R' || by != "breaker" {
				t.Errorf("got %c by %q", was, by)
			}
			after := h.stored(t)
			if remainder := h.remainder(t); (remainder != "") != (keep > 0) || len(after) > 1 ||
				keep > 0 && expiryOf(t, remainder).After(time.Now().Add(keep+enough)) {
				t.Errorf("got %q", after)
			}
			h.breakHold(t, 7)
			h.breakHold(t, 8)
			h.free(t, 7, 'b', endless, 0)
			h.free(t, 8, 'b', endless, 0)
			if again := h.stored(t); !maps.Equal(again, after) {
				t.Errorf("got %q, was %q", again, after)
			}
		})
	}
}

// A Break whose answers are lost is taken back, once its requests can take effect no more (trap
// 35). One that arrives later does nothing.
func TestBreakWithoutAnswersIsTakenBack(t *testing.T) {
	servers, all, p := startGated(t)
	storeHold(t, 1, holdValue("3mx", 7, 7), servers...)
	warmUp(t, p)
	was := storedFields(t, servers[0])[holdField(1)]
	for _, g := range all[:2] {
		g.atAnswer(on("break", func() error { return errShut }))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	done, err := p.Break(ctx, "x", breakOf(7))
	var failure *protocol.Failure
	if done || !errors.As(err, &failure) {
		t.Errorf("got %v, %v", done, err)
	}
	waitQuiet(t, p)
	for i, s := range servers {
		if got := storedFields(t, s); len(got) != 1 || got[holdField(1)] == "" || i == 0 && got[holdField(1)] != was {
			t.Errorf("master %d has %q", i+1, got)
		}
	}
	all[0].atAnswer(nil)
	n, r := p.nodes[0], mutexOf(p)
	text, err := n.askScript(&p.scripts.breaks, "x", time.Now().Add(enough), []any{nil, nil, 2, r.state, p.factsKey(),
		"3mx", wire.Digits16(7),
		holdField(7), "breaker", wire.Digits16(time.Now().Add(-time.Hour).UnixMicro())})
	if err != nil || text[0] != 'L' || storedFields(t, servers[0])[holdField(1)] != was {
		t.Errorf("too late: %q, %v, %q", text, err, storedFields(t, servers[0]))
	}
}

// Of two Breaks that meet, one that succeeded by what the other had done stays, although the other
// fails and is taken back.
func TestBreakTakenBackLeavesBreakThatMetIt(t *testing.T) {
	servers, other := arrangeMasters(t, "hhh", "3mx")
	all, behind := gates(servers)
	p := newClient(t, behind, ticketID(9))
	warmUp(t, p)
	all[1].shut()
	all[2].shut()
	came := newOnce()
	all[0].atAnswer(came.holdUp("break"))
	failed := make(chan error, 1)
	go func() {
		_, err := p.Break(context.Background(), "x", breakOf(7))
		failed <- err
	}()
	<-came.came // the first node has it
	if done, err := doBreak(t, other, 7, 0); !done || err != nil {
		t.Fatalf("got %v, %v", done, err)
	}
	close(came.goes)
	if err := <-failed; err == nil {
		t.Error("a Break at one node alone is done")
	}
	waitQuiet(t, p)
	waitQuiet(t, other)
	for i, s := range servers {
		if got := storedFields(t, s); len(got) != 1 || got[brokenField(1)] == "" {
			t.Errorf("master %d has %q", i+1, got)
		}
	}
}
