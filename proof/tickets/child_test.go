package tickets

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/redisstore"
)

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
