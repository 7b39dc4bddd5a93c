package quorum

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

func reader(p *Protocol, owner string) protocol.Resource {
	return p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Shared: true, Owner: owner, Life: time.Minute})
}

func writer(p *Protocol, owner string) protocol.Resource {
	return p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Owner: owner, Life: time.Minute})
}

func TestSharing(t *testing.T) {
	p := client(t, start(t), true, id(0))
	r, w := reader(p, ""), writer(p, "")
	want(t, "first reader", try(t, r, 1), protocol.Held)
	want(t, "second reader", try(t, r, 2), protocol.Held)
	busy := try(t, w, 3)
	want(t, "writer among readers", busy, protocol.Busy)
	if busy.Holders != 2 {
		t.Errorf("%d holders, want 2", busy.Holders)
	}
	free(t, r, 1)
	want(t, "writer beside one reader", try(t, w, 3), protocol.Busy)
	free(t, r, 2)
	want(t, "writer alone", try(t, w, 3), protocol.Held)
	want(t, "reader beside a writer", try(t, r, 4), protocol.Busy)
	if !free(t, w, 3) || free(t, w, 3) {
		t.Error("a hold is given back once")
	}
}

// A writer that waits keeps new readers out, for half a second after each of its asks (trap 23).
func TestWritersDoNotStarve(t *testing.T) {
	p := client(t, start(t), true, id(0))
	r, w := reader(p, ""), writer(p, "")
	want(t, "reader", try(t, r, 1), protocol.Held)
	eventually(t, "a reader comes within half a second", func() bool {
		asked, waits := time.Now(), ask(2)
		waits.Join = true
		answer, err := w.Ask(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "writer", answer, protocol.Busy)
		if answer = try(t, r, 3); time.Since(asked) < 500*time.Millisecond {
			want(t, "a new reader before a writer", answer, protocol.Busy)
		}
		if answer.Status == protocol.Held {
			free(t, r, 3)
		}
		return answer.Status == protocol.Busy
	})
	want(t, "the reader that is in", try(t, r, 1), protocol.Held)
	free(t, r, 1)
	want(t, "writer", try(t, w, 2), protocol.Held)
}

// A waiting reader is told when an owner ceases to write, though the owner reads on.
func TestReadersAreWokenBesideAnOwner(t *testing.T) {
	p := client(t, start(t), true, id(0))
	heard := &nudges{}
	listening, err := p.Listen(t.Context(), heard)
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	want(t, "the owner writes", try(t, writer(p, "o"), 1), protocol.Held)
	want(t, "and reads", try(t, reader(p, "o"), 2), protocol.Held)
	waits := ask(3)
	waits.Join = true
	answer, err := reader(p, "").Ask(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "another reader", answer, protocol.Busy)
	free(t, writer(p, "o"), 1)
	eventually(t, "the reader is told", func() bool { return heard.count(id(3)) > 0 })
	want(t, "another reader", try(t, reader(p, ""), 3), protocol.Held)
}

// A writer that is in, or waits no more, keeps no reader out, and leaves nothing.
func TestReadersAfterAWriterThatWaited(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	for _, gives := range []bool{false, true} {
		want(t, "reader", try(t, reader(p, ""), 1), protocol.Held)
		waits := ask(2)
		waits.Join = true
		answer, err := writer(p, "").Ask(t.Context(), waits)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "writer", answer, protocol.Busy)
		eventually(t, "a majority knows the writer", func() bool {
			n := int64(0)
			for _, s := range servers {
				card, _ := s.(master).Server.Do("ZCARD", "q:{%quorum}+x")
				n += card.(int64)
			}
			return n >= 4
		})
		if gives {
			free(t, writer(p, ""), 2)
		} else {
			free(t, reader(p, ""), 1)
			want(t, "writer", try(t, writer(p, ""), 2), protocol.Held)
			free(t, writer(p, ""), 2)
			want(t, "reader", try(t, reader(p, ""), 1), protocol.Held)
		}
		want(t, "another reader", try(t, reader(p, ""), 3), protocol.Held)
		free(t, reader(p, ""), 1)
		free(t, reader(p, ""), 3)
		eventually(t, "nothing is left", func() bool {
			n := int64(0)
			for _, s := range servers {
				found, _ := s.(master).Server.Do("EXISTS", "q:{%quorum}:x", "q:{%quorum}+x", "q:{%quorum}=x")
				n += found.(int64)
			}
			return n == 0
		})
	}
}

func TestUpgrade(t *testing.T) {
	p := client(t, start(t), true, id(0))
	want(t, "reader", try(t, reader(p, "o"), 1), protocol.Held)
	var upgrade *protocol.Upgrade
	if _, err := writer(p, "o").Ask(t.Context(), ask(2)); !errors.As(err, &upgrade) {
		t.Errorf("an owner who shares asks to exclude: %v", err)
	}
	want(t, "the same owner shares again", try(t, reader(p, "o"), 3), protocol.Held)
}

