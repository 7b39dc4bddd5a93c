package permissions

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/eventually"
)

// Sometimes tests the commands that a user of a cluster needs at times only: ASKING, while a slot
// is on its way, and WAIT, for Config.Replicas. OnItsWay moves the present keys of a key's slot. It
// leaves the slot on its way until the function that it returns is called.
func Sometimes(t *testing.T, r Realm, onItsWay func(key string) (arrive func())) {
	all := append(Smallest(t, "on a cluster"), "asking", "wait")
	for _, without := range []string{"nothing", "asking", "wait"} {
		t.Run("without "+without, func(t *testing.T) {
			few := slices.DeleteFunc(slices.Clone(all), func(c string) bool { return c == without })
			prefix := "sometimes-" + without
			r.Grant(t, prefix, prefix, few...)
			open := func(replicas int) *holdfast.Client {
				store, err := r.Store(t, prefix, "pw")
				if err != nil {
					t.Fatal(err)
				}
				c, err := holdfast.New(store, &holdfast.Config{Prefix: prefix,
					Replicas: holdfast.Replicas{Count: replicas, Timeout: time.Second}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				return c
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			lease, err := open(1).Mutex("confirmed").Lock(ctx) // which asks again when the replica takes too long
			expect(t, err, without == "wait", "wait", true)
			if err == nil {
				expect(t, lease.Release(), false, "", false)
			}

			lease, err = open(0).Mutex("moved").Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			arrive := onItsWay(prefix + ":{moved}")
			eventually.Holds(patience, func() bool {
				err = lease.Check(ctx)
				return !errors.Is(err, holdfast.ErrUnavailable)
			})
			arrive()
			expect(t, err, without == "asking", "asking", false)
			expect(t, lease.Release(), false, "", false)
		})
	}
}

// expect checks an error of what is refused for want of a command.
func expect(t *testing.T, err error, refused bool, command string, mayHaveApplied bool) {
	t.Helper()
	if !refused {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	var failure *holdfast.StoreError
	if !errors.As(err, &failure) || failure.Kind != holdfast.StoreDenied || failure.MayHaveApplied != mayHaveApplied ||
		!strings.Contains(err.Error(), "'"+command) {
		t.Errorf("got %v", err)
	}
}
