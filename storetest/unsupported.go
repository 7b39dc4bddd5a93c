package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast"
)

// refused is the section of what the backend has not.
func refused(run func(*env)) []test { return []test{{"is refused", run, 0}} }

// checkUnsupported fails unless err is the refusal of a feature that the backend lacks, and says
// why.
func (e *env) checkUnsupported(method string, err error) {
	e.Helper()
	refused := e.checkStoreError(err, holdfast.StoreUnsupported, false)
	checkEqual(e, method+": name", refused.Name, name)
	if refused.Op == "" || refused.Err == nil {
		e.Fatalf("%s: %#v has no operation, or no reason", method, refused)
	}
	reason := refused.Err.Error()
	if strings.Count(reason, " ") < 5 || !strings.Contains(err.Error(), reason) { // a sentence has six words
		e.Errorf("%s: got %v, want a sentence that says why", method, err)
	}
	e.checkIsNone(err, holdfast.ErrHeld, holdfast.ErrLost, holdfast.ErrNotHeld, holdfast.ErrUnavailable,
		context.DeadlineExceeded)
}

func semaphoreRefused(e *env) {
	c := e.client()
	s := c.Semaphore(name, 3)
	e.checkAllUnsupported(c,
		func(ctx context.Context) error { return errorOf(s.Acquire(ctx, 2)) },
		func(ctx context.Context) error { return errorOf(s.TryAcquire(ctx, 2)) },
		func(ctx context.Context) error { return s.Do(ctx, 2, e.never) },
		func(ctx context.Context) error { return s.Resize(ctx, 5) })
}

func latchRefused(e *env) {
	c := e.client()
	e.checkAllUnsupported(c, latchCalls(c.Latch(name))...)
}

func latchCalls(l *holdfast.Latch) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error { return l.Set(ctx, 1) }, l.CountDown, l.Wait,
		func(ctx context.Context) error { _, err := l.Count(ctx); return err },
	}
}

// checkAllUnsupported fails unless calls are refused at once, whether the name is free or not.
func (e *env) checkAllUnsupported(c *client, all ...func(context.Context) error) {
	e.Helper()
	for _, held := range []bool{false, true} {
		if held {
			lease := e.lock(c.Mutex(name))
			defer e.release(lease)
		}
		began := time.Now()
		for i, call := range all {
			e.checkUnsupported(fmt.Sprint("call ", i), call(e.ctx()))
		}
		e.checkAtOnce(c, began)
	}
}

func forceRefused(e *env) {
	a, b := e.client(), e.client()
	e.checkUnsupported("ForceBreak", e.forceBreak(b, 1))
	lease := e.lock(a.Mutex(name))
	e.checkUnsupported("ForceBreak", e.forceBreak(b, lease.Token()))
	e.busyError(b.Mutex(name))
	e.release(lease)
}

func evictRefused(e *env) {
	a, b := e.client(), e.client()
	e.checkUnsupported("Evict", e.askUntilAnswered(func() error { return b.Evict(e.ctx(), name, "x") }))
	lease := e.lock(a.Mutex(name))
	e.checkUnsupported("Evict", e.askUntilAnswered(func() error { return b.Evict(e.ctx(), name, "x") }))
	e.release(lease)
}

// checkAtOnce fails if a call waited, or asked again, which takes as long as a release may.
func (e *env) checkAtOnce(c *client, began time.Time) {
	e.Helper()
	if late := append(c.of(holdfast.EventWaiting), c.of(holdfast.EventRetried)...); len(late) > 0 || e.judgesTimes() &&
		time.Since(began) > 4*time.Second {
		e.Errorf("not refused at once, but after %v: %+v", time.Since(began), late)
	}
}
