package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/lockinfo"
)

// pageSize is how many entries of a stream are read at once.
const pageSize = 500

// A Reading reads the history of one name, page by page, the newest entries first.
type Reading struct {
	recorder *Recorder
	key      string
	name     string
	since    time.Time
	before   string // id of the last entry that was read
	over     bool
	pending  []record             // that may have happened before some that are not read yet
	ends     map[source]time.Time // of leases, by their tokens
}

// A source is who wrote something, and which of his numbers it has.
type source struct {
	process string
	number  int64
}

// Read begins to read what happened to a name of a class since a moment. It sends nothing.
func (r *Recorder) Read(class, name string, since time.Time) *Reading {
	return &Reading{recorder: r, key: r.key(class), name: name, since: since, before: "+",
		ends: make(map[source]time.Time)}
}

// Next returns the next entries. There may be none, although others follow; over says that none
// does. The error is a *protocol.Failure or a *protocol.Foreign.
func (r *Reading) Next(ctx context.Context) (entries []lockinfo.Entry, over bool, err error) {
	switch writers := r.recorder.writers; len(writers) {
	case 0:
		return nil, true, nil
	case 1:
		records, reached, err := r.page(ctx, writers[0].store)
		r.pending = append(r.pending, records...)
		sortRecords(r.pending)
		ready := len(r.pending)
		if !r.over { // what follows was written before, and so happened before
			ready = sort.Search(ready, func(i int) bool { return r.pending[i].At.Before(reached) })
		}
		records, r.pending = r.pending[:ready:ready], r.pending[ready:]
		return entriesOf(records), r.over, err
	default:
		records, err := r.merge(ctx)
		return entriesOf(records), true, err
	}
}

// sortRecords sorts records by time, the newest first. Of one moment the larger token is the later.
func sortRecords(all []record) {
	slices.SortStableFunc(all, func(a, b record) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Token, a.Token), cmp.Compare(b.number, a.number))
	})
}

// page reads the next entries of one stream, and returns when the last of them was written.
func (r *Reading) page(ctx context.Context, s wire.Store) (records []record, reached time.Time, err error) {
	args := []any{"XREVRANGE", r.key, r.before, "-", "COUNT", pageSize}
	reply := wire.Ask(ctx, s, wire.Request{Op: plain.Op, Key: r.key, Args: args}, timeout)
	err = failureOf(reply, r.name, r.key)
	list, ok := reply.Value.([]any)
	if err == nil && !ok && reply.Value != nil {
		err = wire.At(reply.Node, &protocol.Failure{Op: plain.Op, Name: r.name, Reason: protocol.Other,
			Err: fmt.Errorf("the answer is none of ours: %.100v", reply.Value)})
	}
	if err != nil {
		return nil, reached, err
	}
	r.over = len(list) < pageSize
	for _, entry := range list {
		next, id, ok := parseRecord(entry)
		r.before = "(" + id
		if !ok {
			continue
		}
		reached = next.written
		r.over = r.over || reached.Before(r.since)
		if next.Name != r.name {
			continue
		}
		for _, one := range next.split() {
			r.orderLease(&one)
			if !one.At.Before(r.since) {
				records = append(records, one)
			}
		}
	}
	return records, reached, nil
}

// orderLease keeps the beginning of a lease from seeming later than its end: ids are whole
// milliseconds.
func (r *Reading) orderLease(next *record) {
	lease := source{next.process, next.Token}
	if next.Kind != lockinfo.EntryGranted {
		r.ends[lease] = next.At
		return
	}
	if end, ended := r.ends[lease]; ended && end.Before(next.At) {
		next.At = end
	}
	delete(r.ends, lease)
}

// merge reads the whole streams of all masters. An entry that several have counts once.
func (r *Reading) merge(ctx context.Context) (all []record, err error) {
	seen, failed := make(map[source]bool), 0
	for i, w := range r.recorder.writers {
		one := *r
		one.ends = make(map[source]time.Time)
		for !one.over {
			page, _, failure := one.page(ctx, w.store)
			if failure != nil {
				err = wire.At(fmt.Sprintf("node %d", i+1), failure)
				failed++
				break
			}
			for _, next := range page {
				if from := (source{next.process, next.number}); !seen[from] {
					seen[from] = true
					all = append(all, next)
				}
			}
		}
	}
	if failed <= len(r.recorder.writers)/2 && ctx.Err() == nil {
		err = nil
	}
	sortRecords(all)
	return all, err
}

func entriesOf(records []record) (entries []lockinfo.Entry) {
	for _, r := range records {
		entries = append(entries, r.Entry)
	}
	return entries
}
