package quorum

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// look looks, without a watcher, until a majority answers in the second that a look has, in which
// this machine may stand still.
func look(t *testing.T, r protocol.Resource) (standing protocol.Standing) {
	t.Helper()
	eventually(t, "a majority answers in time", func() bool {
		var err error
		if standing, err = r.Look(t.Context(), nil); err != nil && !passing(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return standing
}

// put writes a hold into masters, as ask.lua does.
func put(t *testing.T, server wire.Store, n int, first, last int64) {
	t.Helper()
	if _, err := server.(master).Server.Do("HSET", "q:{%quorum}:x", string(id(n)), written("3ex", first, last)+"label"); err != nil {
		t.Fatal(err)
	}
}

// A look tells the token that a majority accepted, whichever nodes answer first.
func TestLookTellsTheAgreedToken(t *testing.T) {
	for _, c := range []struct {
		name   string
		tokens []int64 // at each master; 0: it refused the proposal; -1: it does not know of the hold
		down   bool    // the last master
		want   int64   // 0: nobody holds
	}{
		{"all agree", []int64{7, 7, 7}, false, 7},
		{"one has an earlier proposal", []int64{5, 7, 7}, false, 7},
		{"one refused it", []int64{0, 7, 7}, false, 7},
		{"one does not know", []int64{-1, 7, 7}, false, 7},
		{"one is down", []int64{7, 7, -1}, true, 7},
		{"one has an earlier proposal, and one is down", []int64{5, 7, -1}, true, 7},
		{"one refused it, and one is down", []int64{7, 0, -1}, true, 7},
		{"none is agreed on", []int64{5, 6, 7}, false, 0},
		{"all but one refused it", []int64{7, 0, 0}, false, 0},
		{"all refused it", []int64{0, 0, 0}, false, 0},
		{"a minority holds", []int64{7, -1, -1}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := start(t)
			p := client(t, servers, true, id(0))
			r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Election, Life: time.Minute})
			for i, token := range c.tokens {
				if token >= 0 {
					put(t, servers[i], 1, token, token)
				}
			}
			if c.down {
				servers[2].(master).Server.Kill()
			}
			for range 5 {
				var s protocol.Standing
				eventually(t, "all that live answer in time", func() bool { // of one that did not, it is not known what it accepted
					began := time.Now()
					s = look(t, r)
					return time.Since(began) < time.Second
				})
				if held := s.Holders > 0; s.Token != c.want || held != (c.want != 0) || held && (s.Since != c.want || s.Holder.Label != "label") {
					t.Fatalf("got %+v, want token %d", s, c.want)
				}
			}
		})
	}
}

// Since does not change while a hold lasts, nor with who looks.
func TestLookTellsSinceWhen(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(9))
	spec := protocol.Spec{Name: "x", Kind: protocol.Election, Life: time.Minute}
	before := time.Now().UnixMicro()
	held := try(t, p.Bind(spec), 1)
	want(t, "hold", held, protocol.Held)
	first := look(t, p.Bind(spec))
	if first.Since < before || first.Since > time.Now().UnixMicro() || first.Token != held.Token {
		t.Fatalf("got %+v of token %d, held after %d", first, held.Token, before)
	}
	for range 10 {
		for _, p := range []*Protocol{p, other} {
			if s := look(t, p.Bind(spec)); s.Since != first.Since || s.Token != first.Token {
				t.Fatalf("%+v, then %+v", first, s)
			}
		}
	}
}

// Trap 40: tokens may be ahead of the clocks of all masters, or of some. Since does not change then
// either.
func TestLookTellsSinceWhenAheadOfClocks(t *testing.T) {
	servers := start(t)
	p := client(t, servers, true, id(0))
	token := time.Now().Add(time.Hour).UnixMicro()
	for _, s := range servers {
		put(t, s, 1, token, token)
	}
	r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.Election, Life: time.Minute})
	for range 10 {
		if s := look(t, r); s.Token != token || s.Since != token {
			t.Fatalf("got %+v, want since %d", s, token)
		}
	}
}

