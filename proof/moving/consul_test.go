//go:build linux

package moving

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

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
