package linear

import (
	"os"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// TestMain fails when a goroutine is left behind (trap 33).
func TestMain(m *testing.M) { os.Exit(leak.Main(m)) }

// at is a step that took effect at some moment between two.
func at(from, to int64, s step) porcupine.Operation {
	return porcupine.Operation{Input: s, Call: from, Return: to}
}

// An order is steps in any order.
type order []porcupine.Operation

// in is a step in which a hold enters.
func in(id string, token int64, change func(*step)) step {
	s := step{verb: enter, member: member{Claim: judge.Claim{Root: id}, id: id, proc: id[:1], token: token}}
	if change != nil {
		change(&s)
	}
	return s
}

func out(id string) step { return step{verb: leave, member: member{id: id}} }
func reads(s *step)      { s.Shares = true }
func ann(s *step)        { s.Owner = "ann" }
func takes(n int64) func(*step) {
	return func(s *step) { s.Weight, s.n = n, 4 }
}

// follows is takes for one whose process may know of another number.
func follows(n int64) func(*step) {
	return func(s *step) { s.Weight, s.n, s.follows = n, 4, true }
}

func TestModel(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps order
		fits  bool
	}{
		{"one after the other", order{at(0, 1, in("a", 1, nil)), at(2, 2, out("a")), at(0, 4, in("b", 2, nil))}, true},
		{"two at once", order{at(0, 1, in("a", 1, nil)), at(5, 5, out("a")), at(2, 4, in("b", 2, nil))}, false},
		{"the second has the smaller token", order{at(0, 1, in("a", 2, nil)), at(2, 2, out("a")),
			at(3, 4, in("b", 1, nil))}, false},
		{"two readers", order{at(0, 1, in("a", 1, reads)), at(2, 3, in("b", 2, reads))}, true},
		{"a reader beside a writer", order{at(0, 1, in("a", 1, nil)), at(2, 3, in("b", 2, reads))}, false},
		{"a reader after a downgrade", order{at(0, 1, in("a", 1, nil)),
			at(2, 2, step{verb: share, member: member{id: "a"}}), at(2, 3, in("b", 2, reads))}, true},
		{"a writer after a downgrade", order{at(0, 1, in("a", 1, nil)),
			at(2, 2, step{verb: share, member: member{id: "a"}}), at(2, 3, in("b", 2, nil))}, false},
		{"a writer with a reader's token", order{at(0, 1, in("a", 1, reads)), at(2, 2, out("a")),
			at(2, 3, in("b", 1, nil))}, false},
		{"a reader joins", order{at(0, 1, in("a1", 1, reads)), at(2, 3, in("a2", 1, reads))}, true},
		{"an owner beside itself", order{at(0, 1, in("a", 1, ann)), at(2, 3, in("b", 2, ann))}, true},
		{"an owner beside another", order{at(0, 1, in("a", 1, ann)), at(2, 3, in("b", 2, nil))}, false},
		{"an entry", order{at(0, 1, in("a", 1, nil)), at(2, 3, in("b", 1, func(s *step) {
			s.Root, s.entry = "a", true
		}))}, true},
		{"permits", order{at(0, 1, in("a", 1, takes(2))), at(2, 3, in("b", 2, takes(2)))}, true},
		{"too many permits", order{at(0, 1, in("a", 1, takes(2))), at(2, 3, in("b", 2, takes(3)))}, false},
		{"another number of permits", order{at(0, 1, in("a", 1, takes(2))), at(2, 3, step{verb: resize, n: 8}),
			at(4, 5, in("b", 2, takes(2)))}, false},
		{"many permits after a Resize", order{at(0, 1, in("a", 1, takes(2))), at(2, 5, step{verb: resize, n: 8}),
			at(2, 5, in("b", 2, func(s *step) { s.Weight, s.n, s.unsure = 3, 4, true }))}, true},
		{"another number, which its process has learned", order{at(0, 1, in("a", 1, takes(2))),
			at(2, 3, step{verb: resize, n: 8}), at(4, 5, in("b", 2, follows(6)))}, true},
		{"more than the number that its process has learned", order{at(0, 1, in("a", 1, takes(2))),
			at(2, 3, step{verb: resize, n: 8}), at(4, 5, in("b", 2, follows(7)))}, false},
		{"any number may be what its process has learned", order{at(0, 1, in("a", 1, follows(2))),
			at(2, 3, in("b", 2, follows(6)))}, true},
		{"a handle tells the number that a process had learned", order{at(0, 1, in("a", 1, follows(3))),
			at(2, 3, in("b", 2, takes(2)))}, false},
		{"the number that a handle told stays", order{at(0, 1, in("a", 1, follows(2))),
			at(2, 3, in("b", 2, takes(2))), at(4, 5, in("c", 3, follows(1)))}, false},
		{"a Resize without an answer", order{at(0, 1, in("a", 1, takes(2))),
			at(2, 9, step{verb: resize, n: 8, unsure: true}), at(4, 5, in("b", 2, takes(2)))}, true},
		{"a latch", order{at(0, 1, step{verb: isUnset}), at(2, 3, step{verb: set, n: 2}),
			at(4, 5, step{verb: countDown}), at(6, 7, step{verb: counts, n: 1}), at(6, 9, step{verb: counts}),
			at(7, 9, step{verb: countDown}), at(10, 11, step{verb: set, n: 1}), at(12, 13, step{verb: isSet})}, true},
		{"a latch opens too early", order{at(2, 3, step{verb: set, n: 2}), at(4, 5, step{verb: countDown}),
			at(6, 7, step{verb: counts})}, false},
		{"a latch is set twice", order{at(2, 3, step{verb: set, n: 2}), at(4, 5, step{verb: set, n: 2})}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			model := porcupine.NondeterministicModel{Init: initial, Step: next, Equal: equal}
			if fits := porcupine.CheckOperations(model.ToModel(), c.steps); fits != c.fits {
				t.Errorf("fits: %v, want %v", fits, c.fits)
			}
		})
	}
}