// The remainder of a min hold is nobody's, and keeps out the callers that the hold kept out.
func TestMinHoldIsNobodys(t *testing.T) {
	p := client(t, start(t), true, id(0))
	keep := func(r protocol.Resource, n int) {
		ctx, cancel := context.WithTimeout(t.Context(), enough)
		defer cancel()
		if _, err := r.Free(ctx, protocol.Free{Ticket: protocol.Ticket{ID: id(n), Block: 1}, Keep: p.micros(time.Now().Add(time.Minute))}); err != nil {
			t.Fatal(err)
		}
	}
	r, w := reader(p, ""), writer(p, "")
	want(t, "reader", try(t, r, 1), protocol.Held)
	keep(r, 1)
	if s := look(t, r); s.Holder != (protocol.Party{}) || s.Holders != 1 {
		t.Errorf("got %+v", s)
	}
	want(t, "reader beside what a reader left", try(t, r, 2), protocol.Held)
	busy := try(t, w, 3)
	if want(t, "writer beside what a reader left", busy, protocol.Busy); busy.Holder.Owner != string(id(2)) {
		t.Errorf("held by %+v", busy.Holder)
	}
	if s := look(t, r); s.Holder.Owner != string(id(2)) {
		t.Errorf("got %+v, and one reads", s)
	}
	free(t, r, 2)
	if busy := try(t, w, 3); busy.Status != protocol.Busy || busy.Holder != (protocol.Party{}) || busy.Remaining < 30*time.Second {
		t.Errorf("got %+v", busy)
	}
}

// When a majority keeps something else under the name, every request says so, in whatever order
// nodes answer.
func TestAnotherKind(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []int // the masters that keep something else
		down int   // one that does not answer; -1: none
		text bool  // it is no lock at all
	}{
		{"at all", []int{0, 1, 2}, -1, false},
		{"at the first two", []int{0, 1}, -1, false},
		{"at the last two", []int{1, 2}, -1, false},
		{"and one is down", []int{0, 2}, 1, false},
		{"a text at all", []int{0, 1, 2}, -1, true},
		{"a text at the first two", []int{0, 1}, -1, true},
		{"a text at the last two", []int{1, 2}, -1, true},
		{"a text, and one is down", []int{0, 2}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers := start(t)
			p := client(t, servers, true, id(0))
			r := p.Bind(protocol.Spec{Name: "x", Kind: protocol.ReadWrite, Life: time.Minute}).(*resource)
			want(t, "hold", try(t, r, 1), protocol.Held)
			free(t, r, 1)
			for i, s := range servers {
				eventually(t, "it is free", func() bool {
					n, _ := s.(master).Server.Do("EXISTS", "q:{%quorum}:x")
					return n == int64(0)
				})
				if slices.Contains(c.at, i) && c.text {
					if _, err := s.(master).Server.Do("SET", "q:{%quorum}:x", "text"); err != nil {
						t.Fatal(err)
					}
				} else if slices.Contains(c.at, i) {
					put(t, s, 2, 7, 7)
				}
			}
			if c.down >= 0 {
				servers[c.down].(master).Server.Kill()
			}
			for range 5 {
				for op, f := range map[string]func() error{
					"ask":       func() error { _, err := r.Ask(t.Context(), ask(3)); return err },
					"downgrade": func() error { _, err := r.Downgrade(t.Context(), ask(3)); return err },
					"look":      func() error { _, err := r.Look(t.Context(), nil); return err },
					"free": func() error {
						_, err := r.Free(t.Context(), protocol.Free{Ticket: protocol.Ticket{ID: id(3), Block: 1}})
						return err
					},
					"renew": func() (err error) {
						p.Renew(t.Context(), []protocol.Renewal{{Resource: r, Ticket: ask(3).Ticket, Token: 7, TTL: time.Second}},
							func(_ int, answer protocol.Renewed) { err = answer.Err })
						return err
					},
				} {
					if op == "renew" && !c.text {
						continue // it looks for its own hold alone, and that is gone
					}
					var foreign *protocol.Foreign
					var err error
					eventually(t, "those that live answer in time", func() bool { // where one is down, no error waits for them for long
						err = f()
						return !passing(err)
					})
					if !errors.As(err, &foreign) || foreign.Is == "" {
						t.Errorf("%s: got %v", op, err)
					}
				}
			}
		})
	}
}
