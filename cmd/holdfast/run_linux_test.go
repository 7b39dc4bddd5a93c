package main

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// kill -9 of holdfast ends the command too, and the lock is free after its TTL.
func TestRunKilled(t *testing.T) {
	long(t)
	const ttl = 3 * time.Second
	s := redisserver.Start(t)
	first, second := newWitness(t), newWitness(t)
	script := `exec 3>"$0"; echo in >&3; exec sleep 60`
	victim, _ := program(t, s, "run", "--ttl", ttl.String(), "job", "--", "sh", "-c", script, first.path)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	first.read(t)
	waiter, stderr := program(t, s, "run", "--ttl", ttl.String(), "-v", "job", "--", "sh", "-c", script, second.path)
	if err := waiter.Start(); err != nil {
		t.Fatal(err)
	}
	queued(t, s)

	killed := time.Now()
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if took := first.gone(t).Sub(killed); took > ttl/2 && measured() {
		t.Errorf("the command lived on for %v", took)
	} else {
		t.Logf("the command was gone after %v", took)
	}
	_ = victim.Wait()
	second.read(t)
	if took := time.Since(killed); took > ttl+2*time.Second && measured() { // its own next request comes later
		t.Errorf("the next one ran after %v\n%s", took, stderr)
	} else {
		t.Logf("the next one ran after %v", took)
	}
	_ = waiter.Process.Kill()
	_ = second.gone(t)
	_ = waiter.Wait()
}
