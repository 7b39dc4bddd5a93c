package faults

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// childEnv tells a process of this program that it is a child: what to reach, and how.
const childEnv = "HOLDFAST_FAULTS_CHILD"

type childPlan struct {
	Way    harness.Route
	Prefix string
	Names  int
	Rounds int

	Flights bool   // it has that many callers of one name: TestFlight
	Data    string // the address of the server with their values

	History string // it has so many shards, and writes to this directory: TestShards
	Proc    string // its name there

	Replicas int // that confirm
}

const stoppedTTL = 500 * time.Millisecond

// runChild holds many names, waits for as many others, and stands still when it is stopped. Its
// lines:
//
//	waits    it holds all that it should hold, and waits for the others
//	step     one that it did after a look at the lease
//	late     one that it did without
//	lost     the release said that the lease is lost
//	in       what it waited for
//	round    all is given back
func runChild() error {
	var plan childPlan
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &plan); err != nil {
		return err
	}
	if plan.Flights {
		return runFlights(plan)
	}
	if plan.History != "" {
		return runShards(plan)
	}
	c, closeAll, err := plan.Way.Open(&holdfast.Config{Prefix: plan.Prefix, TTL: stoppedTTL}, nil, nil)
	if err != nil {
		return err
	}
	defer func() { _ = closeAll() }()
	out := json.NewEncoder(os.Stdout) // one write a line
	say := func(what, name string, token int64) { _ = out.Encode(said{what, name, token}) }
	in := bufio.NewScanner(os.Stdin)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(plan.Rounds)*2*harness.Patience)
	defer cancel()
	for round := 0; in.Scan(); round++ {
		var leases []*holdfast.Lease
		for i := range plan.Names {
			lease, err := c.Mutex(fmt.Sprintf("held %d %d", round, i)).Lock(ctx)
			if err != nil {
				return err
			}
			leases = append(leases, lease)
		}
		waits := make(chan *holdfast.Lease, plan.Names)
		for i := range plan.Names {
			go func() {
				lease, err := c.Mutex(fmt.Sprintf("waited %d %d", round, i)).Lock(ctx)
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				waits <- lease
			}()
		}
		say("waits", "", 0)
		in.Scan() // stopped meanwhile
		for _, lease := range leases {
			if lease.Err() == nil {
				say("step", lease.Name(), lease.Token())
			}
			say("late", lease.Name(), lease.Token())
			if err := lease.Release(); errors.Is(err, holdfast.ErrLost) {
				say("lost", lease.Name(), lease.Token())
			}
		}
		for range plan.Names {
			lease := <-waits
			if lease == nil {
				return errors.New("a wait failed")
			}
			say("in", lease.Name(), lease.Token())
			if err := lease.Release(); err != nil && !isOutlasted(err) { // so short a TTL is lost on a busy machine
				return err
			}
		}
		say("round", "", 0)
	}
	return c.Close()
}

func startChild(t *testing.T, plan childPlan) *harness.Process {
	t.Helper()
	text, err := json.Marshal(plan)
	fatal.If(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	return harness.Start(t, cmd)
}

type said struct {
	What, Name string
	Token      int64
}

// Traps 3, 20 and 39: a process is stopped past its TTL while it holds some names and waits for
// others. Meanwhile others get in where it holds, and leave where it waits. When it goes on it does
// no step that a look at the lease protects; those it does without are refused by a storage that
// checks tokens; its releases say that the lease is lost, and touch nobody's; and it does not
// believe a hand-over from when it stood still, while another holds.
func stopProcesses(t *testing.T, b *harness.Deployment) {
	const names = 50
	rounds := 2 * times(t)
	p := startChild(t, childPlan{Way: b.Route, Prefix: b.Prefix, Names: names, Rounds: rounds})
	defer p.Kill()
	next := func() (s said) {
		if err := p.Lines.Decode(&s); err != nil {
			t.Fatalf("the process ended: %v", err)
		}
		return s
	}
	other := b.Client(t, holdfast.Config{TTL: 9 * time.Second, MaxTTL: 9 * time.Second})
	steps, accepted, refused, lost, disturbed, early, in := 0, 0, 0, 0, 0, 0, 0
	for round := range rounds {
		waited := make([]*holdfast.Lease, names)
		for i := range names {
			waited[i] = harness.Lock(t, other.Mutex(fmt.Sprintf("waited %d %d", round, i)))
		}
		_, _ = io.WriteString(p.Stdin, "begin\n")
		for next().What != "waits" {
		}
		for i := range names {
			awaitWaiter(t, other.Mutex(fmt.Sprintf("waited %d %d", round, i)))
		}
		if err := harness.Freeze(p.Process); err != nil {
			t.Skip(err)
		}
		// Others hold what it held, with larger tokens; and what it waits for is handed to it, and
		// taken by others when it does not take it up.
		mine := takeOverNames(t, other, waited, round)
		fatal.If(t, harness.Thaw(p.Process))
		_, _ = io.WriteString(p.Stdin, "go on\n")
		heard := make(chan said, 5*names)
		go func() {
			defer close(heard)
			for {
				var s said
				if p.Lines.Decode(&s) != nil {
					return
				}
				heard <- s
				if s.What == "round" {
					return
				}
			}
		}()
		holding, ended := time.After(500*time.Millisecond), false
		for !ended {
			select {
			case <-holding:
				holding = nil
				for _, lease := range mine {
					if askUntilAnswered(t.Context(), lease.Check) != nil || lease.Release() != nil {
						disturbed++
					}
				}
			case s, ok := <-heard:
				ended = !ok
				switch s.What {
				case "step":
					steps++
				case "late":
					if s.Token < mine[s.Name].Token() {
						refused++
					} else {
						accepted++
					}
				case "lost":
					lost++
				case "in":
					in++
					if holding != nil || s.Token <= mine[s.Name].Token() {
						early++
					}
				}
			}
		}
	}
	_ = p.Stdin.Close()
	n := names * rounds
	t.Logf("%d leases of a process stopped past its TTL: %d steps done under a look at the lease; of %d careless "+
		"ones storage took %d; %d of %d releases"+
		" said that it was lost; %d of %d other holders disturbed; %d of %d waits came in, %d of them while another "+
		"held", n, steps, refused+accepted, accepted, lost, n,
		disturbed, 2*n, in, n, early)
	if steps > 0 || accepted > 0 || refused != n || lost != n || disturbed > 0 || in != n || early > 0 {
		t.Error("not what was promised")
	}
	if err := p.Wait(); err != nil {
		t.Errorf("the process: %v", err)
	}
	b.IsClean(t)
}

// takeOverNames gets all that the process holds, and what it waits for once that was given back, by
// name.
func takeOverNames(t *testing.T, other *holdfast.Client, waited []*holdfast.Lease,
	round int) map[string]*holdfast.Lease {
	t.Helper()
	claims, mine := map[string]*harness.Claimant{}, map[string]*holdfast.Lease{}
	claim := func(name string) {
		claims[name] = harness.Claim(harness.Within(t, harness.Patience), other.Mutex(name))
	}
	for i, lease := range waited {
		claim(fmt.Sprintf("held %d %d", round, i))
		harness.Release(t, lease)
		claim(fmt.Sprintf("waited %d %d", round, i))
	}
	for name, c := range claims {
		mine[name] = c.Got(t)
	}
	return mine
}
