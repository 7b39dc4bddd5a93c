package tickets

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		if err := child(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(leak.Main(m))
}

// The moments at which a process is killed.
const (
	asHolder       = "after Lock"
	afterPlace     = "after Ticket"
	atItsPlace     = "in Attach"
	afterDetach    = "after Detach"
	afterAttach    = "after Attach"
	beforeRelease  = "before Release"
	thrownAway     = "thrown away"
	usedAgain      = "used again after Release" // in vain
	enoughOfEach   = 3
	longestChain   = 4
	longestRunning = 40 * time.Second
)

var moments = []string{asHolder, afterPlace, atItsPlace, afterDetach, afterAttach, beforeRelease, thrownAway, usedAgain}

// A run is many chains beside each other.
type run struct {
	*testing.T
	addr, dir string
	kills     *history.Recorder
	over      time.Time

	mu    sync.Mutex
	count map[string]int // of moments, and of tickets: attached, gone
}

// No two chains hold a name at a time, tokens grow, all processes of a chain have one token, and
// the lock of a chain that was killed is free after its TTL.
func TestChains(t *testing.T) {
	harness.Long(t)
	srv := redisserver.Start(t)
	dir := t.TempDir()
	kills, err := history.Create(dir, "parent")
	fatal.If(t, err)
	r := &run{T: t, addr: srv.Addr(), dir: dir, kills: kills, over: time.Now().Add(longestRunning),
		count: map[string]int{}}
	var all sync.WaitGroup
	for i, of := range []mode{mutex, mutex, writer, reader, reader} {
		all.Go(func() {
			for n := 0; !r.enough(); n++ {
				r.chain(fmt.Sprintf("c%d-%d", i, n), of)
			}
		})
	}
	all.Wait()
	fatal.If(t, kills.Close())
	r.judge()
	left := harness.Deployment{Prefix: "holdfast", Masters: []*redisserver.Server{srv}}
	left.IsClean(t) // the last holds end, and no key is left but the clocks of tokens
	attached, gone := r.count["attached"], r.count["gone"]
	t.Logf("%d attached, %d found nothing; with those killed or dropped: %v", attached, gone, r.count)
	for _, when := range moments {
		if r.count[when] == 0 {
			t.Errorf("none was killed, or %s", when)
		}
	}
	if gone > attached/4 { // only where the machine stood still for a TTL
		t.Errorf("%d tickets were good, and %d were not", attached, gone)
	}
}

// enough reports whether every kind of kill was seen, or time is over.
func (r *run) enough() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, when := range moments {
		if r.count[when] < enoughOfEach {
			return !time.Now().Before(r.over) || r.Failed()
		}
	}
	return true
}

// tally counts kills and tickets.
func (r *run) tally(what string, more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[what] += more
}

// chain passes one lease on until it is released, its ticket is thrown away, or a process dies that
// has it.
func (r *run) chain(id string, of mode) {
	p := plan{Addr: r.addr, Dir: r.dir, Name: map[mode]string{mutex: "m", writer: "rw", reader: "rw"}[of], Mode: of}
	var ticket holdfast.Ticket
	var token int64
	atPlace := rand.IntN(3) == 0
	if atPlace {
		ticket = r.place(id, p)
	}
	for n, last := 0, 1+rand.IntN(longestChain); n <= last; n++ {
		p.Proc, p.Last = fmt.Sprintf("%s-%d", id, n), n == last
		var c *running
		var held step
		var ok bool
		if n == 0 && atPlace {
			c, held, ok = r.waitAt(&p, ticket)
		} else {
			c = r.start(p, ticket)
			held, ok = c.next()
		}
		if !ok || held.At == "gone" {
			c.end()
			return
		}
		if token == 0 {
			token, p.First = held.Token, held.Hold
		} else {
			r.tally("attached", 1)
		}
		if held.Token != token {
			r.Errorf("%s has token %d, the chain's is %d", p.Proc, held.Token, token)
		}
		when, oneOf := afterAttach, 5
		switch {
		case n == 0:
			when, oneOf = asHolder, 8
		case p.Last:
			when = beforeRelease
		}
		if rand.IntN(oneOf) == 0 {
			c.kill(when)
			return
		}
		c.goOn()
		after, ok := c.next()
		if !ok || after.At != "detached" {
			c.end()
			if after.At == "released" && rand.IntN(3) > 0 {
				p.Proc += "-again"
				r.useAgain(p, ticket)
			}
			return
		}
		ticket = after.Ticket
		if rand.IntN(3) == 0 { // the ticket is as good as before
			c.kill(afterDetach)
		} else {
			c.end()
		}
		if rand.IntN(12) == 0 {
			r.tally(thrownAway, 1)
			return
		}
	}
}

