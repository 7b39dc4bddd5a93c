package traps_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/lockinfo"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// Trap 28: Inspect and List tell of keys that are none of ours, and touch none. That is no error:
// an operator wants to know.
func TestInspectForeignKeyIsTold(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	const id, rest = "AAAAAAAAAAAAAAAAAAAAAA", "17637000000000001:1:15000:0:0:0:"
	keys := map[string]string{}
	for name, put := range map[string][]any{
		"hash":              {"HSET", "", "f", "v"},
		"list":              {"RPUSH", "", "a"},
		"stream":            {"XADD", "", "1-1", "f", "v"},
		"string":            {"SET", "", "by hand"},
		"empty string":      {"SET", "", ""},
		"almost ours":       {"SET", "", "3mx:"},
		"cut off":           {"SET", "", "3mx:" + id + "1763700"},
		"cut off latch":     {"SET", "", "3l-:" + id + "s x"},
		"another kind":      {"SET", "", "3zx:" + id + rest},
		"another format":    {"SET", "", "4mx:" + id + rest},
		"sorted set":        {"ZADD", "", 1, "a"},
		"something in it":   {"ZADD", "", 1.9e13, "3rs:" + id + "500:1:15000:0:0:0:", 9e12, "x"},
		"no queue":          {"SET", ":queue", "by hand"},
		"queue of a format": {"ZADD", ":queue", 1e15, "2mx:" + id + "500:1:0:0:"},
		"damaged place":     {"ZADD", ":queue", 1e15, "3mx:" + id + "1:1:1:99999:5:-1:x"},
		"odd queue":         {"ZADD", ":queue", 2e15, "3mx:" + id + "500:1:15000:0:0:0:", 1e15, "x"},
	} {
		key := harness.KeyOf(name) + put[1].(string)
		put[1], keys[key] = key, name
		harness.Must(t, srv, put...)
	}
	harness.Must(t, srv, "SET", "holdfast:by hand", "x")
	before := map[string]any{}
	for key, name := range keys {
		before[key] = harness.Must(t, srv, "DUMP", key)
		info, err := c.Inspect(harness.Within(t, harness.Patience), name)
		if err != nil || info.State() != lockinfo.StateForeign || !strings.Contains(info.Foreign, key) ||
			info.At.IsZero() {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
	}
	listed := map[string]string{}
	for info, err := range c.List(harness.Within(t, harness.Patience), holdfast.ListOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if info.State() != lockinfo.StateForeign || info.Foreign == "" {
			t.Errorf("listed %+v", info)
		}
		listed[info.Name] = info.Foreign
	}
	if len(listed) != len(keys)+1 || listed["holdfast:by hand"] == "" {
		t.Errorf("listed %d of %d: %q", len(listed), len(keys)+1, listed)
	}
	for key := range keys {
		if harness.Must(t, srv, "DUMP", key) != before[key] {
			t.Errorf("%s was touched", key)
		}
	}
}

// A member of the queue that was damaged by hand is passed over: a release succeeds, and the waiter
// behind it is told, and does not only find out with its next ask.
func TestQueueDamagedHeadIsPassedOver(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c, other := harness.Locker(t, srv.Addr(), nil), harness.Locker(t, srv.Addr(), nil)
	const id = "AAAAAAAAAAAAAAAAAAAAAA"
	for name, damaged := range map[string]string{
		"short":         "x",
		"no payload":    "3mx:" + id,
		"text":          "3mx:" + id + "no payload at all",
		"letters":       "3mx:" + id + "a:b:c:d:e:f:g",
		"lengths":       "3mx:" + id + "1:1:1:99999:5:-1:x",
		"no claim":      "3mx:" + id + "0:1:15000:0:0:0:",
		"long claim":    "3mx:" + id + "99999999999999999999:1:15000:0:0:0:",
		"no ticket":     "?????" + id[1:] + "500:1:15000:0:0:0:",
		"of a kind":     "3sx:" + id + "500:1:15000:0:0:0:",
		"of no mode":    "3m?:" + id + "500:1:15000:0:0:0:",
		"half a weight": "3ms:" + id + "500/1:1:15000:0:0:0:",
	} {
		t.Run(name, func(t *testing.T) {
			lease := harness.Lock(t, c.Mutex(name))
			next := harness.Claim(harness.Within(t, harness.Patience), other.Mutex(name))
			harness.Waiting(t, srv, name, 1)
			harness.Eventually(t, "it listens", func() bool { return harness.Listening(t, srv) == 1 })
			harness.Must(t, srv, "ZADD", harness.KeyOf(name)+":queue", time.Now().Add(-time.Second).UnixMicro(),
				damaged)
			messages := srv.CommandStats()["publish"]
			harness.Release(t, lease)
			if srv.CommandStats()["publish"] == messages {
				t.Error("the waiter behind it was not told")
			}
			harness.HandBack(t, next.Got(t))
		})
	}
}
