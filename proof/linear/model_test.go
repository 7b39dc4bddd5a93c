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
	return func(s *step) { s.Weight, s.permits = n, 4 }
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
	} {
		t.Run(c.name, func(t *testing.T) {
			model := porcupine.NondeterministicModel{Init: initial, Step: next, Equal: equal}
			if fits := porcupine.CheckOperations(model.ToModel(), c.steps); fits != c.fits {
				t.Errorf("fits: %v, want %v", fits, c.fits)
			}
		})
	}
}
