package quorum

import (
	"context"
	"errors"
	"runtime"
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

func noMajorityOf(t *testing.T, err error) *NoMajority {
	t.Helper()
	var none *NoMajority
	if !errors.As(err, &none) {
		t.Fatalf("got %v", err)
	}
	return none
}

// The holds of an ask that failed are given back, whenever the failure is known.
func TestAskThatFailsIsGivenBack(t *testing.T) {
	t.Run("another holds at a majority", func(t *testing.T) {
		servers, p := startClient(t)
		warmUp(t, p)
		storeHold(t, 9, holdValue("3mx", 7, 7), servers[1], servers[2])
		wantStatus(t, "ask", tryAsk(t, mutexOf(p), 1), protocol.Busy)
		untilFree(t, servers, 1)
	})
	for name, lost := range map[string]error{"no majority": nil, "an answer is lost": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			servers, all, p := startGated(t)
			warmUp(t, p)
			won := make(chan bool, 1)
			all[0].atAnswer(on("ask", func() error { won <- keepsHold(t, servers[0], 1); return lost }))
			all[1].shut()
			all[2].shut()
			_, err := mutexOf(p).Ask(t.Context(), newAsk(1))
			noMajorityOf(t, err)
			if !<-won { // the error may be known before
				t.Error("it never won")
			}
			if lost != nil { // what it won is given back when the request can take effect no more, or by Close
				until(t, "it is noted, or forgotten", func() bool {
					p.mu.Lock()
					defer p.mu.Unlock()
					n := p.nodes[0]
					n.mu.Lock()
					defer n.mu.Unlock()
					return p.running == 0 || len(n.pendingCleanups) > 0
				})
				p.Close(time.Now().Add(enough))
			}
			untilFree(t, servers, 1)
		})
	}
	t.Run("its context ends, and the answers come later", func(t *testing.T) {
		servers, all, p := startGated(t)
		warmUp(t, p)
		late := make([]*once, len(all))
		for i, g := range all {
			late[i] = newOnce()
			g.atAnswer(late[i].holdUp("ask"))
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, 1)
		go func() {
			_, err := mutexOf(p).Ask(ctx, newAsk(1))
			failed <- err
		}()
		for i, o := range late {
			<-o.came
			if !keepsHold(t, servers[i], 1) {
				t.Error("it never won")
			}
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		for _, o := range late {
			close(o.goes)
		}
		untilFree(t, servers, 1)
	})
}

// countFollowing returns how many asks wait until the releases before them are done. Their
// goroutines stand still in awaitClosed.
func countFollowing() (n int) {
	stacks := make([]byte, 1<<20)
	for stack := range strings.SplitSeq(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		head, calls, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "[select") && strings.HasPrefix(calls,
			"github.com/holdfast-go/holdfast/internal/quorum.awaitClosed(") &&
			strings.Contains(calls, "sendRound") {
			n++
		}
	}
	return n
}

// A process asks a master for a name only after it has given back there what it had: its own hold
// would keep it out, for as long as the others that gave it back do not answer.
func TestAskFollowsRelease(t *testing.T) {
	servers, all, p := startGated(t)
	r := mutexOf(p)
	mustHold(t, r, servers, 1)
	late := newOnce()
	overtaken := make(chan struct{}, 100)
	all[0].atRequest(func(op string) error {
		switch op {
		case "free":
			late.wait()
		case "ask":
			overtaken <- struct{}{}
		}
		return nil
	})
	if !mustFree(t, r, 1) { // by the other two
		t.Fatal("there was no hold")
	}
	<-late.came
	all[2].shut()
	got := make(chan protocol.Answer, 1)
	go func() {
		answer, err := r.Ask(t.Context(), newAsk(2))
		if err != nil {
			t.Error(err)
		}
		got <- answer
	}()
	until(t, "the ask waits for the release, or went ahead of it", func() bool {
		return len(overtaken) > 0 || countFollowing() > 0
	})
	if len(overtaken) > 0 {
		t.Error("asked before it gave back")
	}
	close(late.goes)
	wantStatus(t, "the next hold", <-got, protocol.Held)
}

