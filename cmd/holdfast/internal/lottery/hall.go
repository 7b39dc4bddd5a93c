package lottery

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// A Hall is where the lottery is held. Its fields are set before Run.
type Hall struct {
	Command []string      // starts one worker: the program that calls Work, and its arguments
	Draw    time.Duration // how long drawing takes: time in which others, without a lock, would draw too
	Prefix  string        // of all keys at the server
	Rounds  int
	Slack   time.Duration // what a take-over may need on top of the TTL; 0: the library's promise
	Stderr  io.Writer     // for what workers say when they crash
	TTL     time.Duration
	URL     string // of the server
	View    View
	Without bool // without the lock: shows what it is for
	Workers int
}

// Run holds the lottery and returns what came of it; no worker is left then. The error says why it could not be
// finished; the result holds what there was until then.
func (h *Hall) Run(ctx context.Context) (*Result, error) {
	r := newReferee(h)
	var players []*player
	defer func() {
		r.close() // from here on an end is no surprise
		stop(players, 2*time.Second)
	}()
	for n := 1; n <= h.Workers; n++ {
		p, err := start(n, h.Command, h.Stderr, h.setup(n), r.said, r.ended)
		if err != nil {
			return r.result(), err
		}
		players = append(players, p)
	}
	if err := r.wait(ctx, r.all); err != nil {
		return r.result(), fmt.Errorf("starting the workers: %w", err)
	}
	for round := 1; round <= h.Rounds; round++ {
		alive, all := r.open(round, players)
		if len(alive) == 0 {
			return r.result(), fmt.Errorf("round %d: no worker is left", round)
		}
		maxHold := time.Duration(0)
		if h.trial(round) == Overstay {
			maxHold = h.maxHold()
		}
		rand.Shuffle(len(alive), func(i, j int) { alive[i], alive[j] = alive[j], alive[i] })
		for _, p := range alive {
			p.send(order{Round: round, MaxHold: maxHold})
		}
		if err := r.wait(ctx, all); err != nil {
			return r.result(), fmt.Errorf("round %d: %w", round, err)
		}
		if err := r.shut(round); err != nil {
			return r.result(), err
		}
	}
	return r.result(), nil
}

func (h *Hall) setup(worker int) setup {
	return setup{Worker: worker, URL: h.URL, Prefix: h.Prefix, TTL: h.TTL, Draw: h.Draw, Without: h.Without}
}
