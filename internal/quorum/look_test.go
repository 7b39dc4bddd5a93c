package quorum

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
)

// lookAgain looks, without a watcher, until a majority answers in the second that a look has, in
// which this machine may stand still.
func lookAgain(t *testing.T, r *resource) (standing protocol.Standing) {
	t.Helper()
	until(t, "a majority answers in time", func() bool {
		var err error
		if standing, err = r.Look(t.Context(), nil); err != nil && !isPassing(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return standing
}

// A look tells the hold whose token a majority accepted, whichever nodes answer first, and of one
// that is away it is not known what it accepted. Remainders are nobody's; beside them the holder is
// named.
func TestLookTellsByMajority(t *testing.T) {
	party := protocol.Party{Owner: string(id(1)), Unnamed: true}
	beside := protocol.Party{Owner: string(id(2)), Label: "by", Unnamed: true}
	for want, arrangements := range map[protocol.Standing]string{
		{Holder: party, Token: 7, Since: 7, Holders: 1}:  "hhh ehh thh -hh hhd ehd htd hhb",
		{Holder: beside, Token: 8, Since: 8, Holders: 1}: "bbh bbd bbr",
		{Holders: 1}: "rrr rrh rr-",
		{}:           "eht htt ttt h-- r--",
	} {
		for masters := range strings.FieldsSeq(arrangements) {
			t.Run(masters, func(t *testing.T) {
				_, p := arrangeMasters(t, masters, "3mx")
				for range 5 {
					var got protocol.Standing
					until(t, "all that live answer in time", func() bool {
						began := time.Now()
						got = lookAgain(t, mutexOf(p))
						return time.Since(began) < time.Second
					})
					if got.Server = 0; got != want {
						t.Fatalf("got %+v, want %+v", got, want)
					}
				}
			})
		}
	}
}

// When a majority keeps something else under the name, every request says so, in whatever order
// nodes answer, and waits for nothing more.
func TestForeignKeyAtMajorityIsTold(t *testing.T) {
	for _, masters := range []string{"kkk", "-kk", "kdk", "fff", "ff-", "fdf"} {
		t.Run(masters, func(t *testing.T) {
			_, p := arrangeMasters(t, masters, "3rx")
			for op, f := range requestsOf(t, writerOf(p, "")) {
				if op == "renew" && masters[0] != 'f' {
					continue // it looks for its own hold alone, and that is gone
				}
				var foreign *protocol.Foreign
				var err error
				// where one is down, no error waits for them for long
				until(t, "those that live answer in time", func() bool {
					err = f()
					return !isPassing(err)
				})
				if !errors.As(err, &foreign) || foreign.Found == "" {
					t.Errorf("%s: got %v", op, err)
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(p.waits) != 0 {
				t.Errorf("%d wait", len(p.waits))
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
