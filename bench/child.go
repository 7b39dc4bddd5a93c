package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// childArg is the argument that makes this program a worker of another one.
const childArg = "bench-worker"

// A duty tells a worker process what to do.
type duty struct {
	Target    target
	Contender int // its place among the entries
	Row       int
	Name      string
	Board     string // path of the file
	Who       int
}

// child does its duty, and prints the times of its hand-overs.
func child(order string) error {
	var d duty
	if err := json.Unmarshal([]byte(order), &d); err != nil {
		return err
	}
	on, err := openBoard(d.Board)
	if err != nil {
		return err
	}
	c, err := entries[d.Contender].open(d.Target)
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	// Make connections and load scripts, on a name that nobody else uses.
	ctx, own := context.Background(), fmt.Sprintf("%s:warm:%d", d.Name, d.Who)
	if err := c.prepare(ctx, own); err != nil {
		return err
	}
	if err := c.pair(ctx, own); err != nil {
		return err
	}
	times := []time.Duration{}
	if d.Row == 4 {
		err = contend(ctx, c, d.Name, on, d.Who)
	} else {
		times, err = takeTurns(ctx, c, d.Name, on, d.Who)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(times)
}

const (
	glance = 200 * time.Microsecond // between two looks at the board
	hold   = time.Millisecond       // long enough that the other's request has reached the server
)

// takeTurns does what a process of row 5 does. It does not ask again before the other has had its
// turn, because some locks would let it in at once, and it gives back when the other has been
// waiting for a while. It returns, for each turn it got, the time since just before the other began
// to give back. Both clocks are the host's wall clock; if that is set meanwhile, it spoils one time
// out of many.
func takeTurns(ctx context.Context, c contender, name string, on *board, who int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, 1<<12)
	other := &on.workers[1-who]
	on.begin()
	for !on.over() {
		if on.last.Load() == int64(who)+1 {
			time.Sleep(glance)
			continue
		}
		on.ask(who)
		unlock, err := c.lock(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if since := time.Now().UnixNano() - on.releasing.Load(); on.last.Load() != 0 && since > 0 {
			times = append(times, time.Duration(since))
		}
		on.enter(who)
		for other.asked.Load() == 0 && !on.over() {
			time.Sleep(glance)
		}
		time.Sleep(hold)
		on.leave(who)
		on.releasing.Store(time.Now().UnixNano())
		if err := unlock(); err != nil {
			return nil, fmt.Errorf("unlock: %w", err)
		}
	}
	return times, nil
}
