package quorum

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// remainderValue returns what a master keeps of a hold of this mode that a caller with a label
// broke, by a Break with id 6.
func remainderValue(mode, by string) string {
	extras := fmt.Sprintf("by:%d:%sof:22:%s", len(by), by, ticketID(6))
	return strings.TrimSuffix(holdValue(mode, 7, 7), "0:") + fmt.Sprintf("%d:%s", len(extras), extras)
}

// arrangeMasters starts masters that know of a hold with id 1 and the token 7, each in its way: "h"
// it holds; "e" it holds, with an earlier proposal as token; "t" with none; "r" the hold is a
// remainder; "b" the same, and id 2 holds; "-" nothing; "f" a text; "o" a hold of an earlier
// format; "k" holds of two kinds; "d" as "h", but it does not answer.
func arrangeMasters(t *testing.T, masters, mode string) (servers []wire.Store, p *Protocol) {
	t.Helper()
	for range masters {
		servers = append(servers, startMaster(t))
	}
	all, behind := gates(servers)
	p = newClient(t, behind, ticketID(0))
	warmUp(t, p)
	for i, s := range servers {
		switch masters[i] {
		case 'h':
			storeHold(t, 1, holdValue(mode, 7, 7), s)
		case 'e':
			storeHold(t, 1, holdValue(mode, 5, 5), s)
		case 't':
			storeHold(t, 1, holdValue(mode, 0, 0), s)
		case 'b':
			storeHold(t, 2, holdValue(mode, 8, 8)+"by", s)
			fallthrough
		case 'r':
			command(t, s, "HSET", stateKey, brokenField(1), remainderValue(mode, "by"))
		case 'f':
			command(t, s, "SET", stateKey, "theirs")
		case 'o':
			storeHold(t, 9, holdValue("2mx", 7, 7), s)
		case 'k':
			storeHold(t, 8, holdValue("3mx", 7, 7), s)
			storeHold(t, 9, holdValue("3rx", 8, 8), s)
		case 'd':
			storeHold(t, 1, holdValue(mode, 7, 7), s)
			all[i].shut()
		}
	}
	return servers, p
}

// eachArrangement runs a test for each arrangement of masters, which are given by what is wanted.
func eachArrangement[W comparable](t *testing.T, by map[W]string, test func(t *testing.T, masters string, want W)) {
	for want, arrangements := range by {
		for masters := range strings.FieldsSeq(arrangements) {
			t.Run(masters, func(t *testing.T) { test(t, masters, want) })
		}
	}
}

// brokenBy reports whether an error says that a caller with this label broke the hold.
func brokenBy(by string, err error) bool {
	var broken *protocol.Broken
	return errors.As(err, &broken) && *broken == protocol.Broken{Name: "x", By: by}
}

// wantOutcome fails unless a request came to this: what its answer said, or an error.
func wantOutcome(t *testing.T, want, said string, err error) {
	t.Helper()
	got := said
	if brokenBy("by", err) {
		got = "broken"
	} else if err != nil {
		got = "failed"
	}
	if got != want {
		t.Errorf("got %s, %v, want %s", said, err, want)
	}
}

// A hold is given back where a majority had it. Where any master says else that it was broken, it
// was: a second question finds nothing there, and must not take that for given back.
func TestFreeOfBrokenHoldTellsByMajority(t *testing.T) {
	eachArrangement(t, map[string]string{
		"given back": "hhr hhh hhd hdh hd- hhhrr",
		"broken":     "rrh bbh rrr rrd r-h rdh rdd rrrhh rrhhd rhh-- rrhdd",
		"none":       "--- --d",
		"failed":     "ddh",
	}, func(t *testing.T, masters, want string) {
		for _, keep := range []time.Duration{0, 30 * time.Second} {
			servers, p := arrangeMasters(t, masters, "3mx")
			was, err := tryFree(t, mutexOf(p), 1, keep)
			wantOutcome(t, want, map[bool]string{true: "given back", false: "none"}[was], err)
			for i, s := range servers {
				if masters[i] == 'd' {
					continue
				}
				until(t, "the master was told", func() bool {
					all := storedFields(t, s)
					remainder := all[brokenField(1)]
					return all[holdField(1)] == "" && (remainder == "" || keep > 0 &&
						expiryOf(t, remainder).Before(time.Now().Add(keep+enough))) &&
						(masters[i] != 'b' || all[holdField(2)] != "")
				})
			}
		}
	})
}

