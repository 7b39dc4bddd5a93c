package workload

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// An actor is one goroutine of a worker.
type actor struct {
	client   *holdfast.Client
	dice     dice
	names    Names
	permits  map[string]int64 // of semaphores, as last heard
	rec      *history.Recorder
	slot     int
	storage  *storage
	latchTTL time.Duration
	err      error // of the workload itself
}

// A hold is a lease with what the history calls it.
type hold struct {
	*holdfast.Lease
	id       string
	typ      history.Type
	name     string   // of a group: empty
	names    []string // all
	owner    string   // of WithOwner
	shares   bool
	ttl      time.Duration
	fixed    bool // it is not renewed
	seen     map[string]int64
	lost     bool // and that is written down
	released bool
}

// step takes something, uses and gives back what it got.
func (a *actor) step() {
	typ, names := a.names.draw(a.dice)
	switch {
	case typ == history.Latch:
		a.latch(names[0])
	case typ == history.Semaphore && a.dice.percent(4):
		a.resize(names[0])
	case typ == history.Election && a.dice.percent(35):
		a.leader(names[0])
	case typ == history.Mutex && a.dice.percent(4):
		a.do(names[0])
	default:
		w := a.want(typ, names)
		if h := a.acquire(context.Background(), w, nil); h != nil {
			a.use(h, 2)
		}
	}
	if a.dice.percent(30) {
		pause(a.dice.short(0, 20*time.Millisecond), nil)
	}
}

// acquire takes what is wanted, under the lease outer if there is one.
func (a *actor) acquire(ctx context.Context, w want, outer *hold) *hold {
	limit := a.dice.short(10*time.Millisecond, longestWait)
	if w.record.Kind != history.Lock {
		limit = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if w.record.Kind == history.Lock && a.dice.percent(20) {
		// Cancelled at a moment of its own, rather than at the deadline: about when a grant may
		// come.
		limit = a.dice.short(0, limit)
		defer time.AfterFunc(limit, cancel).Stop()
	}
	h, record := &w.hold, w.record
	record.Op = a.rec.NextOp()
	h.id = a.rec.HoldID(record.Op)
	record.Hold = h.id
	if outer != nil {
		record.Root = outer.id
		h.ttl, h.fixed, h.owner = outer.ttl, outer.fixed, outer.owner // an entry lives as the lease it entered
	}
	a.call(record, limit, w.text)
	lease, err := w.take(ctx)
	if err != nil {
		a.heed(h, err)
		a.back(record, err)
		return nil
	}
	h.Lease = lease
	record.At, record.Until = history.Now(), until(lease)
	if record.Token = lease.Token(); h.typ == history.Group {
		record.Token, record.Tokens = 0, lease.Tokens()
	}
	a.back(record, nil)
	return h
}

// call writes down that an operation begins, back that it ended.
func (a *actor) call(record history.Record, limit time.Duration, text string) {
	record.Event, record.Limit, record.Text = history.Call, int64(limit), text
	a.rec.Put(record)
}

func (a *actor) back(record history.Record, err error) {
	record.Event, record.Result = history.Return, result(record, err)
	if err != nil {
		record.Text = err.Error()
	}
	a.rec.Put(record)
}
