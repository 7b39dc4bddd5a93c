package quorum

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// A backward is a master whose scripts see another clock than its own: so many microseconds earlier
// as its key "back" says. A key expires after the same time, by the master's own clock.
type backward struct{ master }

var elsewhen = strings.NewReplacer(
	"local time = redis.call('TIME')", "local time = redis.call('TIME')\n"+
		"local us = time[1] * 1000000 + time[2] - (redis.call('GET', 'back') or 0)\n"+
		"time = {string.format('%.0f', math.floor(us / 1000000)), string.format('%.0f', us % 1000000)}",
	"redis.call('PEXPIREAT', key, string.format('%.0f', ends))", "redis.call('PEXPIRE', key, string.format('%.0f', ends - ms))",
	"redis.call('PEXPIREAT', key, string.format('%.0f', last))", "redis.call('PEXPIRE', key, string.format('%.0f', last - ms))",
)

// Do implements wire.Store.
func (b backward) Do(ctx context.Context, requests []wire.Request) []wire.Reply {
	for i, request := range requests {
		if request.Args[0] != "EVAL" {
			continue
		}
		requests[i].Args = append([]any(nil), request.Args...)
		for at, arg := range request.Args {
			if text, ok := arg.(string); ok {
				requests[i].Args[at] = elsewhen.Replace(text)
			}
		}
	}
	return b.master.Do(ctx, requests)
}

// backwards starts masters whose clocks can be set, all at once.
func backwards(t *testing.T) (servers, behind []wire.Store, set func(now time.Duration)) {
	t.Helper()
	servers = start(t)
	for _, s := range servers {
		behind = append(behind, backward{s.(master)})
	}
	return servers, behind, func(now time.Duration) { // since 1970
		for _, s := range servers {
			do(t, s, "SET", "back", time.Now().UnixMicro()-now.Microseconds())
		}
	}
}