// A majority of yes is a yes, whatever a minority says. Where a majority cannot be, and a master
// says that the hold was broken, it was; then nothing is given back before its holder has stopped.
// A master where it was broken is not told of it again.
func TestRenewalOfBrokenHoldTellsByMajority(t *testing.T) {
	eachArrangement(t, map[string]string{
		"held":   "hhr hhb rhh hth thr hhhrr",
		"broken": "rrh bbh brr r-h rrd rrrhh r--hh",
		"failed": "rhd rhhdd",
		"gone":   "---",
	}, func(t *testing.T, masters, want string) {
		for _, ttl := range []time.Duration{0, 2 * time.Minute} {
			t.Run(ttl.String(), func(t *testing.T) {
				servers, p := arrangeMasters(t, masters, "3mx")
				renewal := renewalOf(mutexOf(p), 1, 7)
				renewal.TTL = ttl
				r := renewOnce(t, p, renewal)
				wantOutcome(t, want, map[bool]string{true: "held", false: "gone"}[r.Held], r.Err)
				if want == "failed" && !strings.HasPrefix(r.Err.Error(), `renew "x": `) {
					t.Errorf("got %v", r.Err)
				}
				waitQuiet(t, p) // also what is repaired, and given back
				for i, s := range servers {
					all := storedFields(t, s)
					hold, remainder := all[holdField(1)], all[brokenField(1)]
					switch masters[i] {
					case 'h', 't':
						if hold == "" {
							t.Errorf("master %d has ended the hold", i+1)
						}
					case 'r', 'b':
						if hold != "" || remainder == "" || expiryOf(t, remainder).After(time.Now().Add(time.Minute)) {
							t.Errorf("master %d has %q", i+1, all)
						}
					}
				}
			})
		}
	})
}

// Names of one command are told apart, also what is said of each.
func TestRenewalsOfManyNamesAreToldApart(t *testing.T) {
	servers, p := arrangeMasters(t, "bbh", "3mx")
	var renewals []protocol.Renewal
	labels := map[int]string{1: "", 3: "1:2:3", 4: "\x00R1"}
	for i := range 6 {
		name := fmt.Sprint("y", i)
		r := mutexNamed(p, name)
		wantStatus(t, "hold", tryAsk(t, r, 1), protocol.Held)
		if label, broken := labels[i]; broken {
			commandAll(t, servers, "DEL", "q:{%quorum}:"+name)
			commandAll(t, servers, "HSET", "q:{%quorum}:"+name, brokenField(1), remainderValue("3mx", label))
		}
		renewals = append(renewals, renewalOf(r, 1, 7))
	}
	waitQuiet(t, p)
	reported := 0
	p.Renew(t.Context(), renewals, func(i int, r protocol.RenewalAnswer) {
		reported++
		var said *protocol.Broken
		label, broken := labels[i]
		if broken != errors.As(r.Err, &said) || !broken && !r.Held || broken && (said.By != label ||
			said.Name != fmt.Sprint("y", i)) {
			t.Errorf("%d: got %+v", i, r)
		}
	})
	if reported != len(renewals) {
		t.Errorf("%d answers", reported)
	}
}

