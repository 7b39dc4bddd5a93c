package lottery

import "fmt"

// A Draw is an entry of the ledger.
type Draw struct {
	Round  int
	Worker int
	Ticket int
	Token  int64
}

// A Ledger takes one draw a round, each with a larger fencing token than all before. The zero value is empty. It is
// not safe for concurrent use: the hall has a lock of its own, which is the easy case, inside one process.
type Ledger struct {
	Doubles int // draws refused because the round was drawn
	Stale   int // draws refused because of their token

	draws   map[int]Draw
	highest int64
}

// Drawn tells whether a round has been drawn.
func (l *Ledger) Drawn(round int) bool {
	_, ok := l.draws[round]
	return ok
}

// Draws is the number of draws taken.
func (l *Ledger) Draws() int { return len(l.draws) }

// Record takes a draw, or says why it does not; the ledger is then as it was, but for its counters.
func (l *Ledger) Record(d Draw) error {
	if d.Token <= l.highest {
		l.Stale++
		return fmt.Errorf("token %d is not larger than %d, which was here before", d.Token, l.highest)
	}
	if first, ok := l.draws[d.Round]; ok {
		l.Doubles++
		return fmt.Errorf("round %d was drawn by worker %d", d.Round, first.Worker)
	}
	if l.draws == nil {
		l.draws = map[int]Draw{}
	}
	l.draws[d.Round], l.highest = d, d.Token
	return nil
}
