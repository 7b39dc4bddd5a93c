package traps_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/testing/redisserver"
	"github.com/holdfast-go/holdfast/proof/harness"
)

// The extras of a payload that a later version may write.
const laterExtras = "trace:5:a:b|7later:0:"

// laterTicket returns a ticket and its payload as a later version may write them.
func laterTicket(id, token, channel, label string) string {
	return fmt.Sprintf("3mx:%s%s500:1:15000f:%d:0:%d:%s", id, token, len(channel), len(laterExtras),
		channel+laterExtras+label)
}

// Extras that a reader does not know are skipped, by the scripts and by the client: of a holder
// that is told to others, of a waiter that is handed the lock, and of a hold that is broken.
func TestFormatUnknownExtras(t *testing.T) {
	t.Parallel()
	srv := redisserver.Start(t)
	c := harness.Locker(t, srv.Addr(), nil)
	const id, token = "AAAAAAAAAAAAAAAAAAAAAA", "1763700000000000"

	harness.Must(t, srv, "SET", harness.KeyOf("told"), laterTicket(id, token, "", "a: later|one"), "PX", 60_000)
	if held := tryHeld(t, c.Mutex("told")); held.Holder != "a: later|one" {
		t.Errorf("held by %q", held.Holder)
	}

	channel := "holdfast:@somewhere"
	messages := harness.Client(t, srv.Addr()).Subscribe(t.Context(), channel)
	t.Cleanup(func() { messages.Close() })
	if _, err := messages.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := harness.Lock(t, c.Mutex("handed"))
	waiter := laterTicket(id, "", "p"+channel, "later")
	harness.Must(t, srv, "ZADD", harness.KeyOf("handed")+":queue", time.Now().UnixMicro(), waiter)
	harness.Must(t, srv, "PEXPIRE", harness.KeyOf("handed")+":queue", 60_000)
	harness.Release(t, lease)
	message, err := messages.ReceiveMessage(harness.Within(t, harness.Patience))
	if err != nil || !strings.HasPrefix(message.Payload, "3G"+id) {
		t.Errorf("told %v, %v", message, err)
	}

	harness.Must(t, srv, "SET", harness.KeyOf("broken"), laterTicket(id, token, "", "former"), "PX", 60_000)
	operator := harness.Locker(t, srv.Addr(), &holdfast.Config{Label: "present"})
	if err := operator.Break(harness.Within(t, harness.Patience), "broken", 1763700000000000); err != nil {
		t.Fatal(err)
	}
	want := laterExtras + "why:1:bby:7:present" + "former"
	members := harness.Must(t, srv, "ZRANGE", harness.KeyOf("broken"), 0, -1).([]any)
	found := false
	for _, member := range members {
		text := member.(string)
		found = found || strings.HasPrefix(text, "3m-:"+id) &&
			strings.HasSuffix(text, fmt.Sprintf(":0:0:%d:%s", len(want)-len("former"), want))
	}
	if !found {
		t.Errorf("no remainder among %q", members)
	}
	if held := tryHeld(t, c.Mutex("broken")); held.Holder != "" || held.Holders != 1 {
		t.Errorf("a remainder is told as %+v", held)
	}
}

// tryHeld tries a mutex that another holds.
func tryHeld(t *testing.T, m *holdfast.Mutex) *holdfast.HeldError {
	t.Helper()
	var held *holdfast.HeldError
	if err := harness.Answered(t,
		func() error { _, err := m.TryLock(harness.Within(t, harness.Patience)); return err }); !errors.As(err, &held) {
		t.Fatalf("got %v", err)
	}
	return held
}

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
