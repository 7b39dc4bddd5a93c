package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A member is a process of a cycle: what it holds, and what it waits for.
type member struct{ Holds, Waits string }

// deadlockTTL is more than a busy machine stands still. The first look comes after it.
const deadlockTTL = 5 * time.Second

// lockInCycle is a process of a cycle. Its lines:
//
//	holds     it has what it holds, and waits for a line
//	deadlock  its wait was ended by a deadlock, of so many (Token) members
//	in        it has what it waits for
//	gone      all is given back
func lockInCycle(c *holdfast.Client, m member, say func(what, name string, token int64)) error {
	ctx, cancel := context.WithTimeout(context.Background(), 4*harness.Patience)
	defer cancel()
	held, err := c.Mutex(m.Holds).Lock(ctx)
	if err != nil {
		return err
	}
	say("holds", m.Holds, held.Token())
	bufio.NewScanner(os.Stdin).Scan()
	bound, stop := held.Bind(ctx)
	defer stop()
	waited, err := c.Mutex(m.Waits, holdfast.WithDeadlockCheck()).Lock(bound)
	var ended *holdfast.WaitError
	switch {
	case err == nil:
		say("in", m.Waits, waited.Token())
		err = waited.Release()
	case errors.As(err, &ended) && ended.Reason == holdfast.WaitDeadlock:
		say("deadlock", m.Waits, int64(len(ended.Deadlock.Members)))
		err = nil
	}
	if err = errors.Join(err, held.Release()); err != nil {
		return err
	}
	say("gone", m.Holds, 0)
	return c.Close()
}

// Processes that wait for each other in a cycle: one of them ends, with the whole cycle in its
// error, and all others get in.
func TestDeadlock(t *testing.T) {
	harness.Long(t)
	for _, topology := range []string{harness.Single, harness.Cluster} {
		b := harness.Deploy(t, topology)
		for _, n := range []int{2, 3, 10} {
			t.Run(fmt.Sprintf("%s/%d processes", topology, n), func(t *testing.T) {
				found, in := 0, 0
				rounds := times(t)
				began := time.Now()
				for round := range rounds {
					f, i := oneCycle(t, b, round, n)
					found, in = found+f, in+i
				}
				t.Logf("%d cycles of %d processes: %d waits ended by a deadlock, %d got in, %v a cycle", rounds, n, found, in,
					(time.Since(began) / time.Duration(rounds)).Round(100*time.Millisecond))
				if found != rounds || in != rounds*(n-1) {
					t.Error("not what was promised")
				}
			})
		}
		b.IsClean(t)
	}
}

// oneCycle starts n processes, makes a cycle of them, and counts how they end.
func oneCycle(t *testing.T, b *harness.Deployment, round, n int) (found, in int) {
	t.Helper()
	processes := make([]*harness.Process, n)
	name := func(i int) string { return fmt.Sprintf("%d of %d, %d", i%n, n, round) }
	for i := range processes {
		processes[i] = begin(t, childPlan{Way: b.Route, Prefix: b.Prefix, Cycle: &member{name(i), name(i + 1)}})
		t.Cleanup(processes[i].Kill)
	}
	next := func(i int) (s said) {
		if err := processes[i].Lines.Decode(&s); err != nil {
			t.Fatalf("process %d ended: %v", i, err)
		}
		return s
	}
	for i := range processes {
		if s := next(i); s.What != "holds" {
			t.Fatalf("process %d said %+v", i, s)
		}
	}
	for i := range processes {
		_, _ = io.WriteString(processes[i].Stdin, "wait\n")
	}
	for i := range processes {
		switch s := next(i); {
		case s.What == "in":
			in++
		case s.What == "deadlock" && s.Token == int64(n):
			found++
		default:
			t.Errorf("process %d said %+v", i, s)
		}
		if s := next(i); s.What != "gone" {
			t.Errorf("process %d said %+v", i, s)
		}
	}
	return found, in
}
