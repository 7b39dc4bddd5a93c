package simulate

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/leased"
	"github.com/holdfast-go/holdfast/proof/history"
	"github.com/holdfast-go/holdfast/proof/judge"
)

// runOp is one operation, from its call to its release.
func (w *world) runOp(op *Op) {
	c := w.client(op.Client)
	ctx, cancel := context.WithTimeout(c.ctx, op.Limit)
	defer cancel()
	if op.Cancel {
		var end context.CancelFunc
		ctx, end = context.WithCancel(c.ctx)
		defer end()
		defer time.AfterFunc(op.Limit, end).Stop()
	}
	wait := w.beginWait(c, op)
	lease, err := takeLease(ctx, c, op)
	h := w.endWait(wait, lease, err)
	if h == nil {
		return
	}
	go func() {
		<-lease.Done()
		w.checkNotice(h)
	}()
	w.keepLease(h, op.Hold/2)
	if op.Inner != Nothing && lease.Err() == nil {
		w.useLease(h)
	}
	w.keepLease(h, op.Hold/2)
	if op.Forgotten {
		w.keepLease(h, op.TTL)
	}
	if lost := (*holdfast.LostError)(nil); errors.As(lease.Err(), &lost) && lost.Reason == holdfast.LossBroken {
		sleep(op.RunsOn)
	}
	w.release(h)
	if op.Twice {
		if err := lease.Release(); err == nil {
			w.report(judge.Release, "%v was given back twice", h)
		}
	}
}

func (op *Op) options() []holdfast.Option {
	options := []holdfast.Option{holdfast.WithTTL(op.TTL)}
	for _, o := range []struct {
		wanted bool
		option holdfast.Option
	}{
		{op.Fixed, holdfast.WithoutRenewal()},
		{op.MinHold > 0, holdfast.WithMinHold(op.MinHold)},
		{op.MaxHold > 0, holdfast.WithMaxHold(op.MaxHold)},
		{op.Strict, holdfast.WithStrictOrder()},
		{op.Owner != "", holdfast.WithOwner(op.Owner)},
		{op.Retain, holdfast.WithRetain(retainTime)},
		{op.Poll, holdfast.WithPolling(200*time.Millisecond, 50)},
	} {
		if o.wanted {
			options = append(options, o.option)
		}
	}
	return options
}

// takeLease asks for the hold of an operation.
func takeLease(ctx context.Context, c *client, op *Op) (*holdfast.Lease, error) {
	asked := history.Record{Kind: history.Lock, Type: op.Type, Name: op.Names[0], Names: op.Names,
		Shares: op.Shares, Weight: op.Weight, Size: maxPermits}
	if op.Try {
		asked.Kind = history.TryLock
	}
	return history.WayOf(c.Client, asked, op.options()...)(ctx)
}

func (w *world) keepLease(h *holding, long time.Duration) {
	select {
	case <-time.After(max(long, 1)):
	case <-h.lease.Done():
	case <-h.client.ctx.Done():
	}
}

func (w *world) release(h *holding) {
	was := w.beginRelease(h)
	w.endRelease(h, was, h.lease.Release())
}

// useLease does something with a lease that is held.
func (w *world) useLease(h *holding) {
	failed := func(what string, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.isTroubled() && !h.client.dead && !errors.Is(err, holdfast.ErrLost) {
			w.addViolation(judge.Failed, "%s of %v: %v", what, h, err)
		}
	}
	switch h.op.Inner {
	case Look:
		if err := h.lease.Check(h.client.ctx); err != nil {
			failed("check", err)
		}
	case Downgrade:
		w.mu.Lock()
		h.shared = true
		w.mu.Unlock()
		if err := h.lease.Downgrade(h.client.ctx); err != nil {
			failed("downgrade", err)
		}
	case Reenter:
		ctx, cancel := context.WithTimeout(leased.Context(h.lease), time.Second)
		defer cancel()
		again := *h.op
		again.Try, again.Poll = false, false
		lease, err := takeLease(ctx, h.client, &again)
		if err != nil {
			failed("reentry", err)
			return
		}
		if lease.Token() != h.lease.Token() && h.lease.Err() == nil {
			w.report(judge.Token, "reentry into %v got token %d", h, lease.Token())
		}
		sleep(time.Millisecond)
		_ = lease.Release()
	}
}
