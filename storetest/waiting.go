package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

// ttl is the TTL of leases that run out, whatever happens before.
const ttl = 300 * time.Millisecond

// roomy is the TTL of leases that run out after something else. A machine may stand still
// meanwhile.
const roomy = 2 * time.Second

func waiting() []test {
	return []test{
		{"until a holder that is gone has run out", untilExpired, 0},
		{"until the time of WithWait", untilWaitOver, 0},
		{"until its context ends, with its cause", untilContextEnds, 0},
		{"a wait given up leaves nothing", givenUp, 0},
		{"given up at the moment of the grant", givenUpAtGrant, 0},
	}
}

// The holder is told before any other contender is let in (trap 1).
func untilExpired(e *env) {
	a, b := e.client(), e.client()
	before := time.Now()
	lease := e.takeFixed(a, name, ttl)
	w := e.goTake(e.ctx(), b.Mutex(name).Lock) // the caller waits, unless it comes too late for that
	next := w.await()
	if took := w.at.Sub(before); took < ttl-time.Millisecond {
		e.Errorf("let in %v after a grant for %v", took, ttl)
	}
	e.checkLost(lease.Err(), holdfast.LossExpired)
	if until := lease.Until(); until.After(w.at) {
		e.Errorf("trusted until %v after another was in", until.Sub(w.at))
	}
	if next.Token() <= lease.Token() {
		e.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	e.awaitLoss(lease, holdfast.LossExpired)
	e.checkLost(lease.Release(), holdfast.LossExpired)
	e.busyError(a.Mutex(name)) // the release did not touch the next holder
	e.release(next)
}

// namesToken reports whether an error has the token of the holder's lease. Several masters may not
// agree on it yet, and tell none.
func (e *env) namesToken(token int64, lease *holdfast.Lease) bool {
	return token == lease.Token() || token == 0 && e.backend.NoQueue
}

// The wait ends, and not the context. It is as busy as a try, if an answer came. Both errors say
// who holds, and since when.
func untilWaitOver(e *env) {
	a, b := e.client(label("A")), e.client()
	lease := e.lock(a.Mutex(name, holdfast.WithOwner("night job")))
	ctx := e.ctx()
	_, err := b.Mutex(name, holdfast.WithWait(200*time.Millisecond)).Lock(ctx)
	var waited *holdfast.WaitError
	if !errors.As(err, &waited) || ctx.Err() != nil {
		e.Fatalf("got %v, and ctx: %v", err, ctx.Err())
	}
	answered := len(b.of(holdfast.EventWaiting)) > 0 // otherwise the time may have been over before
	busy := errors.Is(err, holdfast.ErrWaitOver)
	e.checkIsNone(err, context.DeadlineExceeded, context.Canceled)
	checkEqual(e, "is a busy error", errors.Is(err, holdfast.ErrHeld), busy)
	if !busy {
		e.checkIs(err, holdfast.ErrUnavailable)
	}
	if answered && !busy {
		e.Errorf("got %v after an answer, want that the wait is over", err)
	}
	if answered && (waited.Holder != "A" || waited.Owner != "night job" || !e.namesToken(waited.Token, lease)) {
		e.Errorf("got %+v with token %d, want %d", waited, waited.Token, lease.Token())
	}
	held := e.busyError(b.Mutex(name))
	if held.Holder != "A" || held.Owner != "night job" || !e.namesToken(held.Token, lease) {
		e.Errorf("got %+v with token %d, want %d", held, held.Token, lease.Token())
	}
	e.release(lease)
	lease = e.lock(a.Mutex(name)) // nothing of the wait is left, and a hold without an owner shows no id
	if held = e.busyError(b.Mutex(name)); held.Owner != "" || !e.namesToken(held.Token, lease) {
		e.Errorf("got %+v with token %d, want %d", held, held.Token, lease.Token())
	}
	e.release(lease)
}

func untilContextEnds(e *env) {
	a, b := e.client(label("A")), e.client()
	lease := e.lock(a.Mutex(name))
	shutdown := errors.New("shutting down")
	ctx, cancel := context.WithCancelCause(context.Background())
	w := e.startWaiting(ctx, b, b.Mutex(name).Lock)
	cancel(shutdown)
	ended := w.awaitGiveUp(context.Canceled)
	e.checkIs(ended, shutdown)
	if ended.Holder != "A" || errors.Is(ended, context.DeadlineExceeded) || errors.Is(ended, holdfast.ErrUnavailable) {
		e.Errorf("got %v", ended)
	}
	e.release(lease)
}

// Trap 20: the server forgets a waiter that gave up, and no other waiter waits for its place to run
// out.
func givenUp(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	for _, option := range []holdfast.Option{nil, holdfast.WithStrictOrder(), holdfast.WithOwner("o")} {
		lease := e.lock(a.Mutex(name))
		e.giveUp(b, b.Mutex(name, option).Lock)
		if !soon(func() bool { return e.busyError(c.Mutex(name)).Waiters == 0 }) {
			e.Error("its place in the queue stays")
		}
		e.release(lease)
		e.checkFree(c.Mutex(name))
	}
}

// Trap 20: whichever side wins that race, the lock goes on to the next waiter.
func givenUpAtGrant(e *env) {
	a, b, c := e.client(), e.client(), e.client()
	const rounds = 20
	began := time.Now()
	for range rounds {
		lease := e.lock(a.Mutex(name))
		ctx, cancel := context.WithCancel(context.Background())
		leaving := e.startWaiting(ctx, b, b.Mutex(name).Lock)
		staying := e.startWaiting(e.ctx(), c, c.Mutex(name).Lock)
		go cancel()
		e.release(lease)
		if lease, err := leaving.awaitResult(); err == nil {
			e.release(lease)
		}
		e.release(staying.await())
	}
	// If each waiter went on only after the claim of the former one, that alone would take so long.
	if took := time.Since(began); e.judgesTimes() && took > rounds*claim {
		e.Errorf("%d rounds took %v", rounds, took)
	}
}
