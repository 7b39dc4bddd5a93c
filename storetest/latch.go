package storetest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast"
)

func latch() []test {
	return []test{
		{"from set to open", latchOpens, leaves},
		{"states and what each allows", latchMatrix, leaves},
		{"an open one goes away", latchGone, 0},
		{"counting down keeps it", latchKept, leaves},
	}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatalf("got %v", err)
	}
}

func (e *env) checkCount(l *holdfast.Latch, want int) {
	e.Helper()
	if n, err := l.Count(e.ctx()); err != nil || n != want {
		e.Errorf("Count: %d, %v, want %d", n, err, want)
	}
}

func latchOpens(e *env) {
	a, b := e.client(), e.client()
	e.must(a.Latch(name).Set(e.ctx(), 2))
	w := e.startWaiting(e.ctx(), b, noLease(func() error { return b.Latch(name).Wait(e.ctx()) }))
	e.must(a.Latch(name).CountDown(e.ctx()))
	e.checkCount(b.Latch(name), 1)
	if w.hasReturned() {
		e.Errorf("open after one of two: %v", w.err)
	}
	before := time.Now()
	e.must(b.Latch(name).CountDown(e.ctx()))
	e.must(w.awaitError())
	if took := time.Since(before); e.judgesTimes() && took > 3*time.Second {
		e.Errorf("told after %v: no message came", took)
	}
	e.checkCount(a.Latch(name), 0)
}

func latchMatrix(e *env) {
	c := e.client()
	for state, want := range map[string]struct {
		left                  int // -1: it is not set
		set, down, told, wait error
	}{
		"unset": {-1, nil, holdfast.ErrNotHeld, holdfast.ErrNotHeld, context.DeadlineExceeded},
		"set":   {2, holdfast.ErrHeld, nil, nil, context.DeadlineExceeded},
		"open":  {0, nil, nil, nil, nil},
	} {
		latch := func(method string) *holdfast.Latch {
			l := c.Latch(state + " " + method)
			if want.left >= 0 {
				e.must(l.Set(e.ctx(), want.left))
			}
			return l
		}
		most := patience
		if want.wait != nil {
			most = 20 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(context.Background(), most)
		wait := latch("Wait").Wait(ctx)
		cancel()
		_, told := latch("Count").Count(e.ctx())
		for method, errs := range map[string][2]error{
			"Set":       {latch("Set").Set(e.ctx(), 1), want.set},
			"CountDown": {latch("CountDown").CountDown(e.ctx()), want.down},
			"Count":     {told, want.told},
			"Wait":      {wait, want.wait},
		} {
			if !errors.Is(errs[0], errs[1]) {
				e.Errorf("%s of a latch that is %s: %v, want %v", method, state, errs[0], errs[1])
			}
		}
	}
	var held *holdfast.HeldError
	l := c.Latch("told")
	e.must(l.Set(e.ctx(), 3))
	if err := l.Set(e.ctx(), 5); !errors.As(err, &held) {
		e.Fatalf("got %v, want a HeldError", err)
	}
	checkEqual(e, "kind", held.Kind, "latch")
	checkEqual(e, "holders", held.Holders, 3)
	checkEqual(e, "name", held.Name, "told")
	e.checkCount(l, 3)
	for _, other := range e.uses() { // the name has the kind of a latch
		e.checkForeign(e.lockError(other.try(c, "told")))
	}
}

func latchGone(e *env) {
	c := e.client()
	l := c.Latch(name, holdfast.WithTTL(roomy))
	e.must(l.Set(e.ctx(), 1))
	e.must(l.CountDown(e.ctx()))
	if !soon(func() bool { return errors.Is(l.CountDown(e.ctx()), holdfast.ErrNotHeld) }) {
		e.Error("it stays open, because it is counted down")
	}
	// Nothing is left of the latch. Its keys go one after the other, as a server's clock goes on
	// while a script sets their times.
	soon(func() bool {
		lease, err := e.lockUntilAnswered(c.Mutex(name).TryLock)
		var refused *holdfast.StoreError
		if errors.As(err, &refused) && refused.Kind == holdfast.StoreForeign {
			return false
		}
		if err == nil {
			e.release(lease)
		}
		return true
	})
	e.checkFree(c.Mutex(name))
	e.release(e.take(c.All([]string{name, "other"}).TryLock))
}

// The TTL begins again with each count-down.
func latchKept(e *env) {
	c := e.client()
	l := c.Latch(name, holdfast.WithTTL(3500*time.Millisecond))
	began := time.Now()
	e.must(l.Set(e.ctx(), 3))
	for n := range 2 {
		<-time.After(roomy)
		if err := l.CountDown(e.ctx()); err != nil {
			e.Fatalf("gone %v after it was set, after %d: %v", time.Since(began), n, err)
		}
	}
	e.checkCount(l, 1)
}

// checkForeign fails unless err says that the name has another kind.
func (e *env) checkForeign(err error) {
	e.Helper()
	e.checkStoreError(err, holdfast.StoreForeign, false)
	e.checkIsNone(err, holdfast.ErrHeld, holdfast.ErrUnavailable)
}
