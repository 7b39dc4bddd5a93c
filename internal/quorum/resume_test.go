package quorum

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/native"
	"github.com/holdfast-go/holdfast/internal/protocol"
)

// A resume that no majority agrees to leaves the hold to its owner.
func TestResumeIsUndone(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: "o", Life: time.Minute})
	held := hold(t, r, servers, 1)
	for _, s := range servers[1:] {
		do(t, s, "DEL", "q:{%quorum}:x")
	}
	answer, err := r.Resume(t.Context(), ask(2), "o", held.Token)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "resume", answer, protocol.Busy)
	eventually(t, "the first master has the old hold again", func() bool { return knows(t, servers[0], 1) && !knows(t, servers[0], 2) })
}

// A half is a hold of owner "o", id 1, that a resume with id 2 has taken over at one master alone.
type half struct {
	p      *Protocol
	r      *resource
	n      *node // that master
	server master
	token  int64
	resume *taking
}

// halfResumed holds for so long, and begins a resume that lasts for ttl.
func halfResumed(t *testing.T, holds, ttl time.Duration) *half {
	t.Helper()
	servers := start(t)
	h := &half{p: client(t, servers, true, id(0))}
	h.r = h.p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: "o", Life: time.Minute}).(*resource)
	first := ask(1)
	first.TTL = holds
	held, err := h.r.Ask(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	want(t, "hold", held, protocol.Held)
	h.token = held.Token
	eventually(t, "a master holds, with the token", func() bool { // one that knew of a larger token has refused it
		for i := range servers {
			h.n, h.server = h.p.nodes[i], servers[i].(master)
			if strings.Contains(value(t, h.server, 1), native.Digits16(held.Token)) {
				return true
			}
		}
		return false
	})
	if !h.n.await(id(1), time.Now().Add(30*time.Second)) {
		t.Fatal("its asks never landed")
	}
	h.resume = &taking{r: h.r, ask: ask(2), owner: "o", token: native.Digits16(held.Token), fate: newFate()}
	h.resume.ask.TTL = ttl
	if a := h.resume.ask1(h.n, 1, h.token+1); !a.won() {
		t.Fatalf("resume at one master: %+v", a)
	}
	return h
}

// end is when the hold ends at the master, in its ms.
func (h *half) end(t *testing.T, n int) int64 {
	t.Helper()
	text := value(t, h.server, n)
	if len(text) < 16 {
		t.Fatalf("hold %d at the master: %q", n, text)
	}
	end, _ := native.Number(text[3:16])
	return end
}

// replaced is when what the resume replaced ends.
func (h *half) replaced(t *testing.T) int64 {
	t.Helper()
	text, _ := do(t, h.server, "HGET", "q:{%quorum}:x", "<"+string(id(2))).(string)
	if len(text) < 38 {
		t.Fatalf("what it replaced is %q", text)
	}
	end, _ := native.Number(text[25:38])
	return end
}

// again is a late ask of the hold, or its repair: it is there beside the resume then.
func (h *half) again(t *testing.T, ttl time.Duration) {
	t.Helper()
	late := &taking{r: h.r, ask: ask(1), fate: newFate()}
	late.ask.TTL = ttl
	if a := late.ask1(h.n, 0, h.token-1); !a.won() {
		t.Fatalf("late ask: %+v", a)
	}
}

// landed waits until what is given back has been: a majority may have answered without this master.
func (h *half) landed(t *testing.T) {
	t.Helper()
	if !follow(h.n.behind("x"), time.Now().Add(30*time.Second)) {
		t.Fatal("it was never given back there")
	}
}

