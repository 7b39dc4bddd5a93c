package quorum

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// renew renews once, and waits until all masters have answered.
func renew(t *testing.T, p *Protocol, renewal protocol.Renewal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	p.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, r protocol.Renewed) {
		if !r.Held || r.Err != nil {
			t.Errorf("renewed: %+v", r)
		}
	})
	eventually(t, "the renewal ends", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.repairs) == 0
	})
}

// value is what a master keeps of a hold.
func value(t *testing.T, s wire.Store, n int) string {
	t.Helper()
	text, _ := do(t, s, "HGET", "q:{%quorum}:x", string(id(n))).(string)
	return text
}

// The next renewal tells a master all that it missed of a hold: the hold, its tokens, that it
// shares by now; and never for longer than it may last, nor for shorter.
func TestRepair(t *testing.T) {
	const far = 10 * time.Minute
	for _, c := range []struct {
		name   string
		missed func(t *testing.T, s wire.Store, text string)
		change func(p *Protocol, r *protocol.Renewal)
		ends   time.Duration // from now, at most some seconds less
	}{
		{"the hold", func(t *testing.T, s wire.Store, _ string) { do(t, s, "DEL", "q:{%quorum}:x") }, nil, time.Minute},
		{"its tokens", func(t *testing.T, s wire.Store, text string) {
			do(t, s, "HSET", "q:{%quorum}:x", string(id(1)), text[:16]+strings.Repeat("0", 32)+text[48:])
		}, nil, time.Minute},
		{"other tokens", func(t *testing.T, s wire.Store, text string) {
			do(t, s, "HSET", "q:{%quorum}:x", string(id(1)), text[:16]+strings.Repeat(wire.Digits16(5), 2)+text[48:])
		}, nil, time.Minute},
		{"that it shares", func(t *testing.T, s wire.Store, text string) {
			do(t, s, "HSET", "q:{%quorum}:x", string(id(1)), text[:2]+"x"+text[3:])
		}, nil, time.Minute},
		{"the rest of a min hold", func(t *testing.T, s wire.Store, _ string) { do(t, s, "DEL", "q:{%quorum}:x") },
			func(p *Protocol, r *protocol.Renewal) { r.Floor = p.micros(time.Now().Add(far)) }, far},
		{"the end of a max hold", func(t *testing.T, s wire.Store, _ string) { do(t, s, "DEL", "q:{%quorum}:x") },
			func(p *Protocol, r *protocol.Renewal) { r.Ceiling = p.micros(time.Now().Add(30*time.Second + enough)) }, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := start(t)
			p := client(t, servers, true, id(0))
			r := reader(p, "")
			held := hold(t, r, servers, 1)
			c.missed(t, servers[0], value(t, servers[1], 1))
			renewal := protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute}
			if c.change != nil {
				c.change(p, &renewal)
			}
			renew(t, p, renewal)
			got, want := value(t, servers[0], 1), value(t, servers[1], 1)
			if got == "" || got[:3] != "3rs" || got[16:48] != wire.Digits16(held.Token)+wire.Digits16(held.Token) || got[16:48] != want[16:48] {
				t.Fatalf("got %q, want %q", got, want)
			}
			at, _ := wire.Number(got[3:16])
			if left := time.Until(time.UnixMilli(at)); left > c.ends || left < c.ends-20*time.Second {
				t.Errorf("for another %v, want %v", left, c.ends)
			}
		})
	}
}

// A repair of the tokens alone, which ends before a max hold does even if it is late, takes nothing
// from what the renewal confirmed.
func TestARepairShortensNothing(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	r := reader(p, "")
	held := hold(t, r, servers, 1)
	text := value(t, servers[0], 1)
	do(t, servers[0], "HSET", "q:{%quorum}:x", string(id(1)), text[:16]+strings.Repeat("0", 32)+text[48:])
	end := time.Now().Add(30*time.Second + enough)
	confirmed, ok := p.nodes[0].clock.NotAfter(p.local(p.micros(end))) // as far as the client knows this master's clock
	if !ok {
		t.Fatal("of the clock nothing is known")
	}
	renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute, Ceiling: p.micros(end)})
	repaired := value(t, servers[0], 1)
	if repaired[16:32] != wire.Digits16(held.Token) {
		t.Fatalf("not repaired: %q", repaired)
	}
	at, _ := wire.Number(repaired[3:16])
	const slower = 100 // ms: an answer that came since may have said less of the clock; the repair has ten seconds to arrive
	if until, _ := wire.Number(confirmed); at < until/1000-slower {
		t.Errorf("the repaired hold ends %d ms before what was confirmed", until/1000-at)
	}
}

