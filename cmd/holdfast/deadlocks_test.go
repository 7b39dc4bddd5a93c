package main

import (
	"fmt"
	"os"
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
	take := func(label, name string, options ...holdfast.Option) (*holdfast.Client, *holdfast.Lease) {
		client := newClient(t, "redis://"+s.Addr(), holdfast.Config{Label: label, TTL: 5 * time.Minute})
		lease, err := client.Mutex(name, options...).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return client, lease
	}
	wait := func(client *holdfast.Client, under *holdfast.Lease, name string, options ...holdfast.Option) {
		waiting.Go(func() {
			if lease, err := client.Mutex(name, options...).Lock(leased.Context(under)); err == nil {
				_ = lease.Release()
			}
		})
	}
	expect := func(pattern string, args ...string) {
		t.Helper()
		expectRun(t, 0, append([]string{"deadlocks"}, args...), pattern)
	}
	c, u := take("c", "u")
	d, v := take("d", "v")
	defer u.Release()
	defer v.Release()
	wait(c, u, "v")
	expect(`"possible": \[\],\n  "waiters": 1,\n  "telling": 0\n`, "-o", "json")
	wait(d, v, "u")
	expect(`^possible deadlock 1 of 1:\n(  c holds u \(token \d+\) and perhaps waits for v\n|  d holds v \(token \d+\) and perhaps waits for u\n){2}holdfast: possible: only `)

	expectRun(t, 0, []string{"why", "u"}, `^u: 1 waits, for \S+
  u: held by c \(\S+\) for \S+, token \d+; it perhaps waits for v for \S+
    v: held by d \(\S+\) for \S+, token \d+; it perhaps waits for u for \S+ \(above: a cycle\)
a cycle: `)
	host, _ := os.Hostname()
	expectRun(t, 0, []string{"ls", "--process", fmt.Sprintf("%s/%d", host, os.Getpid())}, `HOLDER WAITS FOR`,
		`(?m)^u .* v\?$`, `(?m)^v .* u\?$`)
	expectRun(t, 0, []string{"ls", "--contended"}, `HOLDER WAITS FOR`, `(?m)^u .* v\?$`)

	check := holdfast.WithDeadlockCheck()
	a, x := take("a\x1b[2J", "x", check)
	b, y := take("b", "y", check)
	defer x.Release()
	defer y.Release()
	wait(a, x, "y", check)
	wait(b, y, "x", check)
	expect(`^deadlock 1 of 1:\n(  "a\\x1b\[2J" holds x \(token \d+\) and waits for y\n|  b holds y \(token \d+\) and waits for x\n){2}possible`)
	expect(`(?s)^\{\n  "version": 2,\n  "deadlocks": \[\n.*"label": "b",\n +"host": ".*"holds": "y",\n +"token": \d+,\n +"waits": "x"`, "-o", "json")
}