// undo takes the resume back.
func (h *half) undo(t *testing.T) {
	t.Helper()
	if _, _, err := h.n.free(&debt{r: h.r, id: id(2), round: 1, how: 'u'}, time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
}

// A hold that was released while a resume had it at one master does not come back when that is undone, whether it was released
// alone or with the next ask; nor does it when an ask of an earlier round was late and put it there again, beside the resume.
func TestReleaseWhileResumed(t *testing.T) {
	for what, gives := range map[string]func(t *testing.T, h *half){
		"alone":              func(t *testing.T, h *half) { free(t, h.r, 1) },
		"late ask before it": func(t *testing.T, h *half) { h.again(t, time.Minute); free(t, h.r, 1) },
		"with the next ask": func(t *testing.T, h *half) {
			next := &taking{r: h.r, ask: ask(3), fate: newFate()}
			next.ask.Release = &protocol.Ticket{ID: id(1), Block: 1}
			if a := next.ask1(h.n, 2, h.token+2); a.err != nil {
				t.Fatal(a.err)
			}
			if _, _, err := h.n.free(&debt{r: h.r, id: id(3), round: 2, how: 'q'}, time.Now().Add(enough)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := halfResumed(t, time.Minute, time.Minute)
			gives(t, h)
			h.landed(t)
			h.undo(t)
			if left, ok := do(t, h.server, "HGETALL", "q:{%quorum}:x").([]any); !ok || len(left) > 0 {
				t.Errorf("held after both were given back: %v", left)
			}
		})
	}
}

// A resume that is undone after the time of what it replaced leaves nothing: a key without a TTL would stay for ever.
func TestResumeIsUndoneLate(t *testing.T) {
	h := halfResumed(t, 3*time.Second, time.Minute)
	end := h.replaced(t)
	eventually(t, "its time is over", func() bool {
		seconds, _ := strconv.ParseInt(do(t, h.server, "TIME").([]any)[0].(string), 10, 64)
		return seconds > end/1000
	})
	h.undo(t)
	if left := do(t, h.server, "EXISTS", "q:{%quorum}:x"); left != int64(0) {
		t.Errorf("held: %v", left)
	}
}

// A resume under another owner keeps that owner's others out until it is agreed to: what it replaced excludes them, and is trusted until then.
func TestResumeKeepsOutForAnother(t *testing.T) {
	h := halfResumed(t, time.Minute, time.Minute)
	h.undo(t)
	r := h.p.Bind(protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: "p", Life: time.Minute}).(*resource)
	asked := func(n int, owner string) *reply {
		next := &taking{r: r, ask: ask(n), owner: owner, fate: newFate()}
		if owner != "" {
			next.token = native.Digits16(h.token)
		}
		return next.ask1(h.n, int64(n), h.token+int64(n))
	}
	if a := asked(3, "o"); !a.won() {
		t.Fatalf("resume at one master: %+v", a)
	}
	if a := asked(4, ""); a.won() || a.err != nil {
		t.Errorf("another of the owner, beside what was resumed: %+v", a)
	}
	renewing := &renewing{p: h.p, deadline: time.Now().Add(enough),
		renewals: []protocol.Renewal{{Resource: r, Ticket: ask(3).Ticket, Token: h.token + 3, TTL: time.Minute}}}
	if a := renewing.ask(h.n); a.err != nil || a.text == "0" {
		t.Fatalf("renewal: %+v", a)
	}
	if a := asked(5, ""); !a.won() {
		t.Errorf("another of the owner, once the resume is agreed to: %+v", a)
	}
}

// A resume that nobody heard the answers of is undone by who asked for it, too: that is sooner than the undoing of its
// own, and must leave no less.
func TestResumeIsGivenUp(t *testing.T) {
	h := halfResumed(t, time.Minute, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	if _, err := h.r.Free(ctx, protocol.Free{Ticket: protocol.Ticket{ID: id(2), Block: 1}, Undo: true}); err != nil {
		t.Fatal(err)
	}
	h.landed(t)
	if value(t, h.server, 2) != "" || value(t, h.server, 1) == "" {
		t.Errorf("the resume has %q, the hold %q", value(t, h.server, 2), value(t, h.server, 1))
	}
}

// What a resume replaces is trusted until a majority agrees to the resume: a master that has confirmed it keeps others out to its end,
// also where the resume ends sooner, and where the hold was set again meanwhile and the resume is undone.
func TestResumeShortensNothing(t *testing.T) {
	t.Run("by its own end", func(t *testing.T) {
		h := halfResumed(t, time.Minute, 100*time.Millisecond)
		end := h.replaced(t)
		if h.end(t, 2) < end {
			t.Errorf("it ends %d ms before what it replaced", end-h.end(t, 2))
		}
		if a := h.resume.ask1(h.n, 1, h.token+1); !a.won() {
			t.Fatalf("asked again: %+v", a)
		}
		if h.end(t, 2) < end {
			t.Errorf("asked for again, it ends %d ms before what it replaced", end-h.end(t, 2))
		}
	})
	t.Run("by being undone", func(t *testing.T) {
		h := halfResumed(t, time.Minute, time.Minute)
		h.again(t, 2*time.Minute)
		end := h.end(t, 1)
		h.undo(t)
		if now := h.end(t, 1); now < end {
			t.Errorf("the hold ends %d ms before what was confirmed", end-now)
		}
	})
}
