package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// startClient returns three masters, and a client of them.
func startClient(t *testing.T) (servers []wire.Store, p *Protocol) {
	t.Helper()
	servers = startMasters(t)
	return servers, newClient(t, servers, ticketID(0))
}

// startTwo returns three masters, and the clients of two processes.
func startTwo(t *testing.T) (servers []wire.Store, p, other *Protocol) {
	t.Helper()
	servers, p = startClient(t)
	return servers, p, newClient(t, servers, ticketID(7))
}

// startGated returns three masters, a gate before each, and a client behind these.
func startGated(t *testing.T) (servers []wire.Store, all []*gate, p *Protocol) {
	t.Helper()
	servers = startMasters(t)
	all, behind := gates(servers)
	return servers, all, newClient(t, behind, ticketID(0))
}

// openProtocol makes a protocol. The test ends when nothing of it is under way any more: its
// masters serve the next test.
func openProtocol(t *testing.T, stores []wire.Store, config Config) *Protocol {
	t.Helper()
	if config.Prefix == "" {
		config.Prefix = "q"
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	p := New(stores, config)
	t.Cleanup(func() {
		p.Close(time.Now().Add(2 * time.Second))
		waitQuiet(t, p)
	})
	return p
}

// newClient makes a protocol as a process does that trusts new masters.
func newClient(t *testing.T, stores []wire.Store, process protocol.ID) *Protocol {
	t.Helper()
	return openProtocol(t, stores, Config{Process: string(process), MaxTTL: time.Second, Trust: true})
}

func ticketID(n int) protocol.ID { return protocol.ID(fmt.Sprintf("id%020d", n)) }

func mutexOf(p *Protocol) *resource { return ownedBy(p, "") }

// ownedBy returns the mutex x for an owner.
func ownedBy(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: owner, Life: time.Minute})
}

func readerOf(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Shared: true, Owner: owner, Life: time.Minute})
}

func writerOf(p *Protocol, owner string) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Owner: owner, Life: time.Minute})
}

// newAsk makes an ask that arrives in time, also on a slow machine, for a hold that does not end by
// itself while a test runs.
func newAsk(n int) protocol.Ask {
	return protocol.Ask{Ticket: protocol.Ticket{ID: ticketID(n), Block: 1}, TTL: time.Minute,
		Deadline: time.Now().Add(enough)}
}

// enough is how long a request may take, on a machine that stands still now and then.
const enough = 10 * time.Second

// newYield asks, and gives the hold of another ticket back in the same request.
func newYield(n, before int) protocol.Ask {
	yields := newAsk(n)
	yields.Release = &protocol.Ticket{ID: ticketID(before), Block: 1}
	return yields
}

func mustAsk(t *testing.T, r protocol.Resource, ask protocol.Ask) protocol.Answer {
	t.Helper()
	answer, err := r.Ask(t.Context(), ask)
	fatal.If(t, err)
	return answer
}

func tryAsk(t *testing.T, r protocol.Resource, n int) protocol.Answer {
	t.Helper()
	return mustAsk(t, r, newAsk(n))
}

// newJoin makes an ask that waits if others hold.
func newJoin(n int) protocol.Ask {
	asks := newAsk(n)
	asks.Join = true
	return asks
}

func mustJoin(t *testing.T, r protocol.Resource, n int) protocol.Answer {
	t.Helper()
	return mustAsk(t, r, newJoin(n))
}

// breakNode breaks a hold at one node alone, for the Break with an id.
func breakNode(t *testing.T, r *resource, node, breaker int, b protocol.Break) {
	t.Helper()
	if a := r.breakAt(r.p.nodes[node], ticketID(breaker), b, time.Now().Add(enough)); a.err != nil {
		t.Fatal(a.err)
	}
}

// wantStatus fails unless an ask has this outcome.
func wantStatus(t *testing.T, what string, got protocol.Answer, status protocol.Status) {
	t.Helper()
	if got.Status != status {
		t.Fatalf("%s: %v, want %v", what, got.Status, status)
	}
}

// mustHold takes a lock for long, at all masters.
func mustHold(t *testing.T, r *resource, servers []wire.Store, n int) protocol.Answer {
	t.Helper()
	answer := tryAsk(t, r, n)
	wantStatus(t, "hold", answer, protocol.Held)
	until(t, "all masters know of the hold", func() bool {
		return countAll(t, servers, "HEXISTS", stateKey, holdField(n)) == int64(len(servers))
	})
	waitQuiet(t, r.p) // where the first round was refused its token, another may yet set it anew
	return answer
}

// tryFree gives back, with a min hold unless keep is 0.
func tryFree(t *testing.T, r *resource, n int, keep time.Duration) (was bool, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	request := protocol.FreeRequest{Ticket: newAsk(n).Ticket}
	if keep > 0 {
		request.Keep = r.p.micros(time.Now().Add(keep))
	}
	return r.Free(ctx, request)
}

func mustFree(t *testing.T, r *resource, n int) bool {
	t.Helper()
	was, err := tryFree(t, r, n, 0)
	fatal.If(t, err)
	return was
}

// renewOnce renews the hold of a ticket.
func renewOnce(t *testing.T, p *Protocol, renewal protocol.Renewal) (answer protocol.RenewalAnswer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	p.Renew(ctx, []protocol.Renewal{renewal}, func(_ int, r protocol.RenewalAnswer) { answer = r })
	return answer
}

// mustRenew renews with success, and waits until all masters have answered.
func mustRenew(t *testing.T, p *Protocol, renewal protocol.Renewal) {
	t.Helper()
	if r := renewOnce(t, p, renewal); !r.Held || r.Err != nil {
		t.Errorf("renewed: %+v", r)
	}
	until(t, "the renewal ends", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.repairs) == 0
	})
}

func renewalOf(r *resource, n int, token int64) protocol.Renewal {
	return protocol.Renewal{Resource: r, Ticket: newAsk(n).Ticket, Token: token, TTL: time.Minute}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	eventually.Must(t, 30*time.Second, what, holds)
}

// waitQuiet waits until nothing of a protocol is under way. An Ask, a Free or a Renew returns when
// a majority has answered: what is still to come to a master meets what a test has changed there
// since.
func waitQuiet(t *testing.T, p *Protocol) {
	t.Helper()
	until(t, "nothing is under way", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.running == 0
	})
}

// mustStatus asks all masters what they know of themselves.
func mustStatus(t *testing.T, p *Protocol) []protocol.Node {
	t.Helper()
	nodes, err := p.Status(t.Context())
	fatal.If(t, err)
	return nodes
}

// warmUp lets all masters meet a protocol, and know the scripts that ask and free.
func warmUp(t *testing.T, p *Protocol) {
	t.Helper()
	r := p.bind(protocol.Spec{Name: "warm", Kind: protocol.Mutex})
	wantStatus(t, "warm", tryAsk(t, r, 1), protocol.Held)
	waitQuiet(t, p)
	mustFree(t, r, 1)
	waitQuiet(t, p)
}
