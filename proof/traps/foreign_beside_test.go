package traps_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 28, of the keys beside the state: who waits, who watches, and the clock of the slot. The
// error names the key, and none that is ours where the server tells; it says whether anything was
// done; and the key is left as it was.
func TestMutexForeignKeyBesideIsLeft(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c, other := harness.Locker(t, srv.Addr(), harness.Brief(time.Minute)), harness.Locker(t, srv.Addr(), nil)
	scratch := redisserver.Start(t)
	elsewhere := harness.Locker(t, scratch.Addr(), nil)
	clock := func(name string) string {
		harness.Must(t, scratch, "FLUSHALL")
		harness.Release(t, harness.Lock(t, elsewhere.Mutex(name)))
		return harness.Must(t, scratch, "KEYS", "*:clock").([]any)[0].(string)
	}
	queue := func(name string) string { return harness.KeyOf(name) + ":queue" }
	watchers := func(name string) string { return harness.KeyOf(name) + ":watchers" }
	ctx := harness.Within(t, 4*harness.Patience)
	try := func(t *testing.T, name string) error { return harness.Given(other.Mutex(name).TryLock(ctx)) }
	wait := func(t *testing.T, name string) error { return harness.Given(other.Mutex(name).Lock(ctx)) }
	lead := func(t *testing.T, name string) error { return harness.Given(c.Election(name).Campaign(ctx)) }
	all := func(c *holdfast.Client, names ...string) error { return harness.Given(c.All(names).TryLock(ctx)) }
	for name, test := range map[string]struct {
		key            func(name string) string
		before         func(t *testing.T, name string) (do func() error) // is done, then the key is put, then do
		do             func(t *testing.T, name string) error             // where nothing is done before
		mayHaveApplied bool
	}{
		"try, with a queue, of a free name":  {key: queue, do: try},
		"lock, with a queue, of a free name": {key: queue, do: wait},
		"try, with a clock, of a free name":  {key: clock, do: try},
		"lock, with a clock, of a free name": {key: clock, do: wait},
		"lead, with a clock":                 {key: clock, do: lead},
		"try, with a queue, of a held name": {key: queue, before: func(t *testing.T, name string) func() error {
			harness.Lock(t, c.Mutex(name))
			return func() error { return try(t, name) }
		}},
		"lock, with a queue, of a held name": {key: queue, before: func(t *testing.T, name string) func() error {
			harness.Lock(t, c.Mutex(name))
			return func() error { return wait(t, name) }
		}},
		"lock again of an owner, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			harness.Lock(t, c.Mutex(name, holdfast.WithOwner("o")))
			return func() error { return harness.Given(other.Mutex(name, holdfast.WithOwner("o")).Lock(ctx)) }
		}},
		"release, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			lease := harness.Lock(t, c.Mutex(name))
			return lease.Release
		}},
		"release of a min hold, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			lease := harness.Lock(t, c.Mutex(name, holdfast.WithMinHold(time.Second)))
			return lease.Release
		}},
		"release of a reader, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			lease, err := c.RWMutex(name).RLock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return lease.Release
		}},
		"break, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			lease := harness.Lock(t, c.Mutex(name))
			return func() error { return c.Break(ctx, name, lease.Token()) }
		}},
		"permits, with a queue": {key: queue, before: func(t *testing.T, name string) func() error {
			if _, err := c.Semaphore(name, 3).Acquire(ctx, 1); err != nil {
				t.Fatal(err)
			}
			return func() error { return c.Semaphore(name, 3).Resize(t.Context(), 2) }
		}},
		"lead, with watchers": {key: watchers, do: lead, mayHaveApplied: true},
		"who leads, with watchers": {key: watchers, do: func(t *testing.T, name string) error {
			for _, err := range c.Election(name).Observe(ctx) {
				return err
			}
			return nil
		}},
		"all, with a queue": {key: queue,
			do: func(t *testing.T, name string) error { return all(c, name+" too", name) }},
		"all, with a queue, of a held name": {key: queue, before: func(t *testing.T, name string) func() error {
			harness.Lock(t, c.Mutex(name))
			return func() error { return all(other, name+" too", name) }
		}},
		"all, with a queue, of a held name that is the last": {key: queue,
			before: func(t *testing.T, name string) func() error {
				harness.Lock(t, c.Mutex(name))
				return func() error { return all(other, "a "+name, name) }
			}},
		"all, with a clock": {key: clock,
			do: func(t *testing.T, name string) error { return all(c, name+" too", name) }},
		"count down, with those who did": {key: queue, before: func(t *testing.T, name string) func() error {
			if err := c.Latch(name).Set(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
			return func() error { return c.Latch(name).CountDown(t.Context()) }
		}},
	} {
		for content, put := range map[string]string{"a string": "SET", "a list": "RPUSH"} {
			t.Run(name+", "+content, func(t *testing.T) {
				name := name + ", " + content
				do := func() error { return test.do(t, name) }
				if test.before != nil {
					do = test.before(t, name)
				}
				key := test.key(name)
				harness.Must(t, srv, "DEL", key)
				harness.Must(t, srv, put, key, "by hand")
				before, holds := harness.Must(t, srv, "DUMP", key), harness.Must(t, srv, "DUMP", harness.KeyOf(name))
				err := harness.Answered(t, do)
				var failure *holdfast.StoreError
				if !errors.As(err, &failure) || failure.Kind != holdfast.StoreForeign ||
					failure.MayHaveApplied != test.mayHaveApplied ||
					!strings.Contains(err.Error(), strconv.Quote(key)) ||
					strings.Contains(err.Error(), strconv.Quote(harness.KeyOf(name))) {
					t.Errorf("got %v", err)
				}
				if harness.Must(t, srv, "DUMP", key) != before {
					t.Error("touched")
				}
				if !test.mayHaveApplied && harness.Must(t, srv, "DUMP", harness.KeyOf(name)) != holds {
					t.Error("something was applied")
				}
			})
		}
	}
}
