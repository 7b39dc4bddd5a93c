package workload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/fault"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

// drain is how long a worker may take to end: its longest step is a wait, a hold beyond the TTL,
// and two entries into it with the same; and a machine that has much else to do.
const drain = 3*(longestWait+5*longestTTL) + 30*time.Second

// quiet is the time at the end of a run without faults, in which the living clean up after the
// dead.
const quiet = longestTTL

// A slot keeps one worker alive, and troubles it.
type slot struct {
	run   *Run
	index int
	life  int
	dice  dice
	end   time.Time

	proxy *fault.Proxy
	proc  string
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bytes.Buffer
	done  chan error // what Wait returned, once
}

func (s *slot) keepAlive(ctx context.Context) error {
	defer s.proxy.Close()
	if err := s.start(); err != nil {
		return err
	}
	for {
		wait := min(s.dice.Between(500*time.Millisecond, 3*time.Second), time.Until(s.end))
		if s.wait(ctx, wait) {
			return errors.Join(fmt.Errorf("worker %s ended before it was told to", s.proc), s.finish())
		}
		left := time.Until(s.end) - quiet
		switch roll := s.dice.IntN(100); {
		case ctx.Err() != nil || left <= -quiet:
			return s.finish()
		case left <= 0:
		case roll < 30:
			if err := s.kill(); err != nil {
				return err
			}
		case roll < 65:
			s.freeze(ctx, left)
		default:
			s.silence(min(left, s.dice.Between(20*time.Millisecond, 2*longestTTL)))
		}
	}
}

func (s *slot) name() string { return fmt.Sprintf("p%d", s.index+1) }

// wait waits, until ctx is over or the worker has ended by itself, which it tells.
func (s *slot) wait(ctx context.Context, long time.Duration) bool {
	select {
	case <-time.After(long):
	case <-ctx.Done():
	case err := <-s.done:
		s.done <- err
		return true
	}
	return false
}

func (s *slot) start() error {
	s.life++
	s.proc = fmt.Sprintf("%s.%d", s.name(), s.life)
	plan := s.run.Plan
	plan.Proc, plan.Slot, plan.Addr = s.proc, s.index, s.proxy.Addr()
	env, err := plan.env()
	if err != nil {
		return err
	}
	s.cmd, s.out, s.done = s.run.Command(), &bytes.Buffer{}, make(chan error, 1)
	s.cmd.Env = append(s.cmd.Environ(), env)
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return fmt.Errorf("worker %s: %w", s.proc, err)
	}
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("worker %s: %w", s.proc, err)
	}
	go func(cmd *exec.Cmd, done chan<- error) { done <- cmd.Wait() }(s.cmd, s.done)
	return nil
}

// kill ends the worker with no chance to clean up, and starts its next life.
func (s *slot) kill() error {
	s.run.parent.Put(history.Record{Event: history.Kill, Proc: s.proc})
	if err := s.cmd.Process.Kill(); err != nil {
		return fmt.Errorf("worker %s: kill: %w", s.proc, err)
	}
	<-s.done
	s.run.addCounts(func(c *Counts) { c.Kills++ })
	return s.start()
}

// freeze freezes the worker for a while, half the time past every TTL. A system without such
// signals has no halts.
func (s *slot) freeze(ctx context.Context, most time.Duration) {
	long := min(most, s.dice.Between(20*time.Millisecond, 2*longestTTL))
	s.run.parent.Put(history.Record{Event: history.Stop, Proc: s.proc})
	if harness.Freeze(s.cmd.Process) == nil {
		s.wait(ctx, long)
		_ = harness.Thaw(s.cmd.Process)
		s.run.addCounts(func(c *Counts) {
			c.Stops++
			if long > longestTTL {
				c.LongStops++
			}
		})
	}
	s.run.parent.Put(history.Record{Event: history.Cont, Proc: s.proc})
}

// silence lets the network between the worker and the server fall silent for a while.
func (s *slot) silence(long time.Duration) {
	s.run.parent.Put(history.Record{Event: history.Mute, Proc: s.name(), Limit: int64(long)})
	s.proxy.Silence()
	time.AfterFunc(long, s.proxy.Speak)
	s.run.addCounts(func(c *Counts) { c.Mutes++ })
}

// finish asks the worker to end, and tells what it had to say if it ended badly or not at all.
func (s *slot) finish() error {
	_ = s.stdin.Close()
	var err error
	select {
	case err = <-s.done:
	case <-time.After(drain):
		harness.Abort(s.cmd.Process) // shows its goroutines where the system can
		err = errors.Join(errors.New("did not end"), <-s.done)
	}
	if err != nil {
		return fmt.Errorf("worker %s: %w\n%s", s.proc, err, s.out)
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.run.ended = append(s.run.ended, s.proc)
	return nil
}

func pause(long time.Duration, done <-chan struct{}) {
	select {
	case <-time.After(long):
	case <-done:
	}
}