// Every PEXPIREAT is one that the clocks of these tests know.
func TestEveryExpiryIsKnown(t *testing.T) {
	for _, name := range names {
		if text := elsewhen.Replace(source("q", name)); strings.Contains(text, "PEXPIREAT") || !strings.Contains(text, "'back'") {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// starts are what clocks show at first: machines without a battery start there.
var starts = map[string]time.Duration{
	"1970": 0, "a second later": time.Second, "a day later": 24 * time.Hour,
	"just before ten digits of seconds": 999_999_999 * time.Second, "2000": 946684800 * time.Second,
}

// The time that the clocks show does not matter: locks are held, renewed, given back, waited for
// and broken, and tokens grow.
func TestClocksOfAnyTime(t *testing.T) {
	for name, at := range starts {
		t.Run(name, func(t *testing.T) {
			servers, behind, set := backwards(t)
			set(at)
			p, other := client(t, behind, true, id(0)), client(t, behind, true, id(7))
			r := mutexOf(p)
			last := int64(0)
			for n := range 3 {
				set(at) // the same time again and again: tokens grow by themselves
				held := try(t, r, n)
				if want(t, "hold", held, protocol.Held); held.Token <= last {
					t.Errorf("token %d after %d", held.Token, last)
				}
				last = held.Token
				if at < time.Minute && last > time.Hour.Microseconds() {
					t.Errorf("token %d: the clock shows less", last)
				}
				want(t, "another", try(t, mutexOf(other), 9), protocol.Busy)
				renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(n).Ticket, Token: held.Token, TTL: time.Minute})
				want(t, "another, once it was renewed", try(t, mutexOf(other), 9), protocol.Busy)
				if s := look(t, r); s.Token != held.Token || s.Since != held.Token {
					t.Errorf("got %+v, want token %d", s, held.Token)
				}
				if !free(t, r, n) {
					t.Error("it was not held")
				}
				quiet(t, p)
			}
			held := try(t, r, 1)
			want(t, "hold", held, protocol.Held)
			quiet(t, p)
			if done, err := doBreak(t, other, held.Token, 0); !done || err != nil {
				t.Fatal(done, err)
			}
			quiet(t, other)
			want(t, "beside a remainder", try(t, mutexOf(other), 3), protocol.Busy)
			ctx, cancel := context.WithTimeout(t.Context(), enough)
			defer cancel()
			if _, err := r.Free(ctx, protocol.Free{Ticket: ask(1).Ticket}); err == nil {
				t.Error("given back")
			}
			quiet(t, p)
			short := ask(4)
			short.TTL = 300 * time.Millisecond
			if answer, err := r.Ask(t.Context(), short); err != nil || answer.Status != protocol.Held {
				t.Fatal(answer, err)
			}
			eventually(t, "nothing is left, once its time is over", func() bool {
				for _, s := range servers {
					if do(t, s, "EXISTS", "q:{%quorum}:x", "q:{%quorum}+x", "q:{%quorum}=x") != int64(0) {
						return false
					}
				}
				return true
			})
		})
	}
}

// A clock that is set back, or forward from such a time, leaves tokens that grow, and masters that
// can be locked at.
func TestClocksThatAreSet(t *testing.T) {
	_, behind, set := backwards(t)
	last := int64(0)
	for n, at := range []time.Duration{946684800 * time.Second, 0, 24 * time.Hour, 1795000000 * time.Second, time.Second} {
		set(at)
		p := client(t, behind, true, id(n)) // a process that was started since: one that was not takes a step forward for a broken clock
		held := try(t, mutexOf(p), n)
		if want(t, "hold", held, protocol.Held); held.Token <= last {
			t.Errorf("token %d after %d", held.Token, last)
		}
		last = held.Token
		free(t, mutexOf(p), n)
		quiet(t, p)
	}
}

// A waiter that has waited for longer than the clock shows is first nevertheless.
func TestWaitersOfAnyTime(t *testing.T) {
	servers, behind, set := backwards(t)
	set(0)
	p, other := client(t, behind, true, id(0)), client(t, behind, true, id(7))
	heard := hears(t, servers, p)
	hold(t, mutexOf(other), servers, 1)
	for n, waited := range map[int]time.Duration{2: time.Second, 3: time.Hour, 4: 0} {
		for _, node := range other.nodes {
			waits := &acquisition{r: mutexOf(p).(*resource), ask: ask(n), waited: waited, outcome: newOutcome()} // p listens
			waits.ask.Join = true
			if a := waits.askNode(node, 1, 1); a.status != 'B' {
				t.Fatalf("got %+v", a)
			}
		}
	}
	for _, s := range servers {
		order := do(t, s, "ZRANGE", "q:{%quorum}+x", 0, -1).([]any)
		if len(order) != 3 || !strings.HasPrefix(order[0].(string), string(id(3))) || !strings.HasPrefix(order[2].(string), string(id(4))) {
			t.Errorf("got %q", order)
		}
		if score, _ := strconv.ParseFloat(do(t, s, "ZSCORE", "q:{%quorum}+x", order[0]).(string), 64); score >= 0 {
			t.Errorf("it waits since %v", score)
		}
	}
	free(t, mutexOf(other), 1)
	eventually(t, "the first is told by all", func() bool { return heard.count(id(3)) == 3 })
	if after, _ := heard.last(id(3)); after != 0 {
		t.Errorf("the first is told to ask in %v", after)
	}
}

// Just after 1970 began no reader is kept out for a writer that does not wait; nor where a writer
// waited before the clock was set back.
func TestReadersOfAnyTime(t *testing.T) {
	servers, behind, set := backwards(t)
	p := client(t, behind, true, id(0))
	set(0)
	hold(t, reader(p, ""), servers, 1)
	reads := func(what string, n int) {
		t.Helper()
		for _, node := range p.nodes {
			a := &reply{}
			for try := 0; try < 1000 && (a.status == 0 || a.facts.now > 400_000); try++ { // this machine may stand still
				set(0)
				a = (&acquisition{r: reader(p, "").(*resource), ask: ask(n), outcome: newOutcome()}).askNode(node, 1, 1)
			}
			if !a.holds() {
				t.Errorf("%s: %+v", what, a)
			}
			if _, _, err := node.freeHold(&cleanup{resource: reader(p, "").(*resource), id: id(n), round: endless, how: 'q'}, time.Now().Add(enough)); err != nil {
				t.Fatal(err)
			}
		}
	}
	reads("another reader", 2)
	for _, s := range servers {
		do(t, s, "ZADD", "q:{%quorum}+x", 946684800_000_000, "!", 946684700_000_000, string(id(9))+"3rx0:q:{%quorum}@nobody")
	}
	reads("another reader, when the clock was set back", 3)
	for _, s := range servers { // and what is kept out is kept out
		do(t, s, "ZADD", "q:{%quorum}+x", 1, "!")
	}
	a := &reply{}
	for try := 0; try < 1000 && (a.status == 0 || a.facts.now > 400_000); try++ {
		set(0)
		a = (&acquisition{r: reader(p, "").(*resource), ask: ask(4), outcome: newOutcome()}).askNode(p.nodes[0], 1, 1)
	}
	if a.holds() || a.remaining > 500*time.Millisecond {
		t.Errorf("a reader while a writer waits: %+v", a)
	}
}
