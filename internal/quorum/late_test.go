package quorum

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// mutexOf is the lock x, of a process.
func mutexOf(p *Protocol) protocol.Resource {
	return p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Life: time.Minute})
}

// hold takes the lock x for long, at all masters.
func hold(t *testing.T, r protocol.Resource, servers []wire.Store, n int) protocol.Answer {
	t.Helper()
	answer, err := r.Ask(t.Context(), ask(n))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "hold", answer, protocol.Held)
	eventually(t, "all masters know of the hold", func() bool {
		for _, s := range servers {
			if !knows(t, s, n) {
				return false
			}
		}
		return true
	})
	quiet(t, r.(*resource).p) // where the first round was refused its token, another may yet set it anew
	return answer
}

// knows tells whether a master keeps a hold.
func knows(t *testing.T, s wire.Store, n int) bool {
	t.Helper()
	return do(t, s, "HEXISTS", "q:{%quorum}:x", string(id(n))) == int64(1)
}

// waitsFor tells whether somebody waits until no ask of an id is on its way to a node.
func waitsFor(n *node, id protocol.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	f := n.pendingAsks[id]
	return f != nil && f.done != nil
}

// following is how many asks wait until the releases before them are done. Their goroutines stand
// still in closedBy.
func following() (n int) {
	stacks := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		head, calls, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "[select") && strings.HasPrefix(calls, "github.com/holdfast-go/holdfast/internal/quorum.closedBy(") &&
			strings.Contains(calls, "sendRound") {
			n++
		}
	}
	return n
}

// once is called by a gate: it says that a request came, the first time, and holds it up until it
// may go.
type once struct {
	came, goes chan struct{}
	first      sync.Once
}

func newOnce() *once { return &once{came: make(chan struct{}), goes: make(chan struct{})} }

func (o *once) wait() {
	o.first.Do(func() { close(o.came) })
	<-o.goes
}

// A process asks a master for a name only after it has given back there what it had: its own hold
// would keep it out, for as long as the others that gave it back do not answer.
func TestAnAskFollowsTheRelease(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	r := mutexOf(p)
	hold(t, r, servers, 1)
	late := newOnce()
	overtaken := make(chan struct{}, 100)
	all[0].set(func(op string) error {
		switch op {
		case "free":
			late.wait()
		case "ask":
			overtaken <- struct{}{}
		}
		return nil
	})
	if !free(t, r, 1) { // by the other two
		t.Fatal("there was no hold")
	}
	<-late.came
	all[2].shut()
	got := make(chan protocol.Answer, 1)
	go func() {
		answer, err := r.Ask(t.Context(), ask(2))
		if err != nil {
			t.Error(err)
		}
		got <- answer
	}()
	eventually(t, "the ask waits for the release, or went ahead of it", func() bool { return len(overtaken) > 0 || following() > 0 })
	if len(overtaken) > 0 {
		t.Error("asked before it gave back")
	}
	close(late.goes)
	want(t, "the next hold", <-got, protocol.Held)
}

// And it gives back at a master only after its ask was answered there, or can take effect no more:
// the ask would bring back what nobody knows of.
func TestAReleaseFollowsTheAsk(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	r := mutexOf(p)
	warm(t, p)
	late, freed := newOnce(), newOnce()
	close(freed.goes)
	all[0].set(func(op string) error {
		switch op {
		case "ask":
			late.wait()
		case "free":
			freed.wait()
		}
		return nil
	})
	answer, err := r.Ask(t.Context(), ask(1))
	if err != nil {
		t.Fatal(err)
	}
	want(t, "hold", answer, protocol.Held)
	<-late.came
	if !free(t, r, 1) {
		t.Error("there was no hold")
	}
	eventually(t, "the release waits for the ask, or went ahead of it", func() bool {
		select {
		case <-freed.came:
			t.Error("it gave back before it asked")
			return true
		default:
			return waitsFor(p.nodes[0], id(1))
		}
	})
	close(late.goes)
	<-freed.came
	untilFree(t, servers, 1)
}