// And it gives back at a master only after its ask was answered there, or can take effect no more:
// the ask would bring back what nobody knows of.
func TestReleaseFollowsAsk(t *testing.T) {
	servers, all, p := startGated(t)
	r := mutexOf(p)
	warmUp(t, p)
	late, freed := newOnce(), newOnce()
	close(freed.goes)
	all[0].atRequest(func(op string) error {
		switch op {
		case "ask":
			late.wait()
		case "free":
			freed.wait()
		}
		return nil
	})
	wantStatus(t, "hold", tryAsk(t, r, 1), protocol.Held)
	<-late.came
	if !mustFree(t, r, 1) {
		t.Error("there was no hold")
	}
	until(t, "the release waits for the ask, or went ahead of it", func() bool {
		select {
		case <-freed.came:
			t.Error("it gave back before it asked")
			return true
		default:
		}
		n := p.nodes[0]
		n.mu.Lock()
		defer n.mu.Unlock()
		asks := n.pendingAsks[ticketID(1)]
		return asks != nil && asks.done != nil
	})
	close(late.goes)
	<-freed.came
	untilFree(t, servers, 1)
}

// A ticket keeps its place if its first goroutine gave up and another one goes on with it late.
func TestTicketThatGoesOnKeepsPlace(t *testing.T) {
	servers, all, p := startGated(t)
	r := mutexOf(p)
	mustHold(t, r, servers, 1)
	gone := make([]*once, len(all))
	for i, g := range all {
		gone[i] = newOnce()
		g.atRequest(gone[i].holdUp("free"))
	}
	waits := func(ctx context.Context) {
		if answer, err := r.Ask(ctx, newJoin(2)); err != nil || answer.Status != protocol.Busy {
			t.Errorf("got %+v, %v", answer, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits(ctx)
	until(t, "all know who waits", func() bool { return countWaiters(t, servers) == 3 })
	cancel()
	for _, o := range gone {
		<-o.came
	}
	next := make(chan struct{})
	go func() { defer close(next); waits(t.Context()) }()
	until(t, "the asks wait for what is on its way, or went ahead of it", func() bool {
		select {
		case <-next:
			return true
		default:
			return countFollowing() == len(gone)
		}
	})
	for _, o := range gone {
		close(o.goes)
	}
	<-next
	waitQuiet(t, p) // what was given back is
	until(t, "all know who waits", func() bool { return countWaiters(t, servers) == 3 })
}

// An Ask that gives an older hold up gives it back later at a master that did not answer, whatever
// caller is in by then.
func TestYieldThatDidNotArriveIsGivenBack(t *testing.T) {
	for name, status := range map[string]protocol.Status{"kept": protocol.Held,
		"left to one who waits": protocol.Busy} {
		t.Run(name, func(t *testing.T) {
			servers, all, p := startGated(t)
			r := mutexOf(p)
			mustHold(t, r, servers, 1)
			if status == protocol.Busy {
				commandAll(t, servers, "ZADD", waitersKey, "1", string(ticketID(9))+"3mx0:q:{%quorum}@nobody")
			}
			all[2].shut()
			wantStatus(t, "yield", mustAsk(t, r, newYield(2, 1)), status)
			all[2].atRequest(nil)
			until(t, "the old hold is given back", func() bool { return !keepsHold(t, servers[2], 1) })
		})
	}
}

// A round that failed is given back at a master that did not answer as soon as it does, by when the
// hold may have been confirmed there: it was renewed, downgraded or set again. Then it stays, as it
// is trusted.
func TestLateGiveBackLeavesConfirmedHold(t *testing.T) {
	for name, confirm := range map[string]func(t *testing.T, p *Protocol, s wire.Store, token int64) *resource{
		"renewed": func(t *testing.T, p *Protocol, _ wire.Store, token int64) *resource {
			mustRenew(t, p, renewalOf(writerOf(p, ""), 1, token))
			return writerOf(p, "")
		},
		"set again": func(t *testing.T, p *Protocol, s wire.Store, token int64) *resource {
			command(t, s, "DEL", stateKey)
			mustRenew(t, p, renewalOf(writerOf(p, ""), 1, token))
			return writerOf(p, "")
		},
		"downgraded": func(t *testing.T, p *Protocol, s wire.Store, _ int64) *resource {
			answer, err := readerOf(p, "").Downgrade(t.Context(), newAsk(1))
			fatal.If(t, err)
			wantStatus(t, "downgrade", answer, protocol.Held)
			until(t, "it shares", func() bool { return strings.HasPrefix(storedHold(t, s, 1), "3rs") })
			return readerOf(p, "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers, p := startClient(t)
			held := mustHold(t, writerOf(p, ""), servers, 1)
			// A master that learns the floor of its tokens between the greeting and the ask refuses
			// them, and then a renewal sets the whole hold again. This one has accepted them.
			text := storedHold(t, servers[0], 1)
			storeHold(t, 1, withTokens(text, held.Token, held.Token), servers[0])
			r := confirm(t, p, servers[0], held.Token)
			late := &cleanup{resource: r, id: ticketID(1), round: p.rounds.Load(), how: 'q'}
			if was, _, err := p.nodes[0].freeHold(late, time.Now().Add(enough)); was != '0' || err != nil ||
				!keepsHold(t, servers[0], 1) {
				t.Errorf("given back: %q, %v", was, err)
			}
			if !mustFree(t, r, 1) {
				t.Error("there was no hold")
			}
			untilFree(t, servers, 1) // a majority has answered
		})
	}
}

// A master that does not answer is asked for little of what is to be given back there, and for all
// of it once it answers.
func TestCleanupOfSilentMasterIsNoFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var on atomic.Bool
		var asked, answered atomic.Int64
		s := fake(func(context.Context, wire.Request) wire.Reply {
			if asked.Add(1); on.Load() {
				answered.Add(1)
				return wire.Reply{Value: "1"}
			}
			return wire.Reply{Err: errShut, Unsent: true}
		})
		p := openProtocol(t, []wire.Store{s, s, s}, Config{Prefix: usual, Process: "p", MaxTTL: time.Second})
		const holds = 200
		for n := range holds {
			p.nodes[0].addCleanup(cleanup{resource: mutexOf(p), id: ticketID(n), round: endless, how: 'f',
				notBefore: time.Now(), until: time.Now().Add(time.Minute)})
		}
		<-time.After(10 * time.Second)
		if n := asked.Load(); n > holds+20 {
			t.Errorf("asked %d times: once for each, and then once a pause, are about %d", n, holds+14)
		}
		on.Store(true)
		<-time.After(2 * time.Second)
		if n := answered.Load(); n != holds {
			t.Errorf("%d of %d are given back", n, holds)
		}
	})
}

// Trap 28: who waits, or watches, is kept in a key that is of another type. It is named, and left
// as it was.
func TestReleaseBesideForeignKeyLeavesIt(t *testing.T) {
	servers, p := startClient(t)
	mutex := mutexOf(p)
	for n, key := range []string{waitersKey, watchersKey} {
		mustHold(t, mutex, servers, n)
		commandAll(t, servers, "RPUSH", key, "text")
		if _, err := tryFree(t, mutex, n, 0); err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
			t.Errorf("got %v", err)
		}
		if countAll(t, servers, "LLEN", key) != 3 || countAll(t, servers, "DEL", key) != 3 {
			t.Error("touched")
		}
		_, _ = tryFree(t, mutex, n, 0)
		untilFree(t, servers, n)
	}
}
