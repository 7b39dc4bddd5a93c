package traps_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// A member of the queue that was damaged by hand is passed over: a release succeeds, and the waiter
// behind it is told, and does not only find out with its next ask. An operator is told of what
// cannot be read.
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
			info, err := c.Inspect(harness.Within(t, harness.Patience), name)
			isRead := !strings.Contains("short text letters lengths long claim", name) // it looks like a place
			if err != nil || strings.Contains(info.Foreign, harness.KeyOf(name)+":queue") == isRead {
				t.Errorf("inspect: %+v, %v", info, err)
			}
			messages := srv.CommandStats()["publish"]
			harness.Release(t, lease)
			if srv.CommandStats()["publish"] == messages {
				t.Error("the waiter behind it was not told")
			}
			harness.HandBack(t, next.Got(t))
		})
	}
}
