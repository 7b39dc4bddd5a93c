package quorum

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A client that meets a lock of an earlier format says so, and touches nothing: neither what is
// held, nor what is over.
func TestEarlierFormatIsToldAndLeft(t *testing.T) {
	ends := func(mode string, after time.Duration, payload string) string {
		return holdValueUntil(mode, time.Now().Add(after), 7, 7)[:payloadAt] + payload
	}
	for what, keeps := range map[string][]any{
		"a hold":               {holdField(1), ends("2mx", time.Minute, "1:olabel")},
		"the rest of min hold": {strings.Repeat("~", 21) + "x", ends("2mx", time.Minute, "0:")},
		"what is over":         {holdField(1), ends("2mx", -time.Minute, "1:olabel")},
		"what is over, and one of ours": {holdField(1), ends("2mx", -time.Minute, "1:olabel"),
			holdField(2), holdValue("3mx", 7, 7), holdField(3), ends("3mx", -time.Minute, "0:0:0:0:")},
	} {
		t.Run(what, func(t *testing.T) {
			servers, p := startClient(t)
			warmUp(t, p)
			commandAll(t, servers, append([]any{"HSET", stateKey}, keeps...)...)
			commandAll(t, servers, "PEXPIRE", stateKey, 60_000)
			before := storedFields(t, servers[0])
			for op, f := range requestsOf(t, mutexOf(p)) {
				err := f()
				waitQuiet(t, p)
				_, held := before[holdField(1)]
				var foreign *protocol.Foreign
				if errors.As(err, &foreign) == (op == "renew" && !held) || foreign != nil && op != "renew" &&
					!strings.Contains(err.Error(), "is a lock of kind m, format 2, not") {
					t.Errorf("%s: got %v", op, err)
				}
				for i, s := range servers {
					left := command(t, s, "PTTL", stateKey).(int64)
					if got := storedFields(t, s); !maps.Equal(got, before) || left < 10_000 || left > 60_000 {
						t.Fatalf("%s: master %d has %q for %d ms, had %q", op, i+1, got, left, before)
					}
					if n := command(t, s, "EXISTS", waitersKey, watchersKey); n != int64(0) {
						t.Errorf("%s: %d other keys", op, n)
					}
				}
			}
		})
	}
}

// A waiter of another format is not ours to wake.
func TestWaiterOfEarlierFormatIsLeft(t *testing.T) {
	servers, p := startClient(t)
	r := mutexOf(p)
	mustHold(t, r, servers, 1)
	commandAll(t, servers, "ZADD", waitersKey, "1", string(ticketID(9))+"2mx0:q:{%quorum}@nobody")
	mustFree(t, r, 1)
	waitQuiet(t, p)
	if n := countWaiters(t, servers); n != 3 {
		t.Errorf("%d wait", n)
	}
}

// The payload of a hold can be read, also that of a process that cannot be told anything.
func TestPayloadOfHoldIsReadable(t *testing.T) {
	servers := startMasters(t)
	p := newClient(t, servers, "host-7-random")
	for _, c := range []struct {
		spec protocol.Spec
		deaf bool
		want string
	}{
		{protocol.Spec{TTL: 15 * time.Second, Owner: "o", Label: "label"}, false,
			"15000:25:1:0:q:{%quorum}@host-7-randomolabel"},
		{protocol.Spec{TTL: 1500 * time.Microsecond, Fixed: true}, false, "1f:25:0:0:q:{%quorum}@host-7-random"},
		{protocol.Spec{TTL: time.Hour, Label: "a:b"}, true, "3600000:0:0:0:a:b"},
	} {
		c.spec.Name, c.spec.Kind, c.spec.Life = "x", protocol.Mutex, time.Minute
		r := p.bind(c.spec)
		asks := newAsk(1)
		asks.Ticket.NoMessages = c.deaf
		answer := mustAsk(t, r, asks)
		wantStatus(t, "hold", answer, protocol.Held)
		waitQuiet(t, p)
		token := wire.Digits16(answer.Token)
		for i, s := range servers {
			text := storedHold(t, s, 1)
			if len(text) < payloadAt || text[:endAt] != "3mx" || text[payloadAt:] != c.want ||
				tokensOf(text) != token+token && tokensOf(text) != strings.Repeat("0", 32) { // it has refused the token
				t.Errorf("master %d has %q, want %q", i+1, text, c.want)
			}
		}
		mustFree(t, r, 1)
		waitQuiet(t, p)
	}
}

