//go:build linux

package moving

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// gatherFlock makes a fleet of commands that move from flock. Without exec, flock stays the parent
// of its command.
func gatherFlock(t *testing.T, exec bool) *fleet {
	t.Helper()
	flock := []string{"flock", filepath.Join(t.TempDir(), "order-42.lock")}
	f := gatherCommands(t)
	f.command = func(p plan, work []string) []string {
		switch {
		case p.Release == before:
			return append(flock[:2:2], work...)
		case p.Release == between && exec:
			return f.under(append([]string{"flock", "-F", flock[1]}, work...))
		case p.Release == between:
			return f.under(append(flock[:2:2], work...))
		default:
			return f.under(work)
		}
	}
	return f
}

// Commands under flock are replaced one by one, as the page says, and back again.
func TestFlockRolling(t *testing.T) {
	long(t)
	t.Parallel()
	f := gatherFlock(t, true)
	f.roll(3, f.loop)
}

// A command of release N is killed while it waits for flock, and while it works, for longer than
// the TTL. Its work does not outlive it, and the others get in when the TTL is over.
func TestFlockKilledBetweenTheLocks(t *testing.T) {
	long(t)
	for _, beside := range []string{before, after} {
		t.Run("works, beside "+beside, func(t *testing.T) {
			t.Parallel()
			f := gatherFlock(t, true)
			f.trap("1", bothHeld)
			victim, _ := f.once(between)
			f.await("the victim works", f.isTrapped)
			rival, next := f.loop(beside), f.loop(between)
			<-time.After(2 * newTTL)
			f.staysOut(rival, next)
			f.killed(victim)
		})
	}
	t.Run("waits for flock", func(t *testing.T) {
		t.Parallel()
		f := gatherFlock(t, true)
		f.trap("1", bothHeld)
		holder, _ := f.once(before)
		f.await("a command of N-1 works", f.isTrapped)
		victim, cmd := f.once(between)
		f.await("the victim waits for flock", func() bool { return flockOf(cmd) != 0 })
		f.end(victim, true)
		next := f.loop(between)
		<-time.After(2 * newTTL)
		f.staysOut(victim, next)
		f.end(holder, true) // flock: its command keeps the file, and is let go
		f.release()
		f.goesOn(next)
		f.isExclusive(t)
	})
}

// Without -F, flock can be killed alone. Its command goes on, and holdfast run, whose command has
// ended, lets release N+1 in beside it.
func TestFlockWithoutExecIsSeen(t *testing.T) {
	long(t)
	t.Parallel()
	f := gatherFlock(t, false)
	f.trap("1", bothHeld)
	victim, cmd := f.once(between)
	f.await("the victim works", f.isTrapped)
	f.loop(after)
	if err := syscall.Kill(flockOf(cmd), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	f.await("two are inside", func() bool { return f.overlapped() > 0 })
	f.release()
	f.end(victim, true)
}

func flockOf(cmd *exec.Cmd) int {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
	for _, file := range tasks {
		text, _ := os.ReadFile(file)
		for word := range strings.FieldsSeq(string(text)) {
			if comm, _ := os.ReadFile("/proc/" + word + "/comm"); string(comm) == "flock\n" {
				pid, _ := strconv.Atoi(word)
				return pid
			}
		}
	}
	return 0
}
