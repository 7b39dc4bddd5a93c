package quorum

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

const memory = 100 * time.Millisecond // for which a node that forgot does not count, here

// young makes a protocol that waits for so long.
func young(t *testing.T, servers []wire.Store, trust bool, longest time.Duration) *Protocol {
	p := New(servers, Config{Prefix: "q", Process: string(id(77)), MaxTTL: longest, Trust: trust, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
	return p
}

// counts are the nodes that count by their own record.
func counts(t *testing.T, servers []wire.Store) (n int) {
	t.Helper()
	for _, s := range servers {
		if do(t, s, "HEXISTS", "q:{%quorum}", "counts") == int64(1) {
			n++
		}
	}
	return n
}

// during asks all nodes for what they know of themselves, again and again for a while, and tells
// whether a condition held meanwhile.
func during(t *testing.T, p *Protocol, long time.Duration, holds func() bool) bool {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		if _, err := p.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		if holds() {
			return true
		}
	}
	return false
}

// tried tells whether a protocol has asked the others about a node that is old enough to count, and
// has told the node what came of it.
func tried(n *node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.adopted.IsZero()
}

// founded lets all masters count, and returns who did that, when it has nothing more on its way: a
// master that forgets meanwhile would be let count again.
func founded(t *testing.T, servers []wire.Store) *Protocol {
	t.Helper()
	p := young(t, servers, true, memory)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Fatal("they never count")
	}
	quiet(t, p)
	return p
}

// A node that does not answer is not one that forgot: with the one that did it may have been the
// majority that accepted a token, or that knows for how long another client holds.
func TestASilentMasterHasNotForgotten(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	founded(t, servers)
	p := young(t, behind, false, memory)
	all[0].shut()
	do(t, servers[1], "DEL", "q:{%quorum}")
	if !during(t, p, 30*time.Second, func() bool { return tried(p.nodes[1]) }) {
		t.Fatal("nobody tried to let it count")
	}
	if counts(t, servers[1:2]) == 1 {
		t.Error("it counts, and what it forgot is known to nobody who was asked")
	}
	all[0].set(nil)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Error("it never counts")
	}
}

// When a majority forgot, all of them count from one moment on, also when the others do not answer.
func TestAMajorityForgot(t *testing.T) {
	servers := start(t)
	all, behind := gates(servers)
	p := young(t, behind, false, 3*memory)
	all[2].shut()
	all[1].shut()
	if during(t, p, memory, func() bool { return counts(t, servers) > 0 }) {
		t.Fatal("one node counts, and two have not been asked")
	}
	before := time.Now()
	all[1].set(nil) // its memory begins later
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers[:2]) == 2 }) {
		t.Fatal("they never count")
	}
	if took := time.Since(before); took < 3*memory {
		t.Errorf("they count after %v, and others may hold for %v", took, 3*memory)
	}
	all[2].set(nil)
	if !during(t, p, 30*time.Second, func() bool { return counts(t, servers) == 3 }) {
		t.Error("the third never counts")
	}
}

// A node that forgot for how long a client may hold is told with the hold itself: all that it has
// lost with it is over then.
func TestTheLongestTTLIsKeptWithTheHold(t *testing.T) {
	servers := start(t)
	founder := founded(t, servers)
	gates, behind := gates(servers)
	p := young(t, behind, true, time.Hour)
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex})
	hold(t, r, servers, 1) // the scripts are there from then on
	free(t, r, 1)
	quiet(t, p)
	do(t, servers[1], "DEL", "q:{%quorum}")
	if _, err := founder.Status(t.Context()); err != nil { // it finds the scripts there, and says what it knows
		t.Fatal(err)
	}
	gates[1].set(func(op string) error { // it would be told by a look too, a moment later
		if op == "node" {
			return errShut
		}
		return nil
	})
	hold(t, r, servers, 2)
	if got := do(t, servers[1], "HGET", "q:{%quorum}", "longest"); got != "3600000" {
		t.Errorf("got %v", got)
	}
}

// A words is a logger that remembers.
type words struct {
	slog.Handler
	mu    sync.Mutex
	texts []string
}

// Handle implements slog.Handler.
func (w *words) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += "; " + a.String(); return true })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
	return nil
}

func (w *words) count(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, logged := range w.texts {
		if strings.Contains(logged, text) {
			n++
		}
	}
	return n
}

// An answer that is overtaken by the next tells the logger nothing.
func TestAnOldAnswerIsNotLogged(t *testing.T) {
	logged := &words{Handler: slog.NewTextHandler(io.Discard, nil)}
	p := New(start(t), Config{Prefix: "q", Process: string(id(1)), MaxTTL: time.Hour, Logger: slog.New(logged)})
	t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
	n := p.nodes[0]
	old, sent, err := n.introduce(time.Now().Add(enough), "", "", "")
	if err != nil {
		t.Fatal(err)
	}
	next := old
	next.counts = true
	for _, f := range []facts{old, next, old} { // the last was asked for before the others were heard
		at := sent
		if f.counts {
			at = time.Now()
		}
		n.heard(&f, at, time.Now(), time.Now().Add(enough))
	}
	if logged.count("does not count") != 1 || logged.count("counts again") != 1 {
		t.Errorf("got %q", logged.texts)
	}
}

// The logger is told once of each node that does not count, why, and that it counts again.
func TestTheLoggerSaysWhichCount(t *testing.T) {
	servers := start(t)
	logged := &words{Handler: slog.NewTextHandler(io.Discard, nil)}
	p := New(servers, Config{Prefix: "q", Process: string(id(1)), MaxTTL: memory, Logger: slog.New(logged)})
	t.Cleanup(func() { p.Close(time.Now().Add(2 * time.Second)) })
	if !during(t, p, 30*time.Second, func() bool { return logged.count("a node counts again") == 3 }) {
		t.Errorf("got %q", logged.texts)
	}
	if n := logged.count("a node does not count; node=node 2; reason=its memory began "); n != 1 || logged.count("does not count") != 3 {
		t.Errorf("got %q", logged.texts)
	}
}
