//go:build linux

package moving

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// flockShop has commands that move from flock. Without exec, flock stays the parent of its command.
func flockShop(t *testing.T, exec bool) *shop {
	t.Helper()
	file := filepath.Join(t.TempDir(), "order-42.lock")
	s := openShop(t)
	s.command = func(p plan, work []string) []string {
		switch {
		case p.Release == before:
			return append([]string{"flock", file}, work...)
		case p.Release == between && exec:
			return s.under(append([]string{"flock", "-F", file}, work...))
		case p.Release == between:
			return s.under(append([]string{"flock", file}, work...))
		default:
			return s.under(work)
		}
	}
	return s
}

// Commands under flock are replaced one by one, as the page says, and back again.
func TestFlockRolling(t *testing.T) {
	long(t)
	t.Parallel()
	s := flockShop(t, true)
	s.roll(3, s.loop)
}

// A command of release N is killed while it waits for flock, and while it works, for longer than
// the TTL. Its work does not outlive it, and the others get in when the TTL is over.
func TestFlockKilledBetweenTheLocks(t *testing.T) {
	long(t)
	for _, beside := range []string{before, after} {
		t.Run("works, beside "+beside, func(t *testing.T) {
			t.Parallel()
			s := flockShop(t, true)
			reached := s.trap("1", bothHeld)
			victim, _ := s.once(between)
			s.reaches("the victim works", reached)
			rival, next := s.loop(beside), s.loop(between)
			<-time.After(2 * newTTL)
			if s.visitsOf(rival)+s.visitsOf(next) > 0 {
				t.Error("others were inside meanwhile")
			}
			killed := time.Now()
			s.end(victim, true)
			s.goesOn()
			s.isExclusive(t)
			t.Logf("killed while it worked: all others were inside three times %v later; overlaps: %d",
				time.Since(killed).Round(100*time.Millisecond), s.overlapped())
		})
	}
	t.Run("waits for flock", func(t *testing.T) {
		t.Parallel()
		s := flockShop(t, true)
		reached := s.trap("1", bothHeld)
		holder, _ := s.once(before)
		s.reaches("a command of N-1 works", reached)
		victim, cmd := s.once(between)
		s.reaches("the victim waits for flock",
			until(func() bool { return named(childrenOf(cmd.Process.Pid), "flock") != 0 }))
		killed := time.Now()
		s.end(victim, true)
		next := s.loop(between)
		<-time.After(2 * newTTL)
		if s.visitsOf(victim)+s.visitsOf(next) > 0 {
			t.Error("N was inside beside N-1")
		}
		s.end(holder, true) // flock: its command keeps the file, and is let go
		s.let("1")
		s.goesOn(next)
		s.isExclusive(t)
		t.Logf("killed while it waited: the next was inside three times %v later; overlaps: %d",
			time.Since(killed).Round(100*time.Millisecond), s.overlapped())
	})
}

// Without -F, flock can be killed alone. Its command goes on, and holdfast run, whose command has
// ended, lets release N+1 in beside it.
func TestFlockWithoutExecIsSeen(t *testing.T) {
	long(t)
	t.Parallel()
	s := flockShop(t, false)
	reached := s.trap("1", bothHeld)
	victim, cmd := s.once(between)
	s.reaches("the victim works", reached)
	s.loop(after)
	if err := syscall.Kill(named(childrenOf(cmd.Process.Pid), "flock"), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s.reaches("two are inside", until(func() bool { return s.overlapped() > 0 }))
	s.let("1")
	s.end(victim, true)
	t.Logf("two inside after flock was killed alone: %s", s.first())
}

// until returns closed when a condition holds.
func until(holds func() bool) <-chan struct{} {
	reached := make(chan struct{})
	go func() {
		for late := time.After(patience); !holds(); {
			select {
			case <-late:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
		close(reached)
	}()
	return reached
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for _, word := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// named returns the one of processes that runs a program, or 0.
func named(pids []int, program string) int {
	for _, pid := range pids {
		if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); strings.TrimSpace(string(comm)) == program {
			return pid
		}
	}
	return 0
}
