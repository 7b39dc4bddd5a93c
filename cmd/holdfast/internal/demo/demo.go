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

// settingsVariable has the Config of a worker: a command line would show the password of the URL.
const settingsVariable = "HOLDFAST_DEMO_WORKER"

// A report goes from a worker to the parent.
type report struct {
	Worker      int `json:"-"`
	Step        string
	Token       int64
	Waiting, At time.Time // entered: the start of the wait, and the grant; ready: the start of the release
	Until       time.Time // entered, renewed: the end of trust
	Ticket      int       // leaving: the draw; 0: none
	Lost        string    // leaving: how the lease was lost
	Failed      string    // ready, ended
}

// The steps of a worker. The answer to ready is the start of the next round. A renewal is reported
// at any time and gets no answer. The reader of a worker's output reports the end of the process.
const ready, entered, renewed, leaving, ended = "ready", "entered", "renewed", "leaving", "ended"

// An answer goes from the parent to a worker.
type answer struct {
	Drawn bool  // entered: the round is drawn
	Trial trial // ready: of the round; entered: of this worker
}

// Run plays the lottery. When it returns, no worker is left. broken says what did not go as
// promised, and err why the lottery could not be finished.
func Run(ctx context.Context, c Config) (summary string, broken, err error) {
	l := newLottery(c)
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	var readers sync.WaitGroup
	for n := 1; n <= c.Workers && err == nil; n++ {
		err = l.start(alive, &readers, n)
	}
	for err == nil {
		if err = l.collect(ctx); err != nil || l.Round == c.Rounds {
			break
		}
		l.open()
	}
	end()
	readers.Wait()
	if err != nil {
		err = fmt.Errorf("round %d: %w", l.Round, err)
	}
	return l.summary(), l.broken(), err
}

// start starts a worker. At the end of ctx its standard input ends; after 2 s more it is killed.
func (l *lottery) start(ctx context.Context, readers *sync.WaitGroup, number int) error {
	settings, err := json.Marshal(worker{Config: l.Config, Number: number})
	cmd := exec.CommandContext(ctx, l.Command[0], l.Command[1:]...)
	cmd.Env = append(os.Environ(), settingsVariable+"="+string(settings))
	cmd.Stderr, cmd.WaitDelay = l.Stderr, 2*time.Second
	stdin, errIn := cmd.StdinPipe()
	stdout, errOut := cmd.StdoutPipe()
	if err := errors.Join(err, errIn, errOut); err != nil {
		return err
	}
	cmd.Cancel = stdin.Close
	if err := cmd.Start(); err != nil {
		return err
	}
	l.processes[number] = &process{cmd.Process, json.NewEncoder(stdin)}
	readers.Go(func() {
		in := json.NewDecoder(stdout)
		for alive := true; alive; {
			r := report{}
			if alive = in.Decode(&r) == nil; !alive {
				r = report{Step: ended, Failed: fmt.Sprintf("its process ended: %v", cmd.Wait())}
			}
			r.Worker = number
			select {
			case l.reports <- r:
			case <-ctx.Done():
			}
		}
	})
	return nil
}

// collect judges reports until every worker is ready for the next round. A round without a draw is
// the end.
func (l *lottery) collect(ctx context.Context) (err error) {
	for err == nil && len(l.busy) > 0 {
		select {
		case r := <-l.reports:
			err = l.judge(r)
		case <-l.overdue:
			err = l.problem(l.trial.worker, "nobody takes over")
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		l.show()
	}
	if err == nil && l.Round > 0 && l.winners[l.Round] == 0 {
		err = errors.New("nobody drew")
	}
	return err
}