// A downgrade of what was broken says so.
func TestDowngradeOfBrokenHoldTellsByMajority(t *testing.T) {
	eachArrangement(t, map[string]string{
		"held":   "hhr hhhrr",
		"broken": "rrh rrd r-h rrrhh",
		"busy":   "---",
		"failed": "rhd",
	}, func(t *testing.T, masters, want string) {
		_, p := arrangeMasters(t, masters, "3rx")
		for range 2 {
			answer, err := readerOf(p, "").Downgrade(t.Context(), newAsk(1))
			said := map[protocol.Status]string{protocol.Held: "held", protocol.Busy: "busy"}[answer.Status]
			wantOutcome(t, want, said, err)
		}
	})
}

// A caller that is kept out is told the holder's token where it is known, whether it waits or not,
// and none where only remainders are left.
func TestBusyTellsTokenOfMajority(t *testing.T) {
	one, two := holdField(1), holdField(2)
	type holder struct {
		who       string // empty: nobody
		token, or int64  // it depends on who answers first
	}
	eachArrangement(t, map[holder]string{
		{one, 7, 7}: "hhh hhd",
		{one, 7, 0}: "hht hhhtt",
		{one, 0, 0}: "htt ttt httdd",
		{two, 8, 8}: "bbb bbd bbbdd",
		{"", 0, 0}:  "rrr rrd rrh",
	}, func(t *testing.T, masters string, want holder) {
		for _, ask := range []func(int) protocol.Ask{newAsk, newJoin} {
			_, p := arrangeMasters(t, masters, "3mx")
			got := mustAsk(t, mutexOf(p), ask(3))
			if wantStatus(t, "ask", got, protocol.Busy); got.Token != want.token && got.Token != want.or ||
				got.Holder.Owner != want.who || got.Holders != 1 {
				t.Errorf("got %+v, want %q with token %d", got, want.who, want.token)
			}
		}
	})
}

// The remainder that a break leaves at a majority keeps others out until the holder has stopped or
// its time is over, also while a master does not answer; at a minority it keeps nobody from what a
// majority agrees on.
func TestRemainderAtMajorityKeepsOthersOut(t *testing.T) {
	eachArrangement(t, map[bool]string{
		false: "rrr rr- rrd rrr-- rrrdd",
		true:  "r-- rr---",
	}, func(t *testing.T, masters string, enters bool) {
		_, p := arrangeMasters(t, masters, "3mx")
		answer := tryAsk(t, mutexOf(p), 3)
		if held := answer.Status == protocol.Held; held != enters {
			t.Fatalf("got %+v", answer)
		}
		if enters {
			return
		}
		if _, err := mutexOf(p).Ask(t.Context(), newAsk(1)); !brokenBy("by", err) {
			t.Errorf("its holder asks: %v", err)
		}
		if _, err := tryFree(t, mutexOf(p), 1, 0); !brokenBy("by", err) {
			t.Errorf("release: %v", err)
		}
		until(t, "it is free", func() bool { return tryAsk(t, mutexOf(p), 3).Status == protocol.Held })
	})
}

// A process that listens is told that its hold was broken: when a majority says so, and once more,
// as what came meanwhile may have told it nothing. A holder that cannot hear is told nothing.
func TestHolderOfBrokenHoldIsToldTwice(t *testing.T) {
	servers, p, other := startTwo(t)
	deaf := newAsk(3)
	deaf.Ticket.NoMessages = true
	silent := mustAsk(t, mutexNamed(p, "y"), deaf)
	held := mustHold(t, mutexOf(p), servers, 1)
	h := listen(t, servers, p)
	for name, token := range map[string]int64{"x": held.Token, "y": silent.Token} {
		if done, err := other.Break(t.Context(), name, breakOf(token)); !done || err != nil {
			t.Fatal(name, done, err)
		}
	}
	until(t, "it is told twice", func() bool { _, breaks := h.toldTo(1); return breaks >= 2 })
	if _, breaks := h.toldTo(3); breaks != 0 {
		t.Error("told")
	}
}