// An error says of each master what that one said.
func TestListenSaysWho(t *testing.T) {
	servers := start(t)
	for i := range servers {
		if i > 0 {
			servers[i] = mute{servers[i]}
		}
	}
	_, err := client(t, servers, true, id(0)).Listen(t.Context(), &nudges{})
	var none *NoMajority
	if !errors.As(err, &none) {
		t.Fatalf("got %v", err)
	}
	for i, n := range none.Nodes {
		if is := errors.Is(n.Err, errShut); is != (i > 0) {
			t.Errorf("node %d: %v", i+1, n.Err)
		}
	}
}

type mute struct{ wire.Store }

// Subscribe implements wire.Store.
func (mute) Subscribe(context.Context, wire.Sink) (wire.Subscription, error) { return nil, errShut }

// A master that does not answer is asked for little of what is to be given back there, and for all
// of it once it answers.
func TestASilentMasterIsNotFlooded(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	r := mutexOf(p).(*resource)
	const holds = 200
	for n := range holds {
		do(t, servers[0], "HSET", "q:{%quorum}:x", string(id(n)), written("3mx", 7, 7))
	}
	var asked atomic.Int64
	all[0].set(func(string) error { asked.Add(1); return errShut })
	began := time.Now()
	for n := range holds {
		p.nodes[0].addCleanup(cleanup{resource: r, id: id(n), round: endless, how: 'f', notBefore: time.Now(), until: time.Now().Add(time.Minute)})
	}
	eventually(t, "it is tried again", func() bool { return asked.Load() >= 3 })
	<-time.After(time.Second) // or longer; were it asked for all each time, it would be some five times by then
	if n, most := asked.Load(), holds+1+time.Since(began).Milliseconds()/50; n > most {
		t.Errorf("asked %d times, want at most %d: once for each, and then once a pause", n, most)
	}
	all[0].set(nil)
	eventually(t, "all is given back", func() bool { return do(t, servers[0], "EXISTS", "q:{%quorum}:x") == int64(0) })
}

// A caller that is refused for good waits for nothing more, though its context goes on.
func TestARefusedCallerDoesNotWait(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	for _, s := range servers {
		do(t, s, "SET", "q:{%quorum}:x", "text")
	}
	asks := ask(1)
	asks.Join = true
	var foreign *protocol.Foreign
	if _, err := mutexOf(p).Ask(t.Context(), asks); !errors.As(err, &foreign) {
		t.Fatalf("got %v", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waits) != 0 {
		t.Errorf("%d wait", len(p.waits))
	}
}

// Trap 28: who waits, or watches, is kept in a key that is of another type. It is named, and left
// as it was.
func TestForeignKeysBeside(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	mutex := mutexOf(p)
	for n, key := range []string{"q:{%quorum}+x", "q:{%quorum}=x"} {
		hold(t, mutex, servers, n)
		for _, s := range servers {
			do(t, s, "RPUSH", key, "text")
		}
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		_, err := mutex.Free(ctx, protocol.Free{Ticket: ask(n).Ticket})
		cancel()
		if err == nil || !strings.Contains(err.Error(), strconv.Quote(key)) {
			t.Errorf("got %v", err)
		}
		for _, s := range servers {
			if do(t, s, "LLEN", key) != int64(1) || do(t, s, "DEL", key) != int64(1) {
				t.Error("touched")
			}
		}
		_, _ = mutex.Free(t.Context(), protocol.Free{Ticket: ask(n).Ticket})
		for _, s := range servers {
			eventually(t, "it is free", func() bool { return !knows(t, s, n) })
		}
	}
}
