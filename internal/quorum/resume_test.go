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
	next   int64  // the token of the resume: larger than all that the master knows
	later  int64  // how many more were proposed
	held   string // what it kept before
	resume *acquisition
}

// halfResumed holds for so long, and begins a resume that lasts for ttl.
func halfResumed(t *testing.T, holds, ttl time.Duration) *half {
	t.Helper()
	return halfResumedBy(t, "o", "o", holds, ttl)
}

// halfResumedBy is halfResumed by a process of perhaps another owner.
func halfResumedBy(t *testing.T, owner, next string, holds, ttl time.Duration) *half {
	t.Helper()
	servers := start(t)
	h := &half{p: client(t, servers, true, id(0))}
	h.r = h.of(owner)
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
			if strings.Contains(value(t, h.server, 1), wire.Digits16(held.Token)) {
				return true
			}
		}
		return false
	})
	quiet(t, h.p)
	h.held, h.next = value(t, h.server, 1), h.token+1e9
	if owner == "" {
		owner = string(id(1))
	}
	h.resume = &acquisition{r: h.of(next), ask: ask(2), owner: owner, token: wire.Digits16(held.Token), outcome: newOutcome()}
	h.resume.ask.TTL = ttl
	if a := h.resume.askAt(h.n, 1, h.next); a.status != 'H' {
		t.Fatalf("resume at one master: %+v", a)
	}
	return h
}

// of is the name for an owner.
func (h *half) of(owner string) *resource {
	spec := protocol.Spec{Name: "x", Kind: protocol.Mutex, Owner: owner, Label: "of " + owner, TTL: time.Minute, Life: time.Minute}
	return h.p.Bind(spec).(*resource)
}

// asks asks the master alone, with larger tokens than before.
func (h *half) asks(t *testing.T, r *resource, n int, change func(*acquisition)) *reply {
	t.Helper()
	next := &acquisition{r: r, ask: ask(n), outcome: newOutcome()}
	if change != nil {
		change(next)
	}
	h.later++
	a := next.askAt(h.n, int64(n), h.next+h.later)
	if a.err != nil {
		t.Fatal(a.err)
	}
	return a
}

// takesOver is a change to asks: it takes over the hold of an owner with a token.
func takesOver(owner string, token int64) func(*acquisition) {
	return func(t *acquisition) { t.owner, t.token = owner, wire.Digits16(token) }
}

// frees gives an id back at the master alone.
func (h *half) frees(t *testing.T, n int, how byte, round int64, keep time.Duration) (was byte, by string) {
	t.Helper()
	d := &cleanup{resource: h.r, id: id(n), round: round, how: how}
	if keep > 0 {
		d.keep = time.Now().Add(keep)
	}
	was, who, err := h.n.freeHold(d, time.Now().Add(enough))
	if err != nil {
		t.Fatal(err)
	}
	return was, who.label
}

// remainder is what is left of the hold at the master.
func (h *half) remainder(t *testing.T) string {
	t.Helper()
	text, _ := do(t, h.server, "HGET", "q:{%quorum}:x", "-"+string(id(1))).(string)
	return text
}

// all is what the master keeps of the name: by id, and "-" before that of a remainder.
func (h *half) all(t *testing.T) map[string]string {
	t.Helper()
	return fields(t, h.server)
}

func fields(t *testing.T, s wire.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	words, _ := do(t, s, "HGETALL", "q:{%quorum}:x").([]any)
	for i := 0; i < len(words); i += 2 {
		all[words[i].(string)] = words[i+1].(string)
	}
	return all
}

// end is when a hold, or what is left of it, ends at its master, in its ms.
func end(t *testing.T, value string) int64 {
	t.Helper()
	if len(value) < 16 {
		t.Fatalf("no hold: %q", value)
	}
	at, _ := wire.Number(value[3:16])
	return at
}

// cleanedUp waits until what is given back has been: a majority may have answered without this
// master.
func (h *half) cleanedUp(t *testing.T) {
	t.Helper()
	if !closedBy(h.n.releasesBefore("x"), time.Now().Add(30*time.Second)) {
		t.Fatal("it was never given back there")
	}
}

