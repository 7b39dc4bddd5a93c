package traps_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 22: the end of ctx is told as a server that is away, by chance: the client library has a
// timer of its own for the same moment. The error of each call says how ctx ended, and again and
// again, at a server that is silent behind open connections.
func TestEndOfContextIsNotHidden(t *testing.T) {
	t.Parallel()
	_, p := harness.Proxied(t)
	c := harness.Locker(t, p.Addr(), nil)
	lease := harness.Lock(t, c.Mutex("n"))
	fixed := harness.Lock(t, c.Mutex("fixed", holdfast.WithoutRenewal()))
	calls := map[string]func(context.Context) error{
		"Break":      func(ctx context.Context) error { return c.Break(ctx, "n", lease.Token()) },
		"Check":      lease.Check,
		"Count":      func(ctx context.Context) error { _, err := c.Latch("l").Count(ctx); return err },
		"Evict":      func(ctx context.Context) error { return c.Evict(ctx, "n", "w") },
		"Extend":     fixed.Extend,
		"ForceBreak": func(ctx context.Context) error { return c.ForceBreak(ctx, "n", lease.Token()) },
		"Inspect":    func(ctx context.Context) error { _, err := c.Inspect(ctx, "n"); return err },
		"Leader":     func(ctx context.Context) error { _, err := c.Election("e").Leader(ctx); return err },
		"List": func(ctx context.Context) (last error) {
			for _, err := range c.List(ctx, holdfast.ListOptions{}) {
				last = err
			}
			return last
		},
		"Queue": func(ctx context.Context) (last error) {
			for _, err := range c.Queue(ctx, "n") {
				last = err
			}
			return last
		},
		"Ready":       c.Ready,
		"Resize":      func(ctx context.Context) error { return c.Semaphore("s", 2).Resize(ctx, 3) },
		"TryCampaign": func(ctx context.Context) error { return harness.Given(c.Election("e").TryCampaign(ctx)) },
		"TryLock":     func(ctx context.Context) error { return harness.Given(c.Mutex("m").TryLock(ctx)) },
		"TryLock of several": func(ctx context.Context) error {
			return harness.Given(c.All([]string{"a", "b"}).TryLock(ctx))
		},
	}
	if err := c.Latch("l").Set(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls {
		for range 10 {
			if err := harness.Checked(t, lease); err != nil { // the server answers again
				t.Fatal(err)
			}
			p.Silence()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			err := call(ctx)
			<-ctx.Done()
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, holdfast.ErrHeld) {
				t.Errorf("%s: %v", name, err)
			}
			p.Speak()
		}
	}
}
