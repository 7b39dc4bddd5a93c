package workload

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// An actor is one goroutine of a worker.
type actor struct {
	client  *holdfast.Client
	dice    dice
	names   []string
	rec     *history.Recorder
	slot    int
	storage *storage
	err     error // of the workload itself
}

// A hold is a lease with what the history calls it.
type hold struct {
	*holdfast.Lease
	id, name string
	ttl      time.Duration
	fixed    bool // it is not renewed
	lost     bool // and that is written down
	released bool
}

// step takes one lock, uses and gives back what it got.
func (a *actor) step() {
	name := a.names[a.dice.IntN(len(a.names))]
	if h := a.acquire(context.Background(), name, nil); h != nil {
		a.use(h, 2)
	}
	if a.dice.percent(30) {
		pause(a.dice.short(0, 20*time.Millisecond), nil)
	}
}

// acquire takes the lock name, under the lease outer if there is one, in a way the dice choose.
func (a *actor) acquire(ctx context.Context, name string, outer *hold) *hold {
	h := &hold{name: name, ttl: ttls[a.dice.IntN(len(ttls))]}
	options, text := a.options(h)
	text = fmt.Sprintf("ttl=%v%s", h.ttl, text)
	mutex := a.client.Mutex(name, options...)

	kind, take := history.Lock, mutex.Lock
	limit := a.dice.short(10*time.Millisecond, longestWait)
	if a.dice.percent(25) {
		kind, take, limit = history.TryLock, mutex.TryLock, time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if kind == history.Lock && a.dice.percent(20) {
		// Cancelled at a moment of its own, rather than at the deadline: about when a grant may come.
		limit = a.dice.short(0, limit)
		defer time.AfterFunc(limit, cancel).Stop()
	}

	op := a.rec.NextOp()
	h.id = a.rec.HoldID(op)
	record := history.Record{Op: op, Kind: kind, Name: name, Hold: h.id}
	if outer != nil {
		record.Root = outer.id
		h.ttl, h.fixed = outer.ttl, outer.fixed // an entry lives as the lease it entered
	}
	a.call(record, limit, text)
	lease, err := take(ctx)
	if err != nil {
		a.back(record, err)
		return nil
	}
	h.Lease = lease
	record.At, record.Until = history.Now(), until(lease)
	record.Token = lease.Token()
	a.back(record, nil)
	return h
}

func (a *actor) options(h *hold) (options []holdfast.Option, text string) {
	options = []holdfast.Option{holdfast.WithTTL(h.ttl)}
	add := func(option holdfast.Option, word string) {
		options, text = append(options, option), text+" "+word
	}
	switch roll := a.dice.IntN(100); {
	case roll < 25:
		h.fixed = true
		add(holdfast.WithoutRenewal(), "fixed")
	case roll < 35:
		add(holdfast.WithMaxHold(2*h.ttl), "max")
	}
	switch roll := a.dice.IntN(100); {
	case roll < 15:
		add(holdfast.WithStrictOrder(), "strict")
	case roll < 25:
		add(holdfast.WithPolling(15*time.Millisecond, 10), "polling")
	}
	return options, text
}

// call writes down that an operation begins, back that it ended.
func (a *actor) call(record history.Record, limit time.Duration, text string) {
	record.Event, record.Limit, record.Text = history.Call, int64(limit), text
	a.rec.Put(record)
}

func (a *actor) back(record history.Record, err error) {
	record.Event, record.Result = history.Return, result(record.Kind, err)
	if err != nil {
		record.Text = err.Error()
	}
	a.rec.Put(record)
}
