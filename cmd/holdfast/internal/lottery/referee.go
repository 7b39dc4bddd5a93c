package lottery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A referee sees all that the workers say, in the order in which it happened, and writes down what came of it.
type referee struct {
	hall *Hall

	mu      sync.Mutex
	closed  bool
	dead    map[int]bool
	missing map[int]bool  // workers that have not said ready, or done, yet
	all     chan struct{} // closed when missing becomes empty
	broken  chan struct{} // closed when a worker could not go on: the others may wait for ever then

	round    int
	ledger   Ledger
	inside   map[int]bool // workers between entered and left
	dying    int          // the worker that was killed, 0 before
	subject  *player      // of the trial under way, until its round is over
	stopped  *player      // to be continued
	hit      time.Time    // when the trial began
	awaiting bool         // nobody has taken over yet
	highest  int64
	turns    []turn
	seen     Result
}

// A turn is one holding of the lock.
type turn struct {
	round, worker       int
	since, at, released time.Time // released is zero if it was killed
}

func newReferee(h *Hall) *referee {
	r := &referee{hall: h, dead: map[int]bool{}, inside: map[int]bool{}, missing: map[int]bool{},
		all: make(chan struct{}), broken: make(chan struct{})}
	for n := 1; n <= h.Workers; n++ {
		r.missing[n] = true
	}
	return r
}

// arrived is called with the lock held.
func (r *referee) arrived(worker int) {
	if !r.missing[worker] {
		return
	}
	delete(r.missing, worker)
	if s := r.stopped; s != nil && len(r.missing) == 1 && r.missing[s.number] {
		r.stopped = nil
		r.show(Event{Kind: Continued, Worker: s.number})
		if err := continueProcess(s.cmd.Process); err != nil {
			r.problem(s.number, "continue: "+err.Error())
			r.stuck()
		}
	}
	if len(r.missing) == 0 {
		close(r.all)
	}
}

// stuck is called with the lock held.
func (r *referee) stuck() {
	select {
	case <-r.broken:
	default:
		close(r.broken)
	}
}

// wait returns when all have arrived, or says why they will not.
func (r *referee) wait(ctx context.Context, all <-chan struct{}) error {
	select {
	case <-all:
		return nil
	case <-r.broken:
		return errors.New("a worker could not go on")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the watching over workers' ends.
func (r *referee) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

// open begins a round for those that live. The channel is closed when each of them has had its turn, or has died.
func (r *referee) open(round int, players []*player) (alive []*player, all <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range players {
		if !r.dead[p.number] {
			alive = append(alive, p)
			r.missing[p.number] = true
		}
	}
	r.round, r.all, r.subject, r.awaiting = round, make(chan struct{}), nil, false
	r.show(Event{Kind: Opened, Others: len(alive)})
	return alive, r.all
}

// shut ends a round. A round without a draw is the end of the lottery.
func (r *referee) shut(round int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var here []turn
	for _, t := range r.turns {
		if t.round == round {
			here = append(here, t)
		}
	}
	others := len(here) - 1
	if r.subject != nil {
		others--
	}
	r.show(Event{Kind: Closed, Others: max(others, 0), Took: quantile(handOvers(here), 0.5)})
	if !r.ledger.Drawn(round) {
		return fmt.Errorf("round %d: nobody drew", round)
	}
	return nil
}

// ended is told of the end of a worker's process.
func (r *referee) ended(p *player, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	r.dead[p.number] = true
	delete(r.inside, p.number)
	if r.stopped == p {
		r.stopped = nil
	}
	r.arrived(p.number)
	if p.number != r.dying {
		r.problem(p.number, fmt.Sprintf("ended: %v", err))
		r.stuck()
	}
}

func (r *referee) problem(worker int, text string) {
	r.seen.Problems = append(r.seen.Problems, fmt.Sprintf("round %d, worker %d: %s", r.round, worker, text))
	r.show(Event{Kind: Problem, Worker: worker, Text: text})
}

// show is called with the lock held: a view sees events one at a time, in order.
func (r *referee) show(e Event) {
	e.Round = r.round
	if r.hall.View != nil && !r.closed {
		r.hall.View(e)
	}
}

func (r *referee) result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	result := r.seen
	result.Rounds, result.Turns, result.HandOvers = r.hall.Rounds, len(r.turns), handOvers(r.turns)
	result.Draws, result.Doubles, result.Stale = r.ledger.Draws(), r.ledger.Doubles, r.ledger.Stale
	result.Incidents = append([]Incident(nil), r.seen.Incidents...)
	return &result
}
