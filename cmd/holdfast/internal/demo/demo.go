// Package demo is a lottery: several processes want to draw the winner of every round, and exactly
// one may. The processes share nothing but a lock.
//
// The parent process starts the workers, opens the rounds, and keeps the ledger, the storage that
// the lock protects. The ledger accepts one draw a round, and only with a fencing token that is
// larger than all earlier ones. The holder of the lock asks whether the round is drawn. If not, it
// takes its time and draws. Without a lock, several workers see no draw and all of them draw. In
// some rounds the holder is on trial.
//
// Workers report on their standard output and get answers on their standard input, in JSON. A
// worker waits for each answer, so the parent sees the steps in the order in which they happen, and
// would see two holders at once. A worker ends with its standard input, however the parent ends.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A Config is what a lottery needs to know.
type Config struct {
	Command         []string      // starts one worker: a program that calls Work, and its arguments
	Draw            time.Duration // the time that a draw takes
	NoLock          bool          // shows what the lock is for
	Prefix          string        // of all keys at the server
	Rounds, Workers int
	Slack           time.Duration // what a take-over may need beyond the end of the lease
	TTL             time.Duration
	URL             string      // of the server
	Stderr          io.Writer   `json:"-"` // of the workers
	View            func(State) `json:"-"` // is called from one goroutine
	Pause, Resume   os.Signal   `json:"-"` // stop a process and continue it; nil where none does
}

// A report goes from a worker to the parent. A round has one report, which grows with each step.
type report struct {
	Worker           int `json:"-"`
	Step             string
	Token            int64
	Waiting, Granted time.Time // the start of the wait for the lock, and its end
	Until            time.Time // the end of trust
	Ticket           int       // the draw; 0: none
	Lost             string    // how the lease was lost
	Failed           string    // why the worker cannot go on
}

// The steps of a worker. The first is before all rounds. The end is reported by the worker if it
// fails, and by the reader of its output.
const ready, entered, leaving, ended = "ready", "entered", "leaving", "ended"

// A task goes from the parent to a worker. It answers entered. After leaving and before each round,
// it says only that the worker may go on.
type task int

const (
	leave    task = iota // the round is drawn
	draw                 // the others are trials:
	stop                 // the worker is stopped past its TTL, and continued when the others are done
	overstay             // it does not end before its max hold
	kill                 // it is killed with -9
)

// Run plays the lottery, and returns nil if everything went as promised. When it returns, no worker
// is left.
func Run(ctx context.Context, c Config) (err error) {
	l := newLottery(c)
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	var readers sync.WaitGroup
	for n := 1; n <= c.Workers && err == nil; n++ {
		err = l.start(alive, &readers, n)
	}
	for err == nil && (l.busy > 0 || l.Round < c.Rounds) {
		if l.busy == 0 {
			l.open()
		}
		l.show()
		select {
		case r := <-l.reports:
			err = l.judge(r)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	end()
	readers.Wait()
	l.Text += "\n" + l.summary()
	switch broken := l.findBroken(); {
	case err != nil:
		err = fmt.Errorf("the lottery was not finished: round %d: %w", l.Round, err)
	case broken != nil && l.NoLock:
		err = fmt.Errorf("without the lock it goes wrong: %w", broken)
	case broken != nil:
		err = fmt.Errorf("the lock did not keep its promise: %w", broken)
	default:
		l.Text += "\nEvery round had exactly one draw.\n"
	}
	l.show()
	return err
}

// start starts a worker. At the end of ctx its standard input ends; after 2 s more it is killed.
func (l *lottery) start(ctx context.Context, readers *sync.WaitGroup, number int) error {
	cmd := exec.CommandContext(ctx, l.Command[0], l.Command[1:]...)
	cmd.Stderr, cmd.WaitDelay = l.Stderr, 2*time.Second
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return err
	}
	cmd.Cancel = stdin.Close
	if err := cmd.Start(); err != nil {
		return err
	}
	readers.Go(func() {
		in := json.NewDecoder(stdout)
		for alive := true; alive; {
			r := report{Worker: number}
			if alive = in.Decode(&r) == nil; !alive {
				r.Step, r.Failed = ended, fmt.Sprintf("its process ended: %v", cmd.Wait())
			}
			select {
			case l.reports <- r:
			case <-ctx.Done():
			}
		}
	})
	l.processes[number], l.tasks[number] = cmd.Process, json.NewEncoder(stdin)
	_ = l.tasks[number].Encode(worker{Config: l.Config, Number: number}) // the end of a process is reported
	return nil
}