// Extras that a later version writes are skipped, and stay with the hold.
func TestUnknownExtrasAreSkippedAndKept(t *testing.T) {
	servers, p := startClient(t)
	text := strings.TrimSuffix(holdValue("3mx", 7, 7), "0:0:0:") + "7:1:17:channelothink:2:ab" + "since:3:xyzlabel"
	text = strings.Replace(text, "7:1:17:", "7:1:21:", 1)
	storeHold(t, 1, text, servers...)
	r := mutexOf(p)
	busy := tryAsk(t, r, 3) // what gives it back may still be under way
	if wantStatus(t, "ask", busy, protocol.Busy); busy.Holder != (protocol.Party{Owner: "o", Label: "label"}) ||
		busy.Token != 7 {
		t.Errorf("got %+v", busy)
	}
	breakNode(t, r, 0, 7, breakOf(7))
	if got := storedFields(t, servers[0])[brokenField(1)]; !strings.HasSuffix(got, "think:2:ab"+"since:3:xyzlabel") {
		t.Errorf("broken: %q", got)
	}
	if _, _, err := p.nodes[0].freeHold(&cleanup{resource: r, id: ticketID(7), round: endless, how: 'b'},
		time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if got := storedHold(t, servers[0], 1); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
}

// An origin of another protocol, format or number of nodes is refused.
func TestOriginOfAnotherQuorumIsRefused(t *testing.T) {
	p := newClient(t, startMasters(t), ticketID(1))
	r := mutexOf(p)
	for _, origin := range []protocol.Origin{"", "m42", "n342:pchannel", "q3", "q31,2", "q31,2,3,4", "q41,2,3",
		"q3x,2,3"} {
		if _, err := r.Adopt(t.Context(), newAsk(1).Ticket, origin, true); !errors.Is(err, protocol.ErrOrigin) {
			t.Errorf("%q: %v", origin, err)
		}
	}
}

// The age of a fixed hold is not less than it is, however slow the answers were, that to its ask or
// those that tell of the nodes' clocks: its holder would trust it past its end.
func TestAdoptedFixedHoldIsNoYounger(t *testing.T) {
	for _, slow := range []string{"ask", "node"} {
		t.Run(slow, func(t *testing.T) {
			slowly := on(slow, func() error { <-time.After(100 * time.Millisecond); return nil })
			spec := protocol.Spec{Name: "x", Kind: protocol.Mutex, Fixed: true}
			servers, all, p := startGated(t)
			warmUp(t, p)
			came := make(chan time.Time, len(all))
			for _, g := range all {
				g.atRequest(on("ask", func() error { came <- time.Now(); return nil }))
				g.atAnswer(slowly)
			}
			r := p.bind(spec)
			answer := tryAsk(t, r, 1)
			wantStatus(t, "hold", answer, protocol.Held)
			for _, g := range all {
				g.atAnswer(nil)
			}
			mustStatus(t, p) // it knows the clocks well
			held, origin := <-came, r.Origin(newAsk(1).Ticket, answer.Server)
			others, behind := gates(servers)
			for _, g := range others {
				g.atAnswer(slowly)
			}
			got, err := newClient(t, behind, ticketID(7)).bind(spec).Adopt(t.Context(), newAsk(1).Ticket, origin, true)
			if age := time.Duration(got.Server-got.Granted) * time.Microsecond; err != nil || age < got.Sent.Sub(held) {
				t.Errorf("%v old, %v after it was held: %v", age, got.Sent.Sub(held), err)
			}
		})
	}
}

// TestDigests checks the constants of digests.go (trap 30: nothing computes SHA-1 at run time).
// UPDATE_DIGESTS=1 writes them anew after a script was changed.
func TestDigests(t *testing.T) {
	text := "package quorum\n\n// Code generated by UPDATE_DIGESTS=1 go test ./internal/quorum; DO NOT EDIT.\n\n" +
		"// digests are the SHA-1 of the scripts as they go over the wire, of the usual prefix.\nvar digests = map[string]string{\n"
	stale := false
	for _, name := range names {
		sum := sha1.Sum([]byte(source(usual, name))) //nolint:gosec // as above
		digest := hex.EncodeToString(sum[:])
		text += fmt.Sprintf("\t%q:%*s%q,\n", name, 10-len(name), "", digest)
		if digests[name] != digest {
			stale = true
			t.Logf("%s: digest is %s, script has %s", name, digests[name], digest)
		}
	}
	if !stale {
		return
	}
	if os.Getenv("UPDATE_DIGESTS") == "" {
		t.Fatal("digests.go is out of date: UPDATE_DIGESTS=1 go test ./internal/quorum")
	}
	fatal.If(t, os.WriteFile("digests.go", []byte(text+"}\n"), 0o644))
}

// Two quorums on the same masters, under two prefixes: that the first has seen a restart is nothing
// to the second, which has a memory of its own that came back from a snapshot.
func TestRestartIsSeenByEachPrefix(t *testing.T) {
	servers := startMasters(t)
	prefixes := []string{"q", usual, "with \"quotes\"\nand lines"}
	counting := func(prefix string) int64 { return countAll(t, servers, "HEXISTS", prefix+":{%quorum}", "counts") }
	for _, prefix := range prefixes {
		founder := openProtocol(t, servers, Config{Prefix: prefix, Process: "founder", MaxTTL: time.Hour, Trust: true})
		until(t, "all count", func() bool { mustStatus(t, founder); return counting(prefix) == 3 })
		waitQuiet(t, founder) // it would let one that forgot count again
	}
	restartMaster(t, servers[0], prefixes...)
	for _, prefix := range prefixes {
		p := openProtocol(t, servers, Config{Prefix: prefix, Process: "another", MaxTTL: time.Hour})
		wantStatus(t, "two of three", tryAsk(t, mutexOf(p), 1), protocol.Held)
		nodes := mustStatus(t, p)
		if nodes[0].Counts || nodes[0].Err != nil || !nodes[1].Counts || counting(prefix) != 2 {
			t.Errorf("prefix %q: %v", prefix, nodes)
		}
	}
}

// A liar is a master that tells its facts when it is asked for them, and answers every other script
// alike.
type liar struct {
	honest bool // else the facts are a lie too
	reply  wire.Reply
	asked  atomic.Int64 // how often it was asked for a name
}

func (l *liar) answer(_ context.Context, r wire.Request) wire.Reply {
	<-time.After(time.Millisecond) // rounds without a pace are some thousand a second, not a million
	switch {
	case r.Args[1] == digests["ask"]:
		l.asked.Add(1)
	case l.honest && r.Args[1] == digests["node"]:
		now := time.Now().UnixMicro()
		return wire.Reply{Value: "N" + wire.Digits16(now) + wire.Digits16(now-1e9) + nameless + "1" +
			wire.Digits16(now-1e6) + "1000"}
	}
	return l.reply
}

// openLiars makes a protocol whose masters answer like this, and tell facts if honest.
func openLiars(t *testing.T, honest bool, replies ...wire.Reply) (p *Protocol, all []*liar) {
	var stores []wire.Store
	for _, reply := range replies {
		l := &liar{honest: honest, reply: reply}
		all, stores = append(all, l), append(stores, fake(l.answer))
	}
	return openProtocol(t, stores, Config{Prefix: usual, Process: "p", MaxTTL: time.Second}), all
}

// FuzzReplies: no reply of masters, of whatever shape, makes a client panic or wait for ever, and
// what is read as a grant has a token.
func FuzzReplies(f *testing.F) {
	const (
		facts = "0946684800000000" + "0946684700000000" + "0000000000000000" + "1" + "0946684790000000"
		named = "0946684800000000" + "0946684700000000" + "the-same-server1" + "1" + "0946684790000000"
		id    = "0123456789012345678901"
		token = "0946684800000001"
	)
	for _, text := range []string{"", "H" + facts + token + token, "H" + facts + token, "B" + facts + "1000|1|0|" +
		id + token + "1000f:1:1:0:cow", "B" + facts + "|||",
		"T" + facts, "Y" + facts, "U" + facts, "L" + token, "L", "S" + facts + "1|0|" + id + token + "9:0:1:3:oa:0L",
		"S" + facts + "0|0|", "S" + facts + "-1|9|x",
		"R" + facts + "1", "R" + facts, "R" + facts + "R6:rlabel", "R" + facts + "R0:", "R" + facts + "R9:r",
		"Rrlabel", "R", "1", "0",
		"I" + facts + "11000|1|0:22:76:" + id + "3mx0946684860000" + token + token + token + "60000:0:0:0:", "I" +
			facts + "01000|3|2:is", "I" + facts + "1|",
		"I" + facts + "11000|1|0:99:-1:", "I" + facts + "1", "X" + facts + id, "X" + facts, "0" + facts, "R" + facts +
			"bby", "F1sx", "F", "N" + facts + "1000", "N" + strings.Repeat("9", headSize-1) + "9223372036854775807",
		"H" + strings.Repeat("9", headSize+31), "NOSCRIPT no", "B" + facts +
			"9223372036854775807|9223372036854775807|-1|" + id + token + "9:99999:1:1:"} {
		for shape := range byte(4) {
			f.Add(shape, text, text)
		}
		f.Add(byte(0), text, "H"+facts+token+token)
		f.Add(byte(4), text, text)
	}
	f.Add(byte(4), "0", strings.Repeat("0", headSize+1)) // a memory that began at 0 was told to begin anew for ever
	f.Add(byte(0), "T"+named+"1", "H"+named+token+token)
	f.Add(byte(0), "", "H"+facts+"0946684800000001"+"0346684800000001") // a block that ends before it begins
	f.Fuzz(func(t *testing.T, shape byte, one, other string) {
		synctest.Test(t, func(t *testing.T) {
			shaped := func(text string) wire.Reply {
				switch shape % 4 {
				case 1:
					return wire.Reply{Value: []any{text, int64(len(text)), nil}}
				case 2:
					return wire.Reply{Refused: "ERR " + text}
				case 3:
					return wire.Reply{Refused: text + " "}
				}
				return wire.Reply{Value: text}
			}
			p, _ := openLiars(t, shape%8 < 4, shaped(one), shaped(other), shaped(other))
			r := p.Bind(protocol.Spec{Name: "n", Kind: protocol.Mutex, Owner: "o", Label: "l", Claim: time.Second,
				Life: time.Minute})
			ask := protocol.Ask{Ticket: protocol.Ticket{ID: id, Block: 1}, TTL: time.Second,
				Deadline: time.Now().Add(200 * time.Millisecond)}
			ctx, cancel := context.WithDeadline(t.Context(), ask.Deadline)
			defer cancel()
			judge := func(op string, answer protocol.Answer, err error) {
				if err == nil && answer.Status == protocol.Held && (answer.Token <= 0 || answer.Block <= 0) {
					t.Errorf("%s: %q and %q were read as a grant of the token %d, %d of them", op, one, other,
						answer.Token, answer.Block)
				}
			}
			answer, err := r.Ask(ctx, ask)
			judge("ask", answer, err)
			answer, err = r.Downgrade(ctx, ask)
			judge("downgrade", answer, err)
			_, _ = r.Free(ctx, protocol.FreeRequest{Ticket: ask.Ticket})
			_, _ = r.Look(ctx, &ask.Ticket)
			_ = r.Unwatch(ctx, ask.Ticket)
			_, _ = p.Status(ctx)
			_, _ = p.Break(ctx, "n", protocol.Break{Kind: protocol.Mutex, Token: 1})
			_, _ = p.Inspect(ctx, "n", protocol.Page{Holds: 9})
			reported := 0
			p.Renew(ctx, []protocol.Renewal{{Resource: r, Ticket: ask.Ticket, TTL: time.Second}}, func(int,
				protocol.RenewalAnswer) {
				reported++
			})
			if reported != 1 {
				t.Errorf("one renewal was answered %d times", reported)
			}
		})
	})
}

// Masters that refuse every token, or of which each names another holder, are asked in rounds as
// often as the pace of the Ask allows.
func TestRoundsKeepPace(t *testing.T) {
	const facts = "0946684800000000" + "0946684700000000" + "0000000000000000" + "1" + "0946684790000000"
	busy := "B" + facts + "1000|1|0|012345678901234567890%d094668480000000160000:0:0:0:"
	for name, text := range map[string]string{"every token is refused": "T" + facts,
		"each names another holder": busy} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var replies []wire.Reply
				for i := range 3 {
					replies = append(replies, wire.Reply{Value: strings.ReplaceAll(text, "%d", strconv.Itoa(i))})
				}
				p, all := openLiars(t, true, replies...)
				asking := newAsk(1)
				asking.Pace = &protocol.Pace{Every: 100 * time.Millisecond}
				began := time.Now()
				if answer, err := mutexOf(p).Ask(t.Context(), asking); err == nil && answer.Status == protocol.Held {
					t.Errorf("got %+v", answer)
				}
				took := time.Since(began)
				if rounds, most := all[0].asked.Load(), 11+int64(took/(100*time.Millisecond)); took < time.Second ||
					rounds > most || rounds < most/2 {
					t.Errorf("%d rounds in %v, want %d at most", rounds, took, most)
				}
			})
		})
	}
}
