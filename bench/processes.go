package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A crew is how a row runs in processes, which are this program again.
type crew struct {
	row, run  int // the number of the row, and which of its runs this is
	processes int
	workers   int // of each process
}

// runProcesses runs row 4: processes want one name, without a pause.
func runProcesses(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	s, _, err := b.runInProcesses(ctx, e, crew{row: 4, run: run, processes: 8, workers: 1})
	if s.handovers > 0 {
		s.commands *= s.rate / s.handovers // for each hand-over, not for each acquisition
	}
	return s, err
}

// runTurns runs rows 5 and 10. In row 5 two processes take turns, and each is surely waiting when
// the other unlocks. So it is in row 10, but in its unused entry one process takes names that the
// other retains.
func runTurns(row int) func(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return func(ctx context.Context, b *bench, e entry, run int) (sample, error) {
		return withTimes(b.runInProcesses(ctx, e, crew{row: row, run: run, processes: 2, workers: 1}))
	}
}

// runReaders runs row 9: the goroutines of several processes read one name, and seldom write.
func runReaders(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return withTimes(b.runInProcesses(ctx, e, crew{row: 9, run: run, processes: 4, workers: mates}))
}

// withTimes puts the times that workers took into their sample.
func withTimes(s sample, times []time.Duration, err error) (sample, error) {
	if err == nil && len(times) == 0 {
		err = errors.New("nobody got in")
	}
	slices.Sort(times)
	s.p50, s.p99 = percentile(times, 0.5), percentile(times, 0.99)
	return s, err
}

// runInProcesses runs a row in processes. It returns what they print, too: the times of their work.
func (b *bench) runInProcesses(ctx context.Context, e entry, c crew) (sample, []time.Duration, error) {
	path := filepath.Join(b.dir, fmt.Sprintf("board-%d-%s-%d", c.row, strings.ReplaceAll(e.name, " ", "-"), c.run))
	on, err := openBoard(path)
	if err != nil {
		return sample{}, nil, err
	}
	d := duty{Target: b.target, Row: c.row, Name: fmt.Sprintf("bench:%d:%s:%d", c.row, e.name, c.run), Board: path,
		Contender: slices.IndexFunc(entries, func(other entry) bool { return other.name == e.name })}
	if err := e.prepare(ctx, b.target, d.Name); err != nil {
		return sample{}, nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // kills those that still run when something has failed
	defer cancel()
	out, exited := make([]bytes.Buffer, c.processes), make(chan error, c.processes)
	for i := range out {
		d.Worker = i
		if err := startProcess(ctx, d, on, &out[i], exited); err != nil {
			return sample{}, nil, err
		}
	}
	s, err := b.watch(e, on, c.processes*c.workers)
	on.phase.Store(over)
	killTimer := time.AfterFunc(stopTimeout, cancel)
	for range out {
		if exitErr := <-exited; exitErr != nil && err == nil && ctx.Err() == nil {
			err = fmt.Errorf("a process: %w", exitErr)
		}
	}
	s.stuck = !killTimer.Stop()
	s.violations = on.violations.Load()
	times, printErr := printed(out, s.stuck)
	if err == nil {
		err = printErr
	}
	return s, times, err
}

// prepare makes name ready to be locked, before there are workers.
func (e entry) prepare(ctx context.Context, t target, name string) error {
	c, err := e.open(t)
	if err != nil {
		return err
	}
	return errors.Join(c.prepare(ctx, name), c.close())
}

// startProcess starts a worker process, which prints into out, and sends its error when it exits.
func startProcess(ctx context.Context, d duty, on *board, out *bytes.Buffer, exited chan<- error) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	encoded, err := json.Marshal(d)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, childArg, string(encoded))
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		err := cmd.Wait()
		if err != nil {
			on.phase.Store(over)
		}
		exited <- err
	}()
	return nil
}

// printed reads the times that processes printed. A process that was killed printed nothing.
func printed(out []bytes.Buffer, killed bool) (times []time.Duration, err error) {
	for i := range out {
		if killed && out[i].Len() == 0 {
			continue
		}
		var more []time.Duration
		if err := json.Unmarshal(out[i].Bytes(), &more); err != nil {
			return nil, fmt.Errorf("what a process printed: %w", err)
		}
		times = append(times, more...)
	}
	return times, nil
}
