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
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 28: the key exists with another type, or is another kind's or another format's. The error
// names it, and it is left as it was. Inspect and List tell of what is none of ours, which is no
// error: an operator wants to know.
func TestMutexForeignKeyIsLeft(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	const id, rest = "AAAAAAAAAAAAAAAAAAAAAA", "17637000000000001:1:15000:0:0:0:"
	puts := map[string][]any{
		"hash":              {"HSET", "", "f", "v"},
		"list":              {"RPUSH", "", "a"},
		"plain set":         {"SADD", "", "a"},
		"stream":            {"XADD", "", "1-1", "f", "v"},
		"string":            {"SET", "", "by hand"},
		"empty string":      {"SET", "", ""},
		"short string":      {"SET", "", "1"},
		"almost ours":       {"SET", "", "3mx:"},
		"sorted set":        {"ZADD", "", 1, "a"},
		"scores":            {"ZADD", "", 1e15, "someone", 5, "else"},
		"another kind":      {"SET", "", "3sx:" + id + rest},
		"format 2":          {"SET", "", "2mx:" + id + "17637000000000001:1:0:0:"},
		"another format":    {"SET", "", "4mx:" + id + rest},
		"kind that shares":  {"ZADD", "", 1.9e13, "3ss:" + id + "500:1:15000:0:0:0:"},
		"format that held":  {"ZADD", "", 9e12, "2mx:" + id + "500:1:0:0:"},
		"queue of a kind":   {"ZADD", ":queue", 1e15, "3sx:" + id + "500:1:15000:0:0:0:"},
		"queue of a format": {"ZADD", ":queue", 1e15, "2mx:" + id + "500:1:0:0:"},
		"no queue":          {"SET", ":queue", "by hand"},
		"cut off":           {"SET", "", "3mx:" + id + "1763700"},
		"cut off latch":     {"SET", "", "3l-:" + id + "s x"},
		"unknown letter":    {"SET", "", "3zx:" + id + rest},
		"something in it":   {"ZADD", "", 1.9e13, "3rs:" + id + "500:1:15000:0:0:0:", 9e12, "x"},
	}
	for name, put := range puts {
		t.Run(name, func(t *testing.T) {
			key := harness.KeyOf(name) + put[1].(string)
			put[1] = key
			harness.Must(t, srv, put...)
			harness.Must(t, srv, "PEXPIRE", key, 600_000)
			before := harness.Must(t, srv, "DUMP", key)
			m := c.Mutex(name)
			calls := map[string]func() error{
				"TryLock": func() error { _, err := m.TryLock(harness.Within(t, harness.Patience)); return err },
				"Lock":    func() error { _, err := m.Lock(harness.Within(t, harness.Patience)); return err },
				"with owner": func() error {
					_, err := c.Mutex(name, holdfast.WithOwner("o")).TryLock(harness.Within(t, harness.Patience))
					return err
				},
			}
			for call, do := range calls {
				var failure *holdfast.StoreError
				if err := harness.Answered(t, do); !errors.As(err, &failure) || failure.Kind != holdfast.StoreForeign ||
					failure.MayHaveApplied ||
					!strings.Contains(err.Error(), strconv.Quote(key)) || errors.Is(err, holdfast.ErrUnavailable) {
					t.Errorf("%s: got %v", call, err)
				}
				if harness.Must(t, srv, "DUMP", key) != before {
					t.Fatalf("%s touched it: %v", call, harness.Must(t, srv, "TYPE", harness.KeyOf(name)))
				}
			}
			info, err := c.Inspect(harness.Within(t, harness.Patience), name)
			if ours := strings.Contains(name, "kind"); err != nil || (info.State() == lockinfo.StateForeign) == ours ||
				strings.Contains(info.Foreign, key) == ours {
				t.Errorf("inspect: %+v, %v", info, err)
			}
			if left := harness.Must(t, srv, "PTTL", key).(int64); left < 590_000 {
				t.Errorf("its time is %d ms now", left)
			}
		})
	}
	harness.Must(t, srv, "SET", "holdfast:by hand", "x")
	listed := map[string]bool{}
	for info, err := range c.List(harness.Within(t, harness.Patience), holdfast.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		listed[info.Name] = info.Foreign != ""
	}
	if len(listed) != len(puts)+1 || !listed["holdfast:by hand"] || !listed["hash"] {
		t.Errorf("listed %d of %d: %v", len(listed), len(puts)+1, listed)
	}
}

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
