package moving

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// gatherConsul makes a fleet of commands that move from consul lock, as the page says. It builds
// consul, which Debian does not have; later versions are under another license. It runs an agent
// that is a server until the test is over.
func gatherConsul(t *testing.T) *fleet {
	t.Helper()
	build := exec.Command("go", "-C", "consul", "tool", "-n", "consul")
	build.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := build.Output()
	if err != nil {
		t.Fatalf("consul is not built: %v", err)
	}
	program, port := strings.TrimSpace(string(out)), freePort(t)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answers := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://127.0.0.1:"+port+"/v1/kv/none?consistent", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusNotFound { // a leader says that there is no such key
			return errors.New(answer.Status)
		}
		return nil
	}
	startServer(t, answers, program, "agent", "-dev", "-bind", "127.0.0.1", "-log-level", "err", "-http-port", port,
		"-server-port", freePort(t), "-serf-lan-port", freePort(t), "-serf-wan-port", freePort(t),
		"-dns-port", "-1", "-grpc-port", "-1")
	f := gatherCommands(t)
	lock := func(work []string) []string {
		return append([]string{program, "lock", "-http-addr", "127.0.0.1:" + port, "-shell=false",
			"-child-exit-code", "order/42"}, work...)
	}
	f.often = 1
	f.command = func(p plan, work []string) []string {
		switch p.Release {
		case before:
			return lock(work)
		case between:
			return lock(f.under(work))
		default:
			return f.under(work)
		}
	}
	return f
}

// Commands under consul lock are replaced one by one, as the page says, and back again. A consul
// lock that is killed keeps the others out for the TTL of its session and its lock delay, half a
// minute, so this takes minutes.
func TestConsulRolling(t *testing.T) {
	long(t)
	t.Parallel()
	f := gatherConsul(t)
	f.roll(2, f.loop)
}

// The consul lock of a command of release N is killed while it works. Its child is holdfast run,
// which goes on, and keeps N and N+1 out until the work has ended.
func TestConsulLockKilledAlone(t *testing.T) {
	long(t)
	t.Parallel()
	f := gatherConsul(t)
	f.trap("1", bothHeld)
	victim, _ := f.once(between)
	f.await("the victim works", f.isTrapped)
	f.end(victim, true) // consul lock; its child is left
	next, other := f.loop(after), f.loop(between)
	<-time.After(2 * newTTL)
	f.staysOut(next, other)
	f.release()
	f.goesOn()
	f.isExclusive(t)
}