// A ticket keeps its place if its first goroutine gave up and another one goes on with it late.
func TestATicketThatGoesOnKeepsItsPlace(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := client(t, behind, true, id(0))
	r := mutexOf(p)
	hold(t, r, servers, 1)
	places := func() (n int64) {
		for _, s := range servers {
			n += do(t, s, "ZCARD", "q:{%quorum}+x").(int64)
		}
		return n
	}
	var gone []*once
	for _, g := range all {
		o := newOnce()
		gone = append(gone, o)
		g.set(func(op string) error {
			if op == "free" {
				o.wait()
			}
			return nil
		})
	}
	waits := func(ctx context.Context) {
		asks := ask(2)
		asks.Join = true
		if answer, err := r.Ask(ctx, asks); err != nil || answer.Status != protocol.Busy {
			t.Errorf("got %+v, %v", answer, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	waits(ctx)
	eventually(t, "all know who waits", func() bool { return places() == 3 })
	cancel()
	for _, o := range gone {
		<-o.came
	}
	next := make(chan struct{})
	go func() { defer close(next); waits(t.Context()) }()
	eventually(t, "the asks wait for what is on its way, or went ahead of it", func() bool {
		select {
		case <-next:
			return true
		default:
			return following() == len(gone)
		}
	})
	for _, o := range gone {
		close(o.goes)
	}
	<-next
	eventually(t, "what was given back is", func() bool {
		for _, n := range p.nodes {
			n.mu.Lock()
			working := n.cleaning
			n.mu.Unlock()
			if working {
				return false
			}
		}
		return true
	})
	eventually(t, "all know who waits", func() bool { return places() == 3 })
}

// A renewal whose last answer comes after the hold went on to the next goroutine sets nothing
// again, also when that has given back what it had.
func TestARepairComesTooLate(t *testing.T) {
	for name, over := range map[string]func(*testing.T, protocol.Resource){
		"yielded": func(t *testing.T, r protocol.Resource) {
			yields := ask(2)
			yields.Release = &protocol.Ticket{ID: id(1), Block: 1}
			answer, err := r.Ask(t.Context(), yields)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "the next hold", answer, protocol.Held)
			free(t, r, 2)
		},
		"released": func(t *testing.T, r protocol.Resource) { free(t, r, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			servers := start(t)
			all, behind := gates(servers)
			p := client(t, behind, true, id(0))
			r := mutexOf(p)
			held := hold(t, r, servers, 1)
			do(t, servers[2], "DEL", "q:{%quorum}:x")
			late := newOnce()
			all[2].set(func(op string) error {
				if op == "renew" {
					late.wait()
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), enough)
			defer cancel()
			p.Renew(ctx, []protocol.Renewal{{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute}},
				func(_ int, r protocol.Renewed) {
					if !r.Held || r.Err != nil {
						t.Errorf("renewed: %+v", r)
					}
				})
			<-late.came
			over(t, r)
			for _, s := range servers {
				eventually(t, "all is given back", func() bool { return !knows(t, s, 1) && !knows(t, s, 2) })
			}
			close(late.goes)
			eventually(t, "the renewal ends", func() bool {
				p.mu.Lock()
				defer p.mu.Unlock()
				return len(p.repairs) == 0
			})
			for i, s := range servers {
				if knows(t, s, 1) {
					t.Errorf("master %d keeps what was given back", i+1)
				}
			}
		})
	}
}

// An Ask that gives an older hold up gives it back later at a master that did not answer, whatever
// caller is in by then.
func TestAYieldThatDidNotArrive(t *testing.T) {
	for name, waits := range map[string]bool{"kept": false, "left to one who waits": true} {
		t.Run(name, func(t *testing.T) {
			servers := start(t)
			all, behind := gates(servers)
			p := client(t, behind, true, id(0))
			r := mutexOf(p)
			hold(t, r, servers, 1)
			status := protocol.Held
			if waits {
				status = protocol.Busy
				for _, s := range servers {
					do(t, s, "ZADD", "q:{%quorum}+x", "1", string(id(9))+"3mx0:q:{%quorum}@nobody")
				}
			}
			all[2].shut()
			yields := ask(2)
			yields.Release = &protocol.Ticket{ID: id(1), Block: 1}
			answer, err := r.Ask(t.Context(), yields)
			if err != nil {
				t.Fatal(err)
			}
			want(t, "yield", answer, status)
			all[2].set(nil)
			eventually(t, "the old hold is given back", func() bool { return !knows(t, servers[2], 1) })
		})
	}
}

// A round that failed is given back at a master that did not answer as soon as it does, by when the
// hold may have been confirmed there: it was renewed, downgraded or set again. Then it stays, as it
// is trusted.
func TestAGiveBackComesTooLate(t *testing.T) {
	for name, confirm := range map[string]func(t *testing.T, p *Protocol, s wire.Store, held protocol.Answer) protocol.Resource{
		"renewed": renewWriter,
		"set again": func(t *testing.T, p *Protocol, s wire.Store, held protocol.Answer) protocol.Resource {
			do(t, s, "DEL", "q:{%quorum}:x")
			return renewWriter(t, p, s, held)
		},
		"downgraded": func(t *testing.T, p *Protocol, s wire.Store, _ protocol.Answer) protocol.Resource {
			r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Shared: true, Life: time.Minute})
			answer, err := r.Downgrade(t.Context(), ask(1))
			if err != nil {
				t.Fatal(err)
			}
			want(t, "downgrade", answer, protocol.Held)
			eventually(t, "it shares", func() bool {
				text, _ := do(t, s, "HGET", "q:{%quorum}:x", string(id(1))).(string)
				return strings.HasPrefix(text, "3rs")
			})
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			servers := start(t)
			p := client(t, servers, true, id(0))
			held := hold(t, p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Life: time.Minute}), servers, 1)
			accepts(t, servers[0], held)
			r := confirm(t, p, servers[0], held)
			late := &cleanup{resource: r.(*resource), id: id(1), round: p.rounds.Load(), how: 'q'}
			if was, _, err := p.nodes[0].freeHold(late, time.Now().Add(enough)); was != '0' || err != nil || !knows(t, servers[0], 1) {
				t.Errorf("given back: %q, %v", was, err)
			}
			if !free(t, r, 1) {
				t.Error("there was no hold")
			}
			untilFree(t, servers, 1) // a majority has answered
		})
	}
}

// accepts makes the hold at a master one whose tokens that master accepted when it was asked. A
// master that learns the floor of its tokens between the greeting and the ask refuses them, and
// then a renewal sets the whole hold again.
func accepts(t *testing.T, s wire.Store, held protocol.Answer) {
	t.Helper()
	text := value(t, s, 1)
	do(t, s, "HSET", "q:{%quorum}:x", string(id(1)), text[:16]+strings.Repeat(wire.Digits16(held.Token), 2)+text[48:])
}

// renewWriter renews the hold of a writer.
func renewWriter(t *testing.T, p *Protocol, _ wire.Store, held protocol.Answer) protocol.Resource {
	t.Helper()
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Life: time.Minute})
	renew(t, p, protocol.Renewal{Resource: r, Ticket: ask(1).Ticket, Token: held.Token, TTL: time.Minute})
	return r
}
