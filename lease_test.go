package holdfast_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/protocol/memory"
)

// A lease in a log has its name and token, and a lease that is none says so.
func TestLeaseString(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := memory.New(protocol.Features{Queue: true, Tokens: true})
		client, err := holdfast.NewOn(server.Connect("p"), nil)
		must(t, err)
		lease, err := client.Mutex("order:42").Lock(t.Context())
		must(t, err)
		want := fmt.Sprintf(`lease of "order:42" with token %d`, lease.Token())
		if got := fmt.Sprint(lease); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		must(t, lease.Release())
		must(t, client.Close())
		var none *holdfast.Lease
		if got := fmt.Sprint(none, new(holdfast.Lease)); got != "no lease no lease" {
			t.Errorf("got %q of no lease", got)
		}
	})
}

// Do does not say that all went well if the hold may have ended while fn worked: the first release
// got no answer, and the next one found no hold. A release without any answer goes to the observer
// alone, as the lease was trusted to its end. An election goes on after both.
func TestDoWhoseReleaseFindsNothing(t *testing.T) {
	type do func(*holdfast.Client, context.Context, func(context.Context) error) error
	for name, test := range map[string]struct {
		do   do
		want error
		lost int64 // answers to releases
	}{
		"Mutex": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Mutex("n").Do(ctx, fn)
		}, want: holdfast.ErrUncertain, lost: 1},
		"Mutex, no answer at all": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Mutex("n").Do(ctx, fn)
		}, lost: 1 << 40},
		"Semaphore": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.Semaphore("n", 1).Do(ctx, 1, fn)
		}, want: holdfast.ErrUncertain, lost: 1},
		"Group": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			return c.All([]string{"m", "n"}).Do(ctx, fn)
		}, want: holdfast.ErrUncertain, lost: 2},
		"Election": {do: func(c *holdfast.Client, ctx context.Context, fn func(context.Context) error) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			terms := 0
			return c.Election("n").Run(ctx, func(ctx context.Context) error {
				if terms++; terms > 1 {
					cancel()
				}
				return fn(ctx)
			})
		}, want: context.Canceled, lost: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				one, sent := w.client()
				other, _ := w.client()
				err := test.do(one, t.Context(), func(ctx context.Context) error {
					sent.lostFrees.Store(test.lost)
					lease, _ := holdfast.LeaseFrom(ctx)
					if test.lost < 3 && name != "Election" {
						must(t, other.ForceBreak(t.Context(), "n", lease.Tokens()["n"]))
					}
					return nil
				})
				if !errors.Is(err, test.want) || errors.Is(err, holdfast.ErrLost) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				sent.lostFrees.Store(0)
			})
		})
	}
}
