package tickets

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/leak"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/redisstore"
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

// childEnv has the plan of a child, as JSON.
const childEnv = "HOLDFAST_TICKETS_CHILD"

// A plan is what one process does. A ticket comes on its standard input, as a secret should.
type plan struct {
	Addr, Dir string
	Proc      string // of the history
	Name      string
	Mode      mode
	First     string // the ID of the chain's hold in an earlier process; empty: none is known
	Place     bool   // it joins the queue with a kept place, and does nothing else
	Waits     bool   // it waits a little at the place of the ticket
	Last      bool   // it gives the lease back
}

// A mode is how a chain holds its name.
type mode int

const (
	mutex mode = iota
	writer
	reader
)

// A step is what a process says when it stops and waits to go on.
type step struct {
	At     string // "placed", "waited", "taken" before it is written down, "held", "detached", "released" or "gone"
	Hold   string
	Ticket holdfast.Ticket
	Token  int64
}

// ttl is short, as a chain whose process was killed keeps the others waiting for so long.
const ttl = 2 * time.Second

// atPlace is how long one process waits at a place.
const atPlace = 400 * time.Millisecond

// A process is a child at work.
type process struct {
	plan
	client *holdfast.Client
	rec    *history.Recorder
	in     *bufio.Scanner
	lease  *history.Lease
}

// child takes the lock or attaches the ticket, holds it, and detaches it or gives it back. After
// each step it waits for a line, and may be killed then.
func child() (err error) {
	var p process
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &p.plan); err != nil {
		return err
	}
	rdb := redis.NewClient(&redis.Options{Addr: p.Addr})
	defer func() { _ = rdb.Close() }()
	if p.client, err = holdfast.New(redisstore.New(rdb), &holdfast.Config{TTL: ttl, Label: p.Proc}); err != nil {
		return err
	}
	if p.rec, err = history.Create(p.Dir, p.Proc); err != nil {
		return err
	}
	p.in = bufio.NewScanner(os.Stdin)
	p.in.Buffer(nil, 1<<20)
	if err := p.run(); err != nil {
		return err
	}
	return errors.Join(p.client.Close(), p.rec.Close())
}

func (p *process) run() error {
	if p.Place {
		return p.join()
	}
	if err := p.begin(); err != nil || p.lease == nil {
		return err
	}
	hold := p.lease.About.Hold
	p.say(step{At: "held", Hold: hold, Token: p.lease.Token()})
	_ = p.lease.RecordTrust()
	if p.Last {
		return p.release()
	}
	ticket, err := p.lease.Detach()
	if errors.Is(err, holdfast.ErrLost) { // the machine stood still
		p.say(step{At: "gone"})
		return nil
	}
	if err != nil {
		return err
	}
	p.rec.Put(history.Record{Event: history.Detach, Hold: hold})
	p.say(step{At: "detached", Hold: hold, Ticket: ticket})
	return nil
}

// say tells the parent, and waits until it lets the process go on.
func (p *process) say(s step) {
	p.tell(s)
	p.in.Scan()
}

func (p *process) tell(s step) { _ = json.NewEncoder(os.Stdout).Encode(s) }

// begin takes the lock, or attaches the ticket. No lease and no error: the hold is gone.
func (p *process) begin() error {
	limit := 20 * time.Second
	if p.Waits {
		limit = atPlace
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	call := history.Record{Kind: history.Lock, Type: history.Mutex, Name: p.Name, Shares: p.Mode == reader,
		Root: p.First, TTL: int64(ttl)}
	if p.Mode != mutex {
		call.Type = history.ReadWrite
	}
	take := history.WayOf(p.client, call)
	if call.Queues = !p.Waits && p.First == ""; !call.Queues { // others pass it while no process waits there
		p.in.Scan()
		ticket := holdfast.Ticket(p.in.Text())
		take = func(ctx context.Context) (*holdfast.Lease, error) { return p.client.Attach(ctx, ticket) }
	}
	if p.First != "" && !p.Waits {
		call.Kind = history.TryLock
	}
	lease, err := p.rec.Take(call, limit, func() (*holdfast.Lease, error) {
		lease, err := take(ctx)
		if p.Waits && err == nil {
			p.tell(step{At: "taken", Hold: p.rec.HoldID(1)}) // its first operation
		}
		return lease, err
	})
	p.lease = lease
	var refused *holdfast.TicketError
	switch {
	case errors.As(err, &refused) && refused.Reason == holdfast.TicketGone:
		p.say(step{At: "gone"})
		return nil
	case p.Waits && errors.Is(err, context.DeadlineExceeded):
		p.say(step{At: "waited"})
		return nil
	}
	return err
}

// join joins the queue with a kept place. If the lock is free, the ticket holds it at once.
func (p *process) join() error {
	join := p.client.Mutex(p.Name).Ticket
	switch p.Mode {
	case writer:
		join = p.client.RWMutex(p.Name).Ticket
	case reader:
		join = p.client.RWMutex(p.Name).RTicket
	}
	ticket, err := join(context.Background(), time.Minute)
	if err != nil {
		return err
	}
	p.say(step{At: "placed", Ticket: ticket})
	return nil
}

func (p *process) release() error {
	if err := p.lease.GiveBack(ttl); errors.Is(err, holdfast.ErrNotHeld) {
		return err
	}
	p.say(step{At: "released"})
	return nil
}
