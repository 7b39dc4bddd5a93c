package main

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
)

// Two callers wait for each other. Their TTL is long, so that neither ends the cycle during the
// test.
func TestDeadlocksShowsACycle(t *testing.T) {
	long(t)
	s := redisserver.Start(t)
	t.Setenv("REDIS_URL", "redis://"+s.Addr())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	take := func(label, name string) (*holdfast.Client, *holdfast.Lease) {
		client := newClient(t, "redis://"+s.Addr(), holdfast.Config{Label: label, TTL: 5 * time.Minute})
		lease, err := client.Mutex(name, holdfast.WithDeadlockCheck()).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return client, lease
	}
	a, x := take("a\x1b[2J", "x")
	b, y := take("b", "y")
	defer x.Release()
	defer y.Release()
	wait := func(client *holdfast.Client, under *holdfast.Lease, name string) {
		waiting.Go(func() {
			if lease, err := client.Mutex(name, holdfast.WithDeadlockCheck()).Lock(leased.Context(under)); err == nil {
				_ = lease.Release()
			}
		})
	}
	wait(a, x, "y")
	wait(b, y, "x")

	expectRun(t, 0, []string{"deadlocks"}, `^deadlock 1 of 1:\n(  "a\\x1b\[2J" holds x \(token \d+\) and waits for y\n|  b holds y \(token \d+\) and waits for x\n){2}$`)
	expectRun(t, 0, []string{"deadlocks", "-o", "json"}, `(?s)^\{\n  "version": 2,\n  "deadlocks": \[\n.*"label": "b",\n +"host": ".*"holds": "y",\n +"token": \d+,\n +"waits": "x"`)
}