// A message that is none of ours, or of another format, tells nothing.
func TestForeignMessagesAreDropped(t *testing.T) {
	servers, p := startClient(t)
	h := listen(t, servers, p)
	id := string(ticketID(1))
	for _, text := range []string{"N" + id + "0", "R" + id, "2N" + id + "0", "2R" + id, "3R", "3N" + id,
		"3N" + id + "-1", "3X" + id + "0", "4N" + id + "0", "3R" + id[:21]} {
		commandAll(t, servers, "PUBLISH", p.channel, text)
	}
	commandAll(t, servers, "PUBLISH", p.channel, "3N"+string(ticketID(2))+"0") // each master's messages come in order
	until(t, "the last were heard", func() bool { nudges, _ := h.toldTo(2); return len(nudges) == 3 })
	if nudges, breaks := h.toldTo(1); len(nudges) != 0 || breaks != 0 {
		t.Errorf("told: %v, %d times", nudges, breaks)
	}
}

// untilTold waits until a waiter was last told to ask after so long.
func untilTold(t *testing.T, h *heard, n int, least, most time.Duration) {
	t.Helper()
	until(t, "the waiter is told", func() bool {
		nudges, _ := h.toldTo(n)
		return len(nudges) > 0 && nudges[len(nudges)-1] >= least && nudges[len(nudges)-1] < most
	})
}

// When a remainder alone is left, a waiter is told how long it keeps others out, and again when its
// holder has stopped before.
func TestWaiterBehindRemainderIsToldItsEnd(t *testing.T) {
	servers, p, other := startTwo(t)
	h, r := listen(t, servers, p), ownedBy(other, "o")
	held := mustHold(t, r, servers, 1)
	wantStatus(t, "its owner", tryAsk(t, r, 2), protocol.Held)
	waitQuiet(t, other)
	if done, err := doBreak(t, other, held.Token, 0); !done || err != nil {
		t.Fatal(done, err)
	}
	waitQuiet(t, other)
	wantStatus(t, "another", mustJoin(t, mutexOf(p), 3), protocol.Busy)
	until(t, "all masters know who waits", func() bool { return countWaiters(t, servers) == 3 })
	mustFree(t, r, 2)
	untilTold(t, h, 3, 20*time.Second, time.Hour) // when the remainder is over
	waitQuiet(t, other)
	if _, err := tryFree(t, r, 1, 0); err == nil {
		t.Fatal("given back")
	}
	untilTold(t, h, 3, 0, time.Second)
	wantStatus(t, "the waiter", tryAsk(t, mutexOf(p), 3), protocol.Held)
}

// A majority may come about as long as so many nodes answer, or refuse for a reason that passes.
func TestNoMajorityOfPassingReasonsPasses(t *testing.T) {
	p := &Protocol{need: 2}
	for i := range 3 {
		p.nodes = append(p.nodes, &node{p: p, index: i})
	}
	for name, c := range map[string]struct {
		reasons []protocol.Reason
		passes  bool
	}{
		"out of memory": {[]protocol.Reason{protocol.OutOfMemory, protocol.OutOfMemory, protocol.OutOfMemory},
			true},
		"cannot persist":   {[]protocol.Reason{protocol.Misconfigured, protocol.Misconfigured}, true},
		"loading and away": {[]protocol.Reason{protocol.Loading, protocol.NoAnswer, protocol.Unreachable}, true},
		"one denies":       {[]protocol.Reason{protocol.Denied, protocol.OutOfMemory}, true},
		"two deny":         {[]protocol.Reason{protocol.Denied, protocol.OutOfMemory, protocol.Denied}, false},
		"two refuse for ever": {[]protocol.Reason{protocol.Other, protocol.Unsupported, protocol.Misconfigured},
			false},
		"one refuses, one away": {[]protocol.Reason{protocol.Other, protocol.Unreachable}, true},
	} {
		answers := &tally{p: p}
		for i, reason := range c.reasons {
			answers.add(&reply{node: p.nodes[i], err: &protocol.Failure{Reason: reason, Err: errors.New("no")}})
		}
		if err := answers.noMajority("lock", "n"); err.Reason.Passing() != c.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