// undo takes the resume back.
func (h *half) undo(t *testing.T) {
	t.Helper()
	if _, _, err := h.n.freeHold(&cleanup{resource: h.r, id: id(2), round: 1, how: 'u'}, time.Now().Add(enough)); err != nil {
		t.Fatal(err)
	}
}

// A hold that was released while a resume had it at one master does not come back when that is
// undone, whether it was released alone or with the next ask; nor when an ask of an earlier round
// was late.
func TestReleaseWhileResumed(t *testing.T) {
	for what, gives := range map[string]func(t *testing.T, h *half){
		"alone": func(t *testing.T, h *half) { free(t, h.r, 1) },
		"late ask before it": func(t *testing.T, h *half) {
			if a := h.asks(t, h.r, 1, nil); a.won() {
				t.Fatalf("late ask: %+v", a)
			}
			free(t, h.r, 1)
		},
		"with the next ask": func(t *testing.T, h *half) {
			next := &acquisition{r: h.r, ask: ask(3), outcome: newOutcome()}
			next.ask.Release = &protocol.Ticket{ID: id(1), Block: 1}
			if a := next.askAt(h.n, 2, h.next+1); a.err != nil {
				t.Fatal(a.err)
			}
			if _, _, err := h.n.freeHold(&cleanup{resource: h.r, id: id(3), round: 2, how: 'q'}, time.Now().Add(enough)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			h := halfResumed(t, time.Minute, time.Minute)
			gives(t, h)
			h.cleanedUp(t)
			h.undo(t)
			if left, ok := do(t, h.server, "HGETALL", "q:{%quorum}:x").([]any); !ok || len(left) > 0 {
				t.Errorf("held after both were given back: %v", left)
			}
		})
	}
}

// A resume that is undone after the time of what it replaced leaves nothing: a key without a TTL
// would stay for ever.
func TestResumeIsUndoneLate(t *testing.T) {
	h := halfResumed(t, 3*time.Second, time.Minute)
	over := end(t, h.remainder(t))
	eventually(t, "its time is over", func() bool {
		seconds, _ := strconv.ParseInt(do(t, h.server, "TIME").([]any)[0].(string), 10, 64)
		return seconds > over/1000
	})
	h.undo(t)
	if left := do(t, h.server, "EXISTS", "q:{%quorum}:x"); left != int64(0) {
		t.Errorf("held: %v", left)
	}
}

// A resume that nobody heard the answers of is undone by who asked for it, too: that is sooner than
// the undoing of its own, and must leave no less.
func TestResumeIsGivenUp(t *testing.T) {
	h := halfResumed(t, time.Minute, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), enough)
	defer cancel()
	if _, err := h.r.Free(ctx, protocol.Free{Ticket: protocol.Ticket{ID: id(2), Block: 1}, Undo: true}); err != nil {
		t.Fatal(err)
	}
	h.cleanedUp(t)
	if value(t, h.server, 2) != "" || value(t, h.server, 1) == "" {
		t.Errorf("the resume has %q, the hold %q", value(t, h.server, 2), value(t, h.server, 1))
	}
}

// The hold that a resume replaces is trusted until its holder has stopped: a master that has
// confirmed it keeps others out to its end, also where the resume ends sooner, or is undone.
func TestResumeShortensNothing(t *testing.T) {
	h := halfResumed(t, time.Minute, 20*time.Second)
	before := end(t, h.held)
	if now := end(t, h.remainder(t)); now != before {
		t.Errorf("it ends %d ms before what it replaced", before-now)
	}
	if a := h.resume.askAt(h.n, 1, h.next); !a.won() {
		t.Fatalf("asked again: %+v", a)
	}
	if now := end(t, h.remainder(t)); now != before {
		t.Errorf("asked for again, it ends %d ms before what it replaced", before-now)
	}
	h.undo(t)
	if value(t, h.server, 1) != h.held || len(h.all(t)) != 1 {
		t.Errorf("undone: %q, was %q", h.all(t), h.held)
	}
}
