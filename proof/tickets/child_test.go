package tickets

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	lease  *holdfast.Lease
	hold   string
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
	p.say(step{At: "held", Hold: p.hold, Token: p.lease.Token()})
	p.trusts()
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
	p.rec.Put(history.Record{Event: history.Detach, Hold: p.hold})
	p.say(step{At: "detached", Hold: p.hold, Ticket: ticket})
	return nil
}

// say tells the parent, and waits until it lets the process go on.
func (p *process) say(s step) {
	p.tell(s)
	p.in.Scan()
}

// tell tells the parent.
func (p *process) tell(s step) { _ = json.NewEncoder(os.Stdout).Encode(s) }

// begin takes the lock, or attaches the ticket. No lease and no error: the hold is gone.
func (p *process) begin() (err error) {
	limit := 20 * time.Second
	if p.Waits {
		limit = atPlace
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	op := p.rec.NextOp()
	call := history.Record{Event: history.Call, Op: op, Kind: history.Lock, Type: history.Mutex, Name: p.Name,
		Shares: p.Mode == reader,
		Hold:   p.rec.HoldID(op), Root: p.First, Queues: true, TTL: int64(ttl), Limit: int64(limit)}
	if p.Mode != mutex {
		call.Type = history.ReadWrite
	}
	switch {
	case p.Waits: // others pass it while no process waits there
		call.Queues = false
		p.in.Scan()
		ticket := holdfast.Ticket(p.in.Text())
		p.rec.Put(call)
		p.lease, err = p.client.Attach(ctx, ticket)
	case p.First == "":
		p.rec.Put(call)
		p.lease, err = p.lock(ctx)
	default:
		call.Kind, call.Queues = history.TryLock, false
		p.in.Scan()
		ticket := holdfast.Ticket(p.in.Text())
		p.rec.Put(call)
		p.lease, err = p.client.Attach(ctx, ticket)
	}
	call.Event, call.Result = history.Return, history.OK
	var refused *holdfast.TicketError
	at := "gone"
	switch {
	case err == nil:
		p.hold, call.Token, call.Until = call.Hold, p.lease.Token(), until(p.lease)
	case errors.As(err, &refused) && refused.Reason == holdfast.TicketGone:
		call.Result, err = history.Held, nil
	case p.Waits && errors.Is(err, context.DeadlineExceeded):
		call.Result, err, at = history.TimedOut, nil, "waited"
	default:
		call.Result, call.Text = history.Failed, err.Error()
	}
	if p.Waits && p.lease != nil {
		p.tell(step{At: "taken", Hold: p.hold})
	}
	p.rec.Put(call)
	if p.lease == nil && err == nil {
		p.say(step{At: at})
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

func (p *process) lock(ctx context.Context) (*holdfast.Lease, error) {
	switch p.Mode {
	case writer:
		return p.client.RWMutex(p.Name).Lock(ctx)
	case reader:
		return p.client.RWMutex(p.Name).RLock(ctx)
	}
	return p.client.Mutex(p.Name).Lock(ctx)
}

// until is the end of trust on the clock of the history.
func until(lease *holdfast.Lease) int64 { return history.Now() + int64(time.Until(lease.Until())) }

// trusts writes down that the lease is good, and until when, or that it is not.
func (p *process) trusts() {
	if err := p.lease.Err(); err != nil {
		p.rec.Put(history.Record{Event: history.Lost, Hold: p.hold, Result: history.LeaseLost, Text: err.Error()})
		return
	}
	p.rec.Put(history.Record{Event: history.Trust, Hold: p.hold, Until: until(p.lease), Result: history.OK})
}

func (p *process) release() error {
	op := p.rec.NextOp()
	call := history.Record{Event: history.Call, Op: op, Kind: history.Release, Name: p.Name, Hold: p.hold}
	p.rec.Put(call)
	err := p.lease.Release()
	call.Event, call.Result = history.Return, history.OK
	switch {
	case err == nil:
	case errors.Is(err, holdfast.ErrLost):
		call.Result = history.LeaseLost
	case errors.Is(err, holdfast.ErrUncertain):
		call.Result = history.Uncertain
	default:
		call.Result, call.Text = history.Failed, fmt.Sprint(err)
	}
	p.rec.Put(call)
	p.say(step{At: "released"})
	return nil
}
