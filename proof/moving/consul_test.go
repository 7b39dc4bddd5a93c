//go:build linux

package moving

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// buildConsul builds consul, which Debian does not have, and returns the program. Later versions
// are under another license.
func buildConsul(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "-C", "consul", "tool", "-n", "consul")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("consul is not built: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// startConsul runs an agent that is a server, until the test is over, and returns its address.
func startConsul(t *testing.T, program string) (addr string) {
	t.Helper()
	port := func(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
	addr = freeAddr(t)
	cmd := exec.Command(program, "agent", "-dev", "-bind", "127.0.0.1", "-log-level", "err",
		"-http-port", port(addr), "-server-port", port(freeAddr(t)), "-serf-lan-port", port(freeAddr(t)),
		"-serf-wan-port", port(freeAddr(t)), "-dns-port", "-1", "-grpc-port", "-1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/v1/kv/none?consistent",
			http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusNotFound { // there is a leader, and no such key
				return addr
			}
		}
		select {
		case <-ctx.Done():
			t.Fatalf("consul does not answer on %s: %v", addr, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// consulShop has commands that move from consul lock, as the page says.
func consulShop(t *testing.T) *shop {
	t.Helper()
	program := buildConsul(t)
	addr := startConsul(t, program)
	s := openShop(t)
	lock := func(work []string) []string {
		return append([]string{program, "lock", "-http-addr", addr, "-shell=false", "-child-exit-code", "order/42"},
			work...)
	}
	s.often = 1
	s.command = func(p plan, work []string) []string {
		switch p.Release {
		case before:
			return lock(work)
		case between:
			return lock(s.under(work))
		default:
			return s.under(work)
		}
	}
	return s
}

// Commands under consul lock are replaced one by one, as the page says, and back again. A consul
// lock that is killed keeps the others out for the TTL of its session and its lock delay, half a
// minute, so this takes minutes.
func TestConsulRolling(t *testing.T) {
	long(t)
	t.Parallel()
	s := consulShop(t)
	s.roll(2, s.loop)
}

// The consul lock of a command of release N is killed while it works. Its child is holdfast run,
// which goes on, and keeps N and N+1 out until the work has ended.
func TestConsulLockKilledAlone(t *testing.T) {
	long(t)
	t.Parallel()
	s := consulShop(t)
	reached := s.trap("1", bothHeld)
	victim, _ := s.once(between)
	s.reaches("the victim works", reached)
	s.end(victim, true) // consul lock; its child is left
	next, other := s.loop(after), s.loop(between)
	<-time.After(2 * newTTL)
	if s.visitsOf(next)+s.visitsOf(other) > 0 {
		t.Error("others were inside meanwhile")
	}
	s.let("1")
	s.goesOn()
	s.isExclusive(t)
	t.Logf("consul lock was killed alone: the others were inside after its work had ended; overlaps: %d",
		s.overlapped())
}