func TestDowngrade(t *testing.T) {
	p := client(t, start(t), true, id(0))
	r, w := reader(p, ""), writer(p, "")
	was := try(t, w, 1)
	want(t, "writer", was, protocol.Held)
	for range 2 { // and a replay
		now, err := r.Downgrade(t.Context(), ask(1))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "downgrade", now, protocol.Held)
		if now.Token != was.Token || now.Block != was.Block {
			t.Errorf("tokens %d and %d, were %d and %d", now.Token, now.Block, was.Token, was.Block)
		}
	}
	want(t, "a reader beside it", try(t, r, 2), protocol.Held)
	want(t, "a writer", try(t, w, 3), protocol.Busy)
	if now, err := r.Downgrade(t.Context(), ask(9)); err != nil || now.Status != protocol.Busy {
		t.Errorf("downgrade of nothing: %v, %v", now, err)
	}
}

func TestOtherKind(t *testing.T) {
	p := client(t, start(t), true, id(0))
	want(t, "writer", try(t, writer(p, ""), 1), protocol.Held)
	var foreign *protocol.Foreign
	if _, err := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex}).Ask(t.Context(), ask(2)); !errors.As(err, &foreign) {
		t.Errorf("a mutex where there is a read-write lock: %v", err)
	}
}

func TestLook(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(99))
	heard := &nudges{}
	listening, err := p.Listen(t.Context(), heard)
	if err != nil {
		t.Fatal(err)
	}
	defer listening.Close()
	heardAt(t, servers, p)
	spec := protocol.Spec{Name: "x", Kind: protocol.Election, Owner: "o", Label: "who", Life: time.Minute}
	election := other.Bind(spec)
	watcher := protocol.Ticket{ID: id(7)}
	seen, err := p.Bind(spec).Look(t.Context(), &watcher)
	if err != nil || seen.Holders != 0 {
		t.Fatalf("nobody holds: %+v, %v", seen, err)
	}
	eventually(t, "all masters remember the watcher", func() bool {
		n := int64(0)
		for _, s := range servers {
			card, _ := s.(master).Server.Do("ZCARD", "q:{%quorum}=x")
			n += card.(int64)
		}
		return n == 3
	})
	held := try(t, election, 1)
	want(t, "election", held, protocol.Held)
	eventually(t, "the watcher is told by each master", func() bool { return heard.count(id(7)) == 3 })
	seen, err = p.Bind(spec).Look(t.Context(), nil)
	if err != nil || seen.Holders != 1 || seen.Token != held.Token || seen.Holder != (protocol.Party{Owner: "o", Label: "who"}) || seen.Since > seen.Server {
		t.Errorf("got %+v, %v; the token is %d", seen, err, held.Token)
	}
	if _, err := p.Bind(spec).Look(t.Context(), &watcher); err != nil {
		t.Fatal(err)
	}
	if err := p.Bind(spec).Unwatch(t.Context(), watcher); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	p := client(t, start(t), true, id(0))
	if f := p.Features(); f.Queue || !f.Tokens || f.NoPermits == "" || f.NoLatches == "" {
		t.Errorf("features %+v", f)
	}
	if _, err := p.AskAll(t.Context(), nil); !errors.Is(err, protocol.ErrApart) {
		t.Errorf("AskAll: %v", err)
	}
	latch, resource := p.BindLatch(protocol.Spec{Name: "x", Kind: protocol.Latch}), p.Bind(protocol.Spec{Name: "x", Kind: protocol.Semaphore})
	_, _, set := latch.Set(t.Context(), id(1), 1, time.Second, time.Now().Add(time.Second))
	_, count := latch.CountDown(t.Context(), id(1), time.Now().Add(time.Second), time.Now().Add(time.Second))
	_, look := latch.Look(t.Context(), nil)
	_, listen := p.ListenTicket(t.Context(), id(1), nil)
	for what, err := range map[string]error{"listen": listen, "set": set, "count down": count, "look": look, "unwatch": latch.Unwatch(t.Context(), protocol.Ticket{}),
		"resize": resource.Resize(t.Context(), 1, time.Now().Add(time.Second))} {
		var failure *protocol.Failure
		if !errors.As(err, &failure) || failure.Reason != protocol.Unsupported || failure.Reason.Passing() {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestBirth: masters that nobody trusts do not count before the longest TTL of any client is over,
// not only of one's own.
func TestBirth(t *testing.T) {
	servers := start(t)
	patient := New(servers, Config{Prefix: "q", Process: string(id(1)), MaxTTL: 3 * time.Second, Logger: client(t, servers, false, id(0)).config.Logger})
	defer patient.Close(time.Now().Add(time.Second))
	p := client(t, servers, false, id(2))
	began := time.Now()
	if _, err := patient.Status(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex})
	_, err := r.Ask(t.Context(), ask(1))
	var none *NoMajority
	var failure *protocol.Failure
	if !errors.As(err, &failure) || !failure.Reason.Passing() || !errors.As(failure.Err, &none) || !strings.Contains(err.Error(), "may have forgotten") {
		t.Fatalf("masters that began just now: %v", err)
	}
	eventually(t, "they count", func() bool {
		answer, err := r.Ask(t.Context(), ask(2))
		return err == nil && answer.Status == protocol.Held
	})
	if took := time.Since(began); took < 2900*time.Millisecond {
		t.Errorf("they counted after %v, and a client may hold for 3 s", took)
	}
}

// A writer that a minority kept out is known to wait there. Its place there goes with its hold, in
// whatever form that is given back, and keeps nobody out meanwhile.
func TestADowngradeLeavesNoPlace(t *testing.T) {
	for name, others := range map[string]bool{"a reader stays there": true, "the reader leaves": false} {
		t.Run(name, func(t *testing.T) {
			servers := start(t)
			p, first := client(t, servers, true, id(0)), servers[0].(master).Server
			value := written("3rs", 7, 7)
			if _, err := first.Do("HSET", "q:{%quorum}:x", string(id(9)), value); err != nil {
				t.Fatal(err)
			}
			asks := ask(1)
			asks.Join = true
			answer, err := writer(p, "").Ask(t.Context(), asks)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "a majority holds for the writer", answer, protocol.Held)
			left := func() int64 {
				n, _ := first.Do("EXISTS", "q:{%quorum}+x")
				return n.(int64)
			}
			eventually(t, "the first master knows it to wait", func() bool { return left() == 1 })
			if !others {
				if _, err := first.Do("DEL", "q:{%quorum}:x"); err != nil {
					t.Fatal(err)
				}
			}
			down, err := reader(p, "").Downgrade(t.Context(), ask(1))
			if err != nil || down.Status != protocol.Held {
				t.Fatalf("downgrade: %+v, %v", down, err)
			}
			eventually(t, "the first master forgets", func() bool { return left() == 0 })
			if !free(t, reader(p, ""), 1) {
				t.Error("there was no hold")
			}
		})
	}
	t.Run("that did not reach it", func(t *testing.T) {
		servers := start(t)
		p, first := client(t, servers, true, id(0)), servers[0].(master).Server
		hold(t, writer(p, ""), servers, 1)
		if _, err := first.Do("ZADD", "q:{%quorum}+x", "1", "!", "2", string(id(1))+"3rx"+"0:"+p.channel); err != nil {
			t.Fatal(err)
		}
		free(t, reader(p, ""), 1)
		eventually(t, "the first master forgets", func() bool {
			n, _ := first.Do("EXISTS", "q:{%quorum}+x")
			return n == int64(0)
		})
	})
}

