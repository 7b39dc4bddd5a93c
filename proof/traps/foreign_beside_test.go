package traps_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/fatal"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 28, of a key that is taken meanwhile, and of the keys beside the state: who waits, who
// watches, and the clock of the slot. The error names the key, and none that is ours where the
// server tells; it says whether anything was done; and the key is left as it was.
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

	type call = func(name string) error
	type prepare = func(name string) (call func() error) // the key is put between
	atOnce := func(do call) prepare {
		return func(name string) func() error { return func() error { return do(name) } }
	}
	held := func(do call) prepare {
		return func(name string) func() error {
			harness.Lock(t, c.Mutex(name))
			return func() error { return do(name) }
		}
	}
	released := func(options ...holdfast.Option) prepare {
		return func(name string) func() error { return harness.Lock(t, c.Mutex(name, options...)).Release }
	}
	try := func(name string) error { return harness.Given(other.Mutex(name).TryLock(ctx)) }
	wait := func(name string) error { return harness.Given(other.Mutex(name).Lock(ctx)) }
	lead := func(name string) error { return harness.Given(c.Election(name).Campaign(ctx)) }
	allAfter := func(name string) error { return harness.Given(other.All([]string{"a " + name, name}).TryLock(ctx)) }
	allBefore := func(name string) error { return harness.Given(other.All([]string{name + " too", name}).TryLock(ctx)) }
	owner, minHold := holdfast.WithOwner("o"), holdfast.WithMinHold(time.Second)
	for name, test := range map[string]struct {
		key            func(name string) string
		prepare        prepare
		mayHaveApplied bool
	}{
		"try, with a queue, of a free name":                  {queue, atOnce(try), false},
		"lock, with a queue, of a free name":                 {queue, atOnce(wait), false},
		"try, with a clock, of a free name":                  {clock, atOnce(try), false},
		"lock, with a clock, of a free name":                 {clock, atOnce(wait), false},
		"lead, with a clock":                                 {clock, atOnce(lead), false},
		"lead, with watchers":                                {watchers, atOnce(lead), true},
		"all, with a queue":                                  {queue, atOnce(allBefore), false},
		"all, with a clock":                                  {clock, atOnce(allBefore), false},
		"try, with a queue, of a held name":                  {queue, held(try), false},
		"lock, with a queue, of a held name":                 {queue, held(wait), false},
		"all, with a queue, of a held name":                  {queue, held(allBefore), false},
		"all, with a queue, of a held name that is the last": {queue, held(allAfter), false},
		"release, with a queue":                              {queue, released(), false},
		"release of a min hold, with a queue":                {queue, released(minHold), false},
		"release of a key that was taken":                    {harness.KeyOf, released(), false},
		"lock again of an owner, with a queue": {queue, func(name string) func() error {
			harness.Lock(t, c.Mutex(name, owner))
			return func() error { return harness.Given(other.Mutex(name, owner).Lock(ctx)) }
		}, false},
		"release of a reader, with a queue": {queue, func(name string) func() error {
			lease, err := c.RWMutex(name).RLock(ctx)
			fatal.If(t, err)
			return lease.Release
		}, false},
		"break, with a queue": {queue, func(name string) func() error {
			lease := harness.Lock(t, c.Mutex(name))
			return func() error { return c.Break(ctx, name, lease.Token()) }
		}, false},
		"permits, with a queue": {queue, func(name string) func() error {
			if _, err := c.Semaphore(name, 3).Acquire(ctx, 1); err != nil {
				t.Fatal(err)
			}
			return func() error { return c.Semaphore(name, 3).Resize(ctx, 2) }
		}, false},
		"who leads, with watchers": {watchers, atOnce(func(name string) error {
			for _, err := range c.Election(name).Observe(ctx) {
				return err
			}
			return nil
		}), false},
		"count down, with those who did": {queue, func(name string) func() error {
			fatal.If(t, c.Latch(name).Set(ctx, 2))
			return func() error { return c.Latch(name).CountDown(ctx) }
		}, false},
	} {
		for content, put := range map[string]string{"a string": "SET", "a list": "RPUSH"} {
			t.Run(name+", "+content, func(t *testing.T) {
				name := name + ", " + content
				call := test.prepare(name)
				key, state := test.key(name), harness.KeyOf(name)
				harness.Must(t, srv, "DEL", key)
				harness.Must(t, srv, put, key, "by hand")
				before, holds := harness.Must(t, srv, "DUMP", key), harness.Must(t, srv, "DUMP", state)
				err := harness.Answered(t, call)
				var failure *holdfast.StoreError
				if !errors.As(err, &failure) || failure.Kind != holdfast.StoreForeign ||
					failure.MayHaveApplied != test.mayHaveApplied ||
					!strings.Contains(err.Error(), strconv.Quote(key)) ||
					key != state && strings.Contains(err.Error(), strconv.Quote(state)) {
					t.Errorf("got %v", err)
				}
				var lost *holdfast.LostError
				if key == state && (!errors.As(err, &lost) || lost.Reason != holdfast.LossForeign) {
					t.Errorf("the lease is lost with %v", err)
				}
				if harness.Must(t, srv, "DUMP", key) != before {
					t.Error("touched")
				}
				if !test.mayHaveApplied && harness.Must(t, srv, "DUMP", state) != holds {
					t.Error("something was applied")
				}
			})
		}
	}
}
