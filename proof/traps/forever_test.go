package traps_test

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 29: keys that never expire. One who waits alone is let in and never learns of it, as if it
// crashed at that moment: nothing of the name may stay for ever. (A set whose last member is taken
// out loses its expiry.)
func TestWaiterCrashedAfterGrantLeavesNothing(t *testing.T) {
	t.Parallel()
	type take = func(ctx context.Context, c *holdfast.Client, who string) (*holdfast.Lease, error)
	for name, take := range map[string]take{
		"mutex": func(ctx context.Context, c *holdfast.Client, _ string) (*holdfast.Lease, error) {
			return c.Mutex("n").Lock(ctx)
		},
		"owner": func(ctx context.Context, c *holdfast.Client, who string) (*holdfast.Lease, error) {
			return c.Mutex("n", holdfast.WithOwner(who)).Lock(ctx)
		},
		"writer": func(ctx context.Context, c *holdfast.Client, _ string) (*holdfast.Lease, error) {
			return c.RWMutex("n").Lock(ctx)
		},
		"permits": func(ctx context.Context, c *holdfast.Client, _ string) (*holdfast.Lease, error) {
			return c.Semaphore("n", 2).Acquire(ctx, 2)
		},
		"election": func(ctx context.Context, c *holdfast.Client, _ string) (*holdfast.Lease, error) {
			return c.Election("n").Campaign(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, p := harness.Proxied(t)
			lease, err := take(harness.Within(t, harness.Patience), harness.Locker(t, srv.Addr(), nil), "one")
			if err != nil {
				t.Fatal(err)
			}
			ctx, giveUp := context.WithCancel(harness.Within(t, harness.Patience))
			defer giveUp()
			other, next := harness.Locker(t, p.Addr(), harness.Brief(time.Minute)), make(chan error, 1)
			go func() {
				_, err := take(ctx, other, "other")
				next <- err
			}()
			harness.Waiting(t, srv, "n", 1)
			p.Silence()
			harness.Release(t, lease)
			for _, key := range harness.Must(t, srv, "KEYS", harness.KeyOf("n")+"*").([]any) {
				const over = -2 // meanwhile: a claim is short
				if left := harness.Must(t, srv, "PTTL", key).(int64); key != harness.KeyOf("n")+":clock" && left != over && (left <= 0 || left > 60_000) {
					t.Errorf("%v stays for %d ms", key, left)
				}
			}
			p.Speak()
			giveUp()
			<-next
		})
	}
}
