package lottery

import "testing"

func TestLedger(t *testing.T) {
	first := Draw{Round: 1, Worker: 1, Ticket: 7, Token: 10}
	for name, test := range map[string]struct {
		next                  Draw
		draws, doubles, stale int
	}{
		"next round, larger token":   {Draw{Round: 2, Worker: 2, Token: 11}, 2, 0, 0},
		"same round, larger token":   {Draw{Round: 1, Worker: 2, Token: 11}, 1, 1, 0},
		"same round, same worker":    {first, 1, 0, 1},
		"next round, same token":     {Draw{Round: 2, Worker: 2, Token: 10}, 1, 0, 1},
		"next round, smaller token":  {Draw{Round: 2, Worker: 2, Token: 9}, 1, 0, 1},
		"earlier round, late writer": {Draw{Round: 0, Worker: 2, Token: 5}, 1, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var l Ledger
			if l.Drawn(1) {
				t.Error("drawn before the draw")
			}
			if err := l.Record(first); err != nil {
				t.Fatalf("first draw: %v", err)
			}
			err := l.Record(test.next)
			if (err == nil) != (test.draws == 2) {
				t.Errorf("error %v", err)
			}
			if l.Draws() != test.draws || l.Doubles != test.doubles || l.Stale != test.stale {
				t.Errorf("%d draws, %d doubles, %d stale", l.Draws(), l.Doubles, l.Stale)
			}
			if l.Drawn(test.next.Round) != (err == nil || test.next.Round == 1) {
				t.Errorf("round %d drawn: %v", test.next.Round, l.Drawn(test.next.Round))
			}
		})
	}
}

// A refused draw must not count as seen: else a late writer could shut out the one that is right.
func TestLedgerIsUnchangedByRefusal(t *testing.T) {
	var l Ledger
	_ = l.Record(Draw{Round: 1, Token: 10})
	_ = l.Record(Draw{Round: 1, Token: 99})
	if err := l.Record(Draw{Round: 2, Token: 11}); err != nil {
		t.Error(err)
	}
}