// The place of a writer that was told and does not come goes, and keeps new readers out no longer.
func TestAWriterThatDoesNotCome(t *testing.T) {
	servers := start(t)
	p, first := client(t, servers, true, id(0)), servers[0].(master).Server
	hold(t, reader(p, ""), servers, 1)
	waits := ask(2)
	waits.Join = true
	answer, err := writer(p, "").Ask(t.Context(), waits)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "writer", answer, protocol.Busy)
	eventually(t, "the first master knows it to wait", func() bool {
		n, _ := first.Do("ZCARD", "q:{%quorum}+x")
		return n == int64(2)
	})
	free(t, reader(p, ""), 1)
	eventually(t, "it is told, or is not there", func() bool {
		n, _ := first.Do("ZCARD", "q:{%quorum}+x")
		return n.(int64) <= 1
	})
	if left, err := first.Do("PTTL", "q:{%quorum}+x"); err != nil || left.(int64) > 500 {
		t.Errorf("%v ms are left, %v", left, err)
	}
}

// A master that missed one of the holders is not what counts them.
func TestBusyCountsAllWhoHold(t *testing.T) {
	for _, missed := range [][2]int{{0, 1}, {0, 2}, {1, 0}, {1, 2}, {2, 0}, {2, 1}} {
		servers := start(t)
		p := client(t, servers, true, id(0))
		for reader, at := range missed {
			for i, s := range servers {
				if i != at {
					do(t, s, "HSET", "q:{%quorum}:x", string(id(8+reader)), written("3rs", 7, 7))
				}
			}
		}
		busy := try(t, writer(p, ""), 1)
		if want(t, "writer", busy, protocol.Busy); busy.Holders != 2 {
			t.Errorf("missed %v: %d holders, want 2", missed, busy.Holders)
		}
	}
}

// A hold that nobody gives back, because it was lost, leaves no place either.
func TestALostHoldLeavesNoPlace(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	do(t, servers[0], "HSET", "q:{%quorum}:x", string(id(9)), written("3mx", 7, 7))
	asks := ask(1)
	asks.Join, asks.Deadline = true, time.Now().Add(3*time.Second) // the place goes when no ask can make another
	answer, err := mutexOf(p).Ask(t.Context(), asks)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "hold", answer, protocol.Held)
	places := func() int64 { return do(t, servers[0], "EXISTS", "q:{%quorum}+x").(int64) }
	eventually(t, "the first master knows it to wait", func() bool { return places() == 1 })
	do(t, servers[0], "DEL", "q:{%quorum}:x")
	renew(t, p, protocol.Renewal{Resource: mutexOf(p), Ticket: asks.Ticket, Token: answer.Token, TTL: time.Minute})
	eventually(t, "the first master forgets", func() bool { return places() == 0 })
	for i, s := range servers {
		if !knows(t, s, 1) {
			t.Errorf("master %d forgot the hold", i+1)
		}
	}
}
