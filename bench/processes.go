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

// runProcesses runs row 4: processes want one name, without a pause.
func runProcesses(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	s, _, err := b.apart(ctx, e, 4, run, 8, 1)
	if s.handovers > 0 {
		s.commands *= s.rate / s.handovers // for each hand-over, not for each acquisition
	}
	return s, err
}

// runTurns runs rows 5 and 10: two processes take turns, and each is surely waiting when the other
// gives back. Or one takes what the other retains without using it.
func runTurns(row int) func(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return func(ctx context.Context, b *bench, e entry, run int) (sample, error) {
		return withTimes(b.apart(ctx, e, row, run, 2, 1))
	}
}

// runReaders runs row 9: the goroutines of several processes read one name, and seldom write.
func runReaders(ctx context.Context, b *bench, e entry, run int) (sample, error) {
	return withTimes(b.apart(ctx, e, 9, run, 4, mates))
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

// apart runs a row in n processes, which are this program again, with so many workers each. It
// collects what they print: the times of their hand-overs.
func (b *bench) apart(ctx context.Context, e entry, row, run, n, workers int) (sample, []time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return sample{}, nil, err
	}
	name := fmt.Sprintf("bench:%d:%s:%d", row, e.name, run)
	c, err := e.open(b.target)
	if err != nil {
		return sample{}, nil, err
	}
	if err := errors.Join(c.prepare(ctx, name), c.close()); err != nil {
		return sample{}, nil, err
	}
	path := filepath.Join(b.dir, fmt.Sprintf("board-%d-%s-%d", row, strings.ReplaceAll(e.name, " ", "-"), run))
	on, err := openBoard(path)
	if err != nil {
		return sample{}, nil, err
	}
	ctx, cancel := context.WithCancel(ctx) // kills those that still run when something has failed
	defer cancel()
	var (
		out    = make([]bytes.Buffer, n)
		failed = make(chan error, n)
	)
	for i := range n {
		order, err := json.Marshal(duty{
			Target: b.target, Row: row, Name: name, Board: path, Who: i,
			Contender: slices.IndexFunc(entries, func(other entry) bool { return other.name == e.name }),
		})
		if err != nil {
			return sample{}, nil, err
		}
		cmd := exec.CommandContext(ctx, self, childArg, string(order))
		cmd.Stdout, cmd.Stderr = &out[i], os.Stderr
		if err := cmd.Start(); err != nil {
			return sample{}, nil, err
		}
		go func() {
			err := cmd.Wait()
			if err != nil {
				on.phase.Store(over)
			}
			failed <- err
		}()
	}
	s, err := b.watch(e, on, n*workers)
	on.phase.Store(over)
	late := time.AfterFunc(homecoming, cancel)
	for range n {
		if werr := <-failed; werr != nil && err == nil && ctx.Err() == nil {
			err = fmt.Errorf("a process: %w", werr)
		}
	}
	s.stuck = !late.Stop()
	s.violations = on.violations.Load()
	times, terr := printed(out, s.stuck)
	if err == nil {
		err = terr
	}
	return s, times, err
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
