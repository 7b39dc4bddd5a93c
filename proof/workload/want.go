package workload

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/history"
)

// permits are how many a semaphore has.
const permits = 4

// A want is a lock to be taken in a way the dice chose.
type want struct {
	hold   hold
	record history.Record
	take   history.Way
}

// drawWant chooses how to take names of a type.
func (a *actor) drawWant(typ history.Type, names []string) want {
	w := want{hold: hold{ttl: ttls[a.dice.IntN(len(ttls))]}}
	r := &w.record
	if r.Type, r.Names = typ, names; typ != history.Group {
		r.Name, r.Names = names[0], nil
	}
	r.TTL = int64(w.hold.ttl)
	if r.Kind = history.Lock; a.dice.Percent(25) {
		r.Kind = history.TryLock
	}
	options := a.drawOptions(&w)
	switch typ {
	case history.ReadWrite:
		r.Shares = a.dice.Percent(60)
		w.hold.shares = r.Shares
	case history.Semaphore:
		r.Size, r.Weight = permits, 1+a.dice.Int64N(3)
	case history.Election:
		r.Queues = !r.Polls
	}
	w.take = history.WayOf(a.client, *r, options...)
	return w
}

// drawOptions draws them, and says in the record what the checks must know of them.
func (a *actor) drawOptions(w *want) []holdfast.Option {
	h, r := &w.hold, &w.record
	options := []holdfast.Option{holdfast.WithTTL(h.ttl)}
	r.Text = fmt.Sprintf("ttl=%v", h.ttl)
	add := func(option holdfast.Option, word string) {
		options, r.Text = append(options, option), r.Text+" "+word
	}
	switch roll := a.dice.IntN(100); {
	case roll < 20:
		h.fixed, r.Queues = true, true
		add(holdfast.WithoutRenewal(), "fixed")
	case roll < 30:
		r.Queues = true
		add(holdfast.WithMaxHold(2*h.ttl), "max")
	case roll < 36:
		least := a.dice.Between(10*time.Millisecond, 80*time.Millisecond)
		r.Queues, r.Min = true, int64(least)
		add(holdfast.WithMinHold(least), fmt.Sprintf("min=%v", least))
	case roll < 48 && (r.Type == history.Mutex || r.Type == history.ReadWrite || r.Type == history.Group):
		r.Queues, r.Owner = true, []string{"ann", "bob"}[a.dice.IntN(2)]
		add(holdfast.WithOwner(r.Owner), "owner")
	}
	plain := len(options) == 1
	switch roll := a.dice.IntN(100); {
	case plain && roll >= 50 && (r.Type == history.Mutex || r.Type == history.ReadWrite):
		add(holdfast.WithRetain(2*time.Second), "retain")
	case roll < 20:
		r.Queues = true
		add(holdfast.WithStrictOrder(), "strict")
	case roll < 28:
		r.Polls, r.Queues = true, false
		add(holdfast.WithPolling(15*time.Millisecond, 10), "polling")
	}
	return options
}