// place has a process join the queue with a kept place. The ticket is as good if the process is
// killed right after.
func (r *run) place(id string, p plan) holdfast.Ticket {
	p.Proc, p.Place = id+"-place", true
	c := r.start(p, "")
	placed, ok := c.next()
	if !ok || placed.Ticket == "" {
		r.Errorf("%s: no ticket: %+v", p.Proc, placed)
	}
	if rand.IntN(3) == 0 {
		c.kill(afterPlace)
	} else {
		c.end()
	}
	return placed.Ticket
}

// waitAt has one process after the other wait at a place until one of them holds. Some are killed
// at a moment that nobody chose. One of those may have held; the next has the same hold then.
func (r *run) waitAt(p *plan, ticket holdfast.Ticket) (c *running, held step, ok bool) {
	waiter := *p
	waiter.Waits = true
	defer func() { p.First = waiter.First }()
	for i := 0; ; i++ {
		waiter.Proc = fmt.Sprintf("%s-wait%d", p.Proc, i)
		c = r.start(waiter, ticket)
		if rand.IntN(3) == 0 {
			<-time.After(rand.N(atPlace))
			if taken := c.killUnasked(); taken != "" {
				waiter.First = taken
			}
			continue
		}
		if held, ok = c.next(); !ok || held.At != "waited" {
			return c, held, ok
		}
		c.end()
	}
}

// killUnasked is kill for a process that waits at a place. It returns the hold that the process
// took, if it said so.
func (c *running) killUnasked() (taken string) {
	_ = c.Process.Process.Kill()
	for s := (step{}); c.Lines.Decode(&s) == nil; {
		if s.At == "taken" {
			taken = s.Hold
		}
	}
	c.kill(atItsPlace)
	return taken
}

// useAgain attaches a ticket whose lease was released, while others may have the name.
func (r *run) useAgain(p plan, ticket holdfast.Ticket) {
	c := r.start(p, ticket)
	held, ok := c.next()
	c.end()
	if !ok || held.At != "gone" {
		r.Errorf("%s has what was released: %+v", p.Proc, held)
		return
	}
	r.tally(usedAgain, 1)
	r.tally("gone", -1) // as it should be
}

// A running is a child, seen from its parent.
type running struct {
	*run
	*harness.Process
	proc string
}

func (r *run) start(p plan, ticket holdfast.Ticket) *running {
	text, err := json.Marshal(p)
	if err != nil {
		r.Error(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	c := &running{run: r, proc: p.Proc, Process: harness.Start(r.T, cmd)}
	if ticket != "" {
		_, _ = io.WriteString(c.Stdin, string(ticket)+"\n")
	}
	return c
}

// next is what the child says next. It is false if the child said nothing.
func (c *running) next() (s step, ok bool) {
	for s.At == "" || s.At == "taken" {
		if c.Lines.Decode(&s) != nil {
			return s, false
		}
	}
	if s.At == "gone" {
		c.tally("gone", 1)
	}
	return s, true
}

func (c *running) goOn() { _, _ = io.WriteString(c.Stdin, "\n") }

// end lets the child end by itself.
func (c *running) end() {
	_ = c.Stdin.Close()
	if err := c.Wait(); err != nil {
		c.Errorf("%s: %v", c.proc, err)
	}
}

// kill is kill -9.
func (c *running) kill(when string) {
	c.tally(when, 1)
	c.Kill()
	c.kills.Put(history.Record{Event: history.Kill, Proc: c.proc})
	_ = c.Stdin.Close()
}

// judge checks what all processes wrote down.
func (r *run) judge() {
	h, violations, err := history.Judge(r.dir, time.Second)
	fatal.If(r, err)
	for _, v := range violations {
		r.Error(v)
	}
	r.Log(history.Summarize(h))
}
