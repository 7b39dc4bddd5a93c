package quorum

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// lookAgain looks, without a watcher, until a majority answers in the second that a look has, in
// which this machine may stand still.
func lookAgain(t *testing.T, r *resource) (standing protocol.Standing) {
	t.Helper()
	eventually(t, "a majority answers in time", func() bool {
		var err error
		if standing, err = r.Look(t.Context(), nil); err != nil && !isPassing(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return standing
}

// electionOf returns the election x.
func electionOf(p *Protocol) *resource {
	return p.bind(protocol.Spec{Name: "x", Kind: protocol.Election, Life: time.Minute})
}

// A look tells the token that a majority accepted, whichever nodes answer first.
func TestLookTellsAgreedToken(t *testing.T) {
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
			servers, all, p := startGated(t)
			for i, token := range c.tokens {
				if token >= 0 {
					put(t, 1, holdValue("3ex", token, token)+"label", servers[i])
				}
			}
			if c.down {
				all[2].shut()
			}
			for range 5 {
				var s protocol.Standing
				// of one that did not, it is not known what it accepted
				eventually(t, "all that live answer in time", func() bool {
					began := time.Now()
					s = lookAgain(t, electionOf(p))
					return time.Since(began) < time.Second
				})
				if held := s.Holders > 0; s.Token != c.want || held != (c.want != 0) || held && (s.Since != c.want ||
					s.Holder.Label != "label") {
					t.Fatalf("got %+v, want token %d", s, c.want)
				}
			}
		})
	}
}

// Trap 40: tokens may be ahead of the clocks of all masters, or of some. Since does not change then
// either, whoever looks.
func TestLookSinceIsTokenAheadOfClocks(t *testing.T) {
	servers := start(t)
	token := time.Now().Add(time.Hour).UnixMicro()
	put(t, 1, holdValue("3ex", token, token), servers...)
	for n := range 3 {
		if s := lookAgain(t, electionOf(client(t, servers, true, id(n)))); s.Token != token || s.Since != token {
			t.Fatalf("got %+v, want since %d", s, token)
		}
	}
}

// A watcher is told of the next change by each master, until it is taken back.
func TestWatcherIsToldByEachMaster(t *testing.T) {
	servers := start(t)
	p, other := client(t, servers, true, id(0)), client(t, servers, true, id(99))
	h := listen(t, servers, p)
	watcher := protocol.Ticket{ID: id(7)}
	watching := func(n int64) {
		t.Helper()
		eventually(t, "all masters remember the watcher, or forget it", func() bool {
			return countAll(t, servers,
				"ZCARD", "q:{%quorum}=x") == n
		})
	}
	if s, err := electionOf(p).Look(t.Context(), &watcher); err != nil || s.Holders != 0 {
		t.Fatalf("nobody holds: %+v, %v", s, err)
	}
	watching(3)
	want(t, "election", tryAsk(t, electionOf(other), 1), protocol.Held)
	eventually(t, "the watcher is told by each master", func() bool { nudges, _ := h.of(7); return len(nudges) == 3 })
	if _, err := electionOf(p).Look(t.Context(), &watcher); err != nil {
		t.Fatal(err)
	}
	if err := electionOf(p).Unwatch(t.Context(), watcher); err != nil {
		t.Error(err)
	}
	watching(0)
}

// When a majority keeps something else under the name, every request says so, in whatever order
// nodes answer.
func TestForeignKeyAtMajorityIsTold(t *testing.T) {
	for _, c := range []struct {
		name string
		at   []int // the masters that keep something else
		down int   // one that does not answer; -1: none
		text bool  // it is no lock at all
	}{
		{"at all", []int{0, 1, 2}, -1, false},
		{"at the last two", []int{1, 2}, -1, false},
		{"and one is down", []int{0, 2}, 1, false},
		{"a text at all", []int{0, 1, 2}, -1, true},
		{"a text at the first two", []int{0, 1}, -1, true},
		{"a text, and one is down", []int{0, 2}, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			servers, all, p := startGated(t)
			r := writerOf(p, "")
			warm(t, p)
			for i, s := range servers {
				if slices.Contains(c.at, i) && c.text {
					do(t, s, "SET", "q:{%quorum}:x", "text")
				} else if slices.Contains(c.at, i) {
					put(t, 2, holdValue("3ex", 7, 7), s)
				}
			}
			if c.down >= 0 {
				all[c.down].shut()
			}
			for op, f := range requestsOf(t, r) {
				if op == "renew" && !c.text {
					continue // it looks for its own hold alone, and that is gone
				}
				var foreign *protocol.Foreign
				var err error
				// where one is down, no error waits for them for long
				eventually(t, "those that live answer in time", func() bool {
					err = f()
					return !isPassing(err)
				})
				if !errors.As(err, &foreign) || foreign.Is == "" {
					t.Errorf("%s: got %v", op, err)
				}
			}
		})
	}
}

// requestsOf returns all requests about a name that read its state. Each returns its error.
func requestsOf(t *testing.T, r *resource) map[string]func() error {
	return map[string]func() error{
		"ask": func() error { _, err := r.Ask(t.Context(), ask(3)); return err },
		"ask to wait": func() error {
			joins := ask(1)
			joins.Join = true
			_, err := r.Ask(t.Context(), joins)
			return err
		},
		"break": func() error {
			_, err := r.p.Break(t.Context(), "x", protocol.Break{Kind: r.spec.Kind, Token: 7, By: "breaker"})
			return err
		},
		"downgrade": func() error { _, err := r.Downgrade(t.Context(), ask(1)); return err },
		"look":      func() error { _, err := r.Look(t.Context(), &protocol.Ticket{ID: id(5)}); return err },
		"free":      func() error { _, err := freeKeeping(t, r, 1, 0); return err },
		"renew":     func() error { return renewOnce(t, r.p, renewalOf(r, 1, 7)).Err },
	}
}
