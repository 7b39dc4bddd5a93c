package quorum

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const isSameServer = "it is the same server as node "

// startSame makes a protocol, behind gates, whose nodes are these servers and count.
func startSame(t *testing.T, servers ...wire.Store) (all []*gate, p *Protocol, logged *logger) {
	t.Helper()
	all, behind := gates(servers)
	logged, to := newLogger()
	return all, openProtocol(t, behind, Config{Process: "same", MaxTTL: time.Minute, Trust: true, Logger: to}), logged
}

// wantSame fails unless an error says that too many nodes are one server, and that waiting does not
// cure it.
func wantSame(t *testing.T, what string, err error) {
	t.Helper()
	var failure *protocol.Failure
	var none *NoMajority
	if !errors.As(err, &failure) || failure.Reason != protocol.SameServer || failure.MustRepeat() {
		t.Errorf("%s: got %v", what, err)
	} else if !errors.As(err, &none) || twins(none.Nodes) != 2 {
		t.Errorf("%s: got %v", what, err)
	}
}

// twins returns how many nodes do not count, as another is the same server.
func twins(nodes []protocol.Node) (n int) {
	for _, node := range nodes {
		if !node.Counts && strings.HasPrefix(node.Why, isSameServer) {
			n++
		}
	}
	return n
}

// Three nodes that are one server are one of three: nothing can be locked, and each call says so at
// once, after a few requests.
func TestOneServerIsNoMajority(t *testing.T) {
	server := startMaster(t)
	_, p, logged := startSame(t, server, server, server)
	r := mutexOf(p)
	before := server.CommandStats()["evalsha"]
	_, err := r.Ask(t.Context(), newJoin(1))
	wantSame(t, "ask", err)
	waitQuiet(t, p)
	if n := server.CommandStats()["evalsha"] - before; n > 50 {
		t.Errorf("%d scripts for one call", n)
	}
	_, err = r.Look(t.Context(), nil)
	wantSame(t, "look", err)
	wantSame(t, "probe", p.Probe(t.Context()))
	_, err = p.Break(t.Context(), "x", breakOf(7))
	wantSame(t, "break", err)
	if nodes := mustStatus(t, p); twins(nodes) != 2 {
		t.Errorf("got %v", nodes)
	}
	if logged.count(isSameServer) != 2 || logged.count("does not count") != 2 {
		t.Errorf("got %s", logged)
	}
	waitQuiet(t, p)
	if fields := storedFields(t, server); len(fields) > 0 {
		t.Errorf("%q is left", fields)
	}
}

// Two nodes that are one server count once, whatever is asked. With the other server they are the
// majority of three, and without it they are none.
func TestTwoNodesOfOneServerCountOnce(t *testing.T) {
	one, other := startMaster(t), startMaster(t)
	for name, at := range map[string]int{"the first is another": 0, "the last is another": 2} {
		t.Run(name, func(t *testing.T) {
			command(t, one, "FLUSHALL")
			command(t, other, "FLUSHALL")
			servers := []wire.Store{one, one, one}
			servers[at] = other
			all, p, _ := startSame(t, servers...)
			r := mutexOf(p)
			held := tryAsk(t, r, 1)
			wantStatus(t, "both servers", held, protocol.Held)
			waitQuiet(t, p)
			if !keepsHold(t, one, 1) || !keepsHold(t, other, 1) {
				t.Fatal("a server without the hold")
			}
			renewal := renewalOf(r, 1, held.Token)
			mustRenew(t, p, renewal)
			var failure *protocol.Failure
			if err := p.Probe(t.Context()); !errors.As(err, &failure) || failure.Reason != protocol.SameServer ||
				failure.MustRepeat() {
				t.Errorf("ready: %v", err)
			}

			all[at].shut()
			if got := renewOnce(t, p, renewal); got.Held || got.Err == nil {
				t.Errorf("renewed by one server of three: %+v", got)
			}
			if got, err := r.Look(t.Context(), nil); err == nil {
				t.Errorf("told by one server of three: %+v", got)
			}
			if done, err := p.Break(t.Context(), "x", breakOf(held.Token)); done || err == nil {
				t.Errorf("broken at one server of three: %v, %v", done, err)
			}
			waitQuiet(t, p)
			in := mustInspect(t, p, "x")
			if n := len(slices.DeleteFunc(in.Nodes, func(n protocol.Node) bool { return !n.Counts })); n != 1 {
				t.Errorf("%d nodes count", n)
			}
			if _, counting, _ := p.takeCensus(); counting != 1 {
				t.Errorf("%d nodes count", counting)
			}
			if err := p.Probe(t.Context()); err == nil {
				t.Error("one server of three is ready")
			}

			all[at].atRequest(nil)
			waitQuiet(t, p)
			command(t, other, "DEL", stateKey)
			if got := renewOnce(t, p, renewal); got.Held {
				t.Error("renewed by one server, and the other does not know the hold")
			}
		})
	}
}

// The address of a node leads to the server of another node for a while: the very next answer
// tells, and so does the logger, once. When it leads elsewhere again, the node counts again.
func TestNodeThatBecomesAnotherDoesNotCount(t *testing.T) {
	servers := startMasters(t)
	all, p, logged := startSame(t, servers...)
	warmUp(t, p)
	for again := range 2 {
		all[1].leadTo(servers[0])
		n := 3*again + 2
		r := mutexNamed(p, "y")
		all[2].shut()
		if answer, err := r.Ask(t.Context(), newAsk(n)); err == nil {
			t.Errorf("locked by one server of three: %+v", answer)
		}
		all[2].atRequest(nil)
		waitQuiet(t, p)
		if nodes := mustStatus(t, p); twins(nodes) != 1 || nodes[1].Why != isSameServer+"1" {
			t.Errorf("got %v", nodes)
		}
		if got := logged.count(isSameServer); got != again+1 {
			t.Errorf("told %d times: %s", got, logged)
		}
		all[1].leadTo(servers[1])
		mustStatus(t, p)
		all[2].shut()
		wantStatus(t, "two servers of three", tryAsk(t, r, n+1), protocol.Held)
		all[2].atRequest(nil)
		waitQuiet(t, p)
		mustFree(t, r, n+1)
		waitQuiet(t, p)
	}
	if got := logged.count("counts again"); got != 2 {
		t.Errorf("told %d times: %s", got, logged)
	}
}

// A server is known by what it says of itself, which is new with each start, and without the
// permission to say it by what the first client wrote there.
func TestServerIsKnownByRunIDOrText(t *testing.T) {
	servers := startMasters(t)
	command(t, servers[1], "ACL", "SETUSER", "default", "-info")
	t.Cleanup(func() { command(t, servers[1], "ACL", "SETUSER", "default", "+@all") })
	_, p, _ := startSame(t, servers...)
	warmUp(t, p)
	known := map[string]bool{}
	for _, s := range servers {
		run, _ := command(t, s, "HGET", factsKey, "run").(string)
		if len(run) < serverSize || strings.Trim(run, "0") == "" {
			t.Errorf("known by %q", run)
		}
		known[run[:serverSize]] = true
	}
	if len(known) != 3 {
		t.Errorf("got %v", known)
	}
	command(t, servers[0], "FLUSHALL") // its scripts stay
	command(t, servers[1], "FLUSHALL")
	mustStatus(t, p)
	for i, s := range servers[:2] {
		if run, _ := command(t, s, "HGET", factsKey, "run").(string); (i == 0) != known[run[:serverSize]] {
			t.Errorf("%d: known by %q now", i, run)
		}
	}
}
