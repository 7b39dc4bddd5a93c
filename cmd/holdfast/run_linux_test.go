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
	victim, _, first := startHolder(t, s, sleeper, "--ttl", ttl.String())
	first.read(t)
	waiter, stderr, second := startHolder(t, s, sleeper, "--ttl", ttl.String(), "-v")
	queued(t, s, "job")

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
