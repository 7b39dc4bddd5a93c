package traps_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast"
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
