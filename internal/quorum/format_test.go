package quorum

import (
	"crypto/sha1" //nolint:gosec // the server names scripts by it
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A client that meets a lock of an earlier format says so, and touches nothing: neither what is
// held, nor what is over.
func TestEarlierFormatIsToldAndLeft(t *testing.T) {
	ends := func(mode string, after time.Duration, payload string) string {
		return holdValueUntil(mode, time.Now().Add(after), 7, 7)[:64] + payload
	}
	for what, keeps := range map[string][]any{
		"a hold":               {string(id(1)), ends("2mx", time.Minute, "1:olabel")},
		"the rest of min hold": {strings.Repeat("~", 21) + "x", ends("2mx", time.Minute, "0:")},
		"what is over":         {string(id(1)), ends("2mx", -time.Minute, "1:olabel")},
		"what is over, and one of ours": {string(id(1)), ends("2mx", -time.Minute, "1:olabel"),
			string(id(2)), holdValue("3mx", 7, 7), string(id(3)), ends("3mx", -time.Minute, "0:0:0:0:")},
	} {
		t.Run(what, func(t *testing.T) {
			servers, p := startClient(t)
			warm(t, p)
			doAll(t, servers, append([]any{"HSET", "q:{%quorum}:x"}, keeps...)...)
			doAll(t, servers, "PEXPIRE", "q:{%quorum}:x", 60_000)
			before := fields(t, servers[0])
			for op, f := range requestsOf(t, mutexOf(p)) {
				err := f()
				waitQuiet(t, p)
				_, held := before[string(id(1))]
				var foreign *protocol.Foreign
				if errors.As(err, &foreign) == (op == "renew" && !held) || foreign != nil && op != "renew" &&
					!strings.Contains(err.Error(), "is a lock of kind m, format 2, not") {
					t.Errorf("%s: got %v", op, err)
				}
				for i, s := range servers {
					left := do(t, s, "PTTL", "q:{%quorum}:x").(int64)
					if got := fields(t, s); !maps.Equal(got, before) || left < 10_000 || left > 60_000 {
						t.Fatalf("%s: master %d has %q for %d ms, had %q", op, i+1, got, left, before)
					}
					if n := do(t, s, "EXISTS", "q:{%quorum}+x", "q:{%quorum}=x"); n != int64(0) {
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
	hold(t, r, servers, 1)
	doAll(t, servers, "ZADD", "q:{%quorum}+x", "1", string(id(9))+"2mx0:q:{%quorum}@nobody")
	free(t, r, 1)
	waitQuiet(t, p)
	if n := places(t, servers); n != 3 {
		t.Errorf("%d wait", n)
	}
}

// The payload of a hold can be read, also that of a process that cannot be told anything.
func TestPayloadOfHoldIsReadable(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, "host-7-random")
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
		asks := ask(1)
		asks.Ticket.NoMessages = c.deaf
		answer := mustAsk(t, r, asks)
		want(t, "hold", answer, protocol.Held)
		waitQuiet(t, p)
		token := wire.Digits16(answer.Token)
		for i, s := range servers {
			if text := value(t, s, 1); len(text) < 64 || text[:3] != "3mx" || text[64:] != c.want ||
				text[16:48] != token+token && text[16:48] != strings.Repeat("0", 32) { // it has refused the token
				t.Errorf("master %d has %q, want %q", i+1, text, c.want)
			}
		}
		free(t, r, 1)
		waitQuiet(t, p)
	}
}

// Extras that a later version writes are skipped, and stay with the hold.
func TestUnknownExtrasAreSkippedAndKept(t *testing.T) {
	servers, p := startClient(t)
	text := strings.TrimSuffix(holdValue("3mx", 7, 7), "0:0:0:") + "7:1:17:channelothink:2:ab" + "since:3:xyzlabel"
	text = strings.Replace(text, "7:1:17:", "7:1:21:", 1)
	put(t, 1, text, servers...)
	r := mutexOf(p)
	busy := tryAsk(t, r, 3) // what gives it back may still be under way
	if want(t, "ask", busy, protocol.Busy); busy.Holder != (protocol.Party{Owner: "o", Label: "label"}) ||
		busy.Token != 7 {
		t.Errorf("got %+v", busy)
	}
	breakNode(t, r, 0, 7, breaks(7))
	if got := fields(t, servers[0])["-"+string(id(1))]; !strings.HasSuffix(got, "think:2:ab"+"since:3:xyzlabel") {
		t.Errorf("broken: %q", got)
	}
	if _, _, err := p.nodes[0].freeHold(&cleanup{resource: r, id: id(7), round: endless, how: 'b'},
		time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
	if got := value(t, servers[0], 1); got != text {
		t.Errorf("got %q, want %q", got, text)
	}
}

// An origin of another protocol, format or number of nodes is refused.
func TestOriginOfAnotherQuorumIsRefused(t *testing.T) {
	p := client(t, start(t), true, id(1))
	r := mutexOf(p)
	for _, origin := range []protocol.Origin{"", "m42", "n342:pchannel", "q3", "q31,2", "q31,2,3,4", "q41,2,3",
		"q3x,2,3"} {
		if _, err := r.Adopt(t.Context(), ask(1).Ticket, origin, true); !errors.Is(err, protocol.ErrOrigin) {
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
			warm(t, p)
			came := make(chan time.Time, len(all))
			for _, g := range all {
				g.set(on("ask", func() error { came <- time.Now(); return nil }))
				g.answers(slowly)
			}
			r := p.bind(spec)
			answer := tryAsk(t, r, 1)
			want(t, "hold", answer, protocol.Held)
			for _, g := range all {
				g.answers(nil)
			}
			status(t, p) // it knows the clocks well
			held, origin := <-came, r.Origin(ask(1).Ticket, answer.Server)
			others, behind := gates(servers)
			for _, g := range others {
				g.answers(slowly)
			}
			got, err := client(t, behind, true, id(7)).bind(spec).Adopt(t.Context(), ask(1).Ticket, origin, true)
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
	if err := os.WriteFile("digests.go", []byte(text+"}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Two quorums on the same masters, under two prefixes: that the first has seen a restart is nothing
// to the second, which has a memory of its own that came back from a snapshot.
func TestRestartIsSeenByEachPrefix(t *testing.T) {
	servers := start(t)
	prefixes := []string{"q", usual, "with \"quotes\"\nand lines"}
	counting := func(prefix string) int64 { return countAll(t, servers, "HEXISTS", prefix+":{%quorum}", "counts") }
	for _, prefix := range prefixes {
		founder := open(t, servers, Config{Prefix: prefix, Process: string(id(1)), MaxTTL: time.Hour, Trust: true})
		until(t, "all count", func() bool { status(t, founder); return counting(prefix) == 3 })
		waitQuiet(t, founder) // it would let one that forgot count again
	}
	restart(t, servers[0], prefixes...)
	for _, prefix := range prefixes {
		p := open(t, servers, Config{Prefix: prefix, Process: string(id(1)), MaxTTL: time.Hour})
		want(t, "two of three", tryAsk(t, mutexOf(p), 1), protocol.Held)
		if nodes := status(t, p); nodes[0].Counts || nodes[0].Err != nil || !nodes[1].Counts || counting(prefix) != 2 {
			t.Errorf("prefix %q: %v", prefix, nodes)
		}
	}
}
