package simulate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// founded begins the run's time when new masters count.
func (w *world) founded() error {
	if err := w.counting(); err != nil {
		return err
	}
	w.zero = time.Now()
	for _, r := range w.rooms {
		r.idle = w.zero
	}
	return nil
}

// counting waits until all masters count.
func (w *world) counting() error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); pass(time.Second) {
		nodes, err := w.own.Quorum(context.Background())
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(nodes, func(n holdfast.QuorumNode) bool { return !n.Counts }) {
			return nil
		}
	}
	return errors.New("simulate: the masters never counted")
}

// resume lets other processes take a hold over; true: one did, and has given it back.
func (w *world) resume(h *holding) bool {
	d := dice{rand.New(rand.NewPCG(w.plan.Seed, uint64(h.op.ID)))}
	for range 1 + d.IntN(3) {
		op := *h.op
		op.TTL, op.MinHold, op.MaxHold, op.Fixed, op.Inner = ttls[d.IntN(len(ttls))], 0, 0, d.percent(20), Nothing
		op.Try = true
		if d.percent(10) {
			op.Owner = "owner-" + strconv.Itoa(d.IntN(2))
		}
		w.mu.Lock()
		c := w.clients[d.IntN(len(w.clients))]
		h.resumed = true
		delete(w.kept, op.Names[0]) // a renewal beside a resume may find the hold lost
		w.mu.Unlock()
		wait := w.call(c, &op)
		wait.resumes = true
		ctx, cancel := context.WithTimeout(c.ctx, d.short(time.Millisecond, 3*time.Second))
		lease, err := c.Mutex(op.Names[0], op.options()...).Resume(ctx, h.lease.Owner(), h.lease.Token())
		cancel()
		if err == nil {
			w.mu.Lock()
			h.released = true
			w.rooms[class(op.Names[0])].empty(h)
			w.mu.Unlock()
		}
		if next := w.back(wait, lease, err); next != nil {
			w.mu.Lock()
			w.counts["resumed"]++
			if next.tokens[op.Names[0]] <= h.tokens[op.Names[0]] && next.lease.Err() == nil {
				w.violation(judge.Token, "%v resumed with token %d, and got %d", h, h.tokens[op.Names[0]], next.tokens[op.Names[0]])
			}
			w.mu.Unlock()
			if d.percent(30) {
				_ = h.lease.Release(h.client.ctx)
			}
			w.hold(next, d.short(0, 2*op.TTL))
			w.release(next)
			return true
		}
		w.mu.Lock()
		w.counts["not resumed"]++
		w.mu.Unlock()
		w.hold(h, d.short(0, h.op.TTL))
		if h.lease.Err() != nil {
			break
		}
	}
	return false
}
